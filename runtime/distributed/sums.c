// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums: a thread that runs sums over ranks beside computation.
//
// While this rank computes, the thread looks at its sum from time to time and
// sleeps in between, so that it takes no core from the computation.  Once the
// rank waits, it does nothing else.
#define _POSIX_C_SOURCE 200809L

#include "runtime/distributed/distributed.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_QUEUED = 64, NAP_NS = 500000 };

typedef struct {
    RtBuffer buffer;
    size_t count;
    int flag; // of this rank
} Queued;

struct RtSums {
    RtCollectives *collectives;
    bool fast;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Queued queue[MAX_QUEUED]; // a ring
    int64_t begun, finished;
    bool waits, ends; // the rank waits for all of them; the thread ends
    int flag;         // of the last one, the largest of all ranks
};

static bool rank_waits(RtSums *s) {
    pthread_mutex_lock(&s->lock);
    bool waits = s->waits;
    pthread_mutex_unlock(&s->lock);
    return waits;
}

static int run_sum(RtSums *s, const Queued *q) {
    RtCollectives *c = s->collectives;
    int flag = q->flag;
    c->start_sum(c, &q->buffer, q->count, &flag, s->fast);
    while (!c->progress(c)) {
        if (rank_waits(s))
            c->finish(c);
        else
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    return flag;
}

static void *run_sums(void *arg) {
    RtSums *s = arg;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (s->finished == s->begun && !s->ends)
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->finished == s->begun)
            break;
        const Queued *next = &s->queue[s->finished % MAX_QUEUED];
        pthread_mutex_unlock(&s->lock);
        int flag = run_sum(s, next);
        pthread_mutex_lock(&s->lock);
        s->flag = flag;
        s->finished++;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

RtSums *rt_sums_new(RtCollectives *c, bool fast) {
    RtSums *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->collectives = c;
        s->fast = fast;
        pthread_mutex_init(&s->lock, NULL);
        pthread_cond_init(&s->changed, NULL);
    }
    if (s == NULL || pthread_create(&s->thread, NULL, run_sums, s) != 0)
        rt_end(EXIT_MEMORY, "cannot start the thread that adds over ranks");
    return s;
}

void rt_sums_begin(RtSums *s, const RtBuffer *b, size_t count, int flag) {
    pthread_mutex_lock(&s->lock);
    while (s->begun - s->finished == MAX_QUEUED)
        pthread_cond_wait(&s->changed, &s->lock);
    s->queue[s->begun++ % MAX_QUEUED] = (Queued){*b, count, flag};
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void rt_sums_finish(RtSums *s, int *flag) {
    pthread_mutex_lock(&s->lock);
    s->waits = true;
    while (s->finished < s->begun)
        pthread_cond_wait(&s->changed, &s->lock);
    s->waits = false;
    if (s->begun > 0)
        *flag = s->flag;
    pthread_mutex_unlock(&s->lock);
}

bool rt_sums_idle(RtSums *s) {
    pthread_mutex_lock(&s->lock);
    bool idle = s->finished == s->begun;
    pthread_mutex_unlock(&s->lock);
    return idle;
}

bool rt_sums_free(RtSums *s) {
    pthread_mutex_lock(&s->lock);
    s->ends = s->finished == s->begun;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (!s->ends)
        return false;
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return true;
}
