// Team: the threads that compute.
//
// oneDNN's threads are those of libgomp, and a second team beside them would
// fight for the same cores.  So the entry that gcc's `#pragma omp parallel`
// compiles to is called by its name (it is in the libgomp manual): with it a
// build by clang, whose own pragma means another library, has the same team.

#include "runtime/host/host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

void GOMP_parallel(void (*work)(void *), void *arg, unsigned threads,
                   unsigned flags);
int omp_get_num_procs(void);
int omp_get_num_threads(void);
int omp_get_thread_num(void);
void omp_set_num_threads(int threads);

// ThreadSanitizer does not know libgomp's barriers: it is told what they order.
#ifdef __SANITIZE_THREAD__ // gcc
#define WATCHED
#elif defined __has_feature // clang
#if __has_feature(thread_sanitizer)
#define WATCHED
#endif
#endif
#ifdef WATCHED
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#else
#define __tsan_acquire(address) ((void)(address))
#define __tsan_release(address) ((void)(address))
#endif

typedef struct {
    void (*work)(void *arg, int me, int members);
    void *arg;
} Job;

static void join(void *arg) {
    const Job *job = arg;
    __tsan_acquire(arg);
    job->work(job->arg, omp_get_thread_num(), omp_get_num_threads());
    __tsan_release(arg);
}

void rt_team_run(int threads, void (*work)(void *arg, int me, int members),
                 void *arg) {
    Job job = {.work = work, .arg = arg};
    if (threads == 1) {
        work(arg, 0, 1);
        return;
    }
    __tsan_release(&job);
    GOMP_parallel(join, &job, (unsigned)threads, 0);
    __tsan_acquire(&job);
}

void rt_team_share(size_t count, int me, int members, size_t *first,
                   size_t *last) {
    *first = count * (size_t)me / (size_t)members;
    *last = count * ((size_t)me + 1) / (size_t)members;
}

int rt_team_largest(void) {
    return omp_get_num_procs();
}

// ---- the start ----

static void *wait_at(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

// How many of so many threads there can be at once.
static int threads_given(int threads) {
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *thread = calloc((size_t)threads, sizeof *thread);
    int given = 0;
    pthread_mutex_lock(&gate);
    while (thread != NULL && given < threads &&
           pthread_create(&thread[given], NULL, wait_at, &gate) == 0)
        given++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < given; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    return given;
}

static void rest(void *arg, int me, int members) {
    (void)arg, (void)me, (void)members;
}

// libgomp ends the program where it lacks a thread, with a status that says
// something else; so they are asked for before it does.
void rt_team_start(int threads) {
    int given = 1 + (threads > 1 ? threads_given(threads - 1) : 0);
    if (given < threads) {
        fprintf(stderr,
                "error: there is room for %d of %d threads; --threads says how "
                "many compute\n",
                given, threads);
        exit(EXIT_MEMORY);
    }
    omp_set_num_threads(threads);
    rt_team_run(threads, rest, NULL);
}
