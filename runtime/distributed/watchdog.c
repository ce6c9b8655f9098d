// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Watchdog: ends this rank when another one has ended or is not heard of.
//
// Every rank tells rank 0 its step ten times a second, and rank 0 tells every
// other its own.  Whoever finds a rank missing ends; rank 0 tells the others
// which one it was.  A process that is stopped or whose machine is cut off
// sends nothing; one that waits for data or for a file still does.
#define _POSIX_C_SOURCE 200809L

#include "runtime/distributed/distributed.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

// A rank whose peer has ended waits a little: often it is about to end for the
// same reason, which it then reports itself.  It does not wait once its
// launcher sends a signal: mpirun kills the others a second later.
enum { BEAT_MS = 100, SILENT_SECONDS = 30, GRACE_SECONDS = 3 };

typedef enum { ALIVE, DONE, ENDED, SILENT } News;
typedef enum { RUNNING, FINISHED, FAILED } State; // of this rank's run

// The news of a rank; ENDED and SILENT come from rank 0 alone.
typedef struct {
    int32_t news, rank;
    int64_t step;
} Message;

// The connection to another rank, and its last news.
typedef struct {
    int fd; // -1: no connection
    bool done;
    double heard;
    int64_t step;
    size_t got; // bytes of the next message
    Message message;
} Peer;

struct RtWatchdog {
    int rank, size;
    atomic_llong step;
    atomic_int state;
    atomic_bool aborted;
    int wake; // an eventfd
    // Collectives to abort, which are not closed meanwhile.
    pthread_mutex_t lock;
    RtCollectives *aborts;
    pthread_t thread;
    Peer *peer; // by rank
};

static void tell(const Peer *p, const Message *m) {
    if (p->fd >= 0)
        send(p->fd, m, sizeof *m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void tell_all(const RtWatchdog *w, const Message *m) {
    for (int i = 0; i < w->size; i++)
        tell(&w->peer[i], m);
}

static void *abort_collectives(void *arg) {
    RtWatchdog *w = arg;
    pthread_mutex_lock(&w->lock);
    if (w->aborts != NULL)
        w->aborts->abort(w->aborts);
    pthread_mutex_unlock(&w->lock);
    atomic_store(&w->aborted, true);
    return NULL;
}

// An abort that hangs itself is left to the end of the process.
static void try_to_abort(RtWatchdog *w) {
    double until = rt_seconds() + GRACE_SECONDS;
    pthread_t thread;
    if (pthread_create(&thread, NULL, abort_collectives, w) != 0)
        return;
    pthread_detach(thread);
    while (rt_seconds() < until && !atomic_load(&w->aborted))
        poll(NULL, 0, BEAT_MS / 10);
}

static _Noreturn void end_rank(RtWatchdog *w, const Message *why) {
    double until = rt_seconds() + GRACE_SECONDS;
    if (w->rank == 0 && why->news != DONE)
        tell_all(w, why);
    while (rt_seconds() < until && atomic_load(&w->state) == RUNNING &&
           rt_signals_pending() == 0)
        poll(NULL, 0, BEAT_MS / 10);
    if (atomic_load(&w->state) != RUNNING)
        pthread_exit(NULL);
    const char *what = why->news == SILENT ? "sent no heartbeat for 30 s"
                       : why->news == DONE ? "was done"
                                           : "ended";
    RtError e;
    rt_fail(&e, EXIT_DEVICE,
            "rank %d %s after step %" PRId64
            ", so rank %d ends after step %lld",
            (int)why->rank, what, why->step, w->rank,
            (long long)atomic_load(&w->step));
    rt_print_error(&e);
    try_to_abort(w);
    rt_leave(EXIT_DEVICE);
}

static void missing(RtWatchdog *w, int rank, News news) {
    end_rank(w, &(Message){news, rank, w->peer[rank].step});
}

static void take_message(RtWatchdog *w, int from, const Message *m) {
    Peer *p = &w->peer[from];
    if (m->news == ENDED || m->news == SILENT)
        end_rank(w, m);
    p->step = m->step;
    p->done |= m->news == DONE;
}

static void hear(RtWatchdog *w, int from) {
    Peer *p = &w->peer[from];
    ssize_t n = recv(p->fd, (char *)&p->message + p->got,
                     sizeof p->message - p->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        missing(w, from, ENDED);
    p->heard = rt_seconds();
    p->got += (size_t)n;
    if (p->got == sizeof p->message) {
        p->got = 0;
        take_message(w, from, &p->message);
    }
}

// Whether a rank has a connection to w and is not done.
static bool is_awaited(const RtWatchdog *w, int rank) {
    return w->peer[rank].fd >= 0 && !w->peer[rank].done;
}

static void listen_to_all(RtWatchdog *w, struct pollfd *set) {
    for (int i = 0; i < w->size; i++)
        set[i] = (struct pollfd){.fd = is_awaited(w, i) ? w->peer[i].fd : -1,
                                 .events = POLLIN};
    set[w->size] = (struct pollfd){.fd = w->wake, .events = POLLIN};
    poll(set, (nfds_t)w->size + 1, BEAT_MS);
    for (int i = 0; i < w->size; i++) {
        if (set[i].revents != 0)
            hear(w, i);
        if (is_awaited(w, i) &&
            rt_seconds() > w->peer[i].heard + SILENT_SECONDS)
            missing(w, i, SILENT);
        // All ranks are done at once, so this one waits for it in vain.
        if (w->peer[i].done && atomic_load(&w->state) == RUNNING &&
            rt_seconds() > w->peer[i].heard + SILENT_SECONDS)
            missing(w, i, DONE);
    }
}

static bool awaits_any(const RtWatchdog *w) {
    for (int i = 0; i < w->size; i++)
        if (is_awaited(w, i))
            return true;
    return false;
}

// Listens to others until all are done, too: a connection that is closed with
// messages in it loses those that the other side has not read.
static void finish(RtWatchdog *w, struct pollfd *set) {
    uint64_t ignored;
    ssize_t got = read(w->wake, &ignored, sizeof ignored);
    (void)got;
    tell_all(w, &(Message){DONE, w->rank, atomic_load(&w->step)});
    while (awaits_any(w))
        listen_to_all(w, set);
}

static void *watch(void *arg) {
    RtWatchdog *w = arg;
    struct pollfd *set = calloc((size_t)w->size + 1, sizeof *set);
    double next = 0, last = rt_seconds();
    while (set != NULL && atomic_load(&w->state) == RUNNING) {
        double now = rt_seconds();
        // This process was stopped itself: the others' messages wait.
        for (int i = 0; now > last + SILENT_SECONDS / 2 && i < w->size; i++)
            w->peer[i].heard = now;
        last = now;
        if (now >= next)
            tell_all(w, &(Message){ALIVE, w->rank, atomic_load(&w->step)});
        next = now >= next ? now + BEAT_MS / 1e3 : next;
        listen_to_all(w, set);
    }
    if (set != NULL && atomic_load(&w->state) == FINISHED)
        finish(w, set);
    else
        tell_all(w, &(Message){ALIVE, w->rank, atomic_load(&w->step)});
    free(set);
    return NULL;
}

RtWatchdog *rt_watchdog_start(const RtRendezvous *m, const RtRankInfo *p,
                              RtError *e) {
    RtWatchdog *w = calloc(1, sizeof *w);
    Peer *peer = calloc((size_t)p->size, sizeof *peer);
    int wake = eventfd(0, EFD_CLOEXEC);
    if (w != NULL && peer != NULL && wake >= 0) {
        w->rank = p->rank;
        w->size = p->size;
        w->wake = wake;
        w->peer = peer;
        pthread_mutex_init(&w->lock, NULL);
        for (int i = 0; i < p->size; i++)
            peer[i] = (Peer){.fd = m->fd[i], .heard = rt_seconds()};
        if (pthread_create(&w->thread, NULL, watch, w) == 0)
            return w;
    }
    rt_fail(e, EXIT_MEMORY, "cannot start the thread that watches the ranks");
    if (wake >= 0)
        close(wake);
    free(peer);
    free(w);
    return NULL;
}

void rt_watchdog_step(RtWatchdog *w, int64_t step) {
    atomic_store(&w->step, step);
}

void rt_watchdog_aborts(RtWatchdog *w, RtCollectives *c) {
    pthread_mutex_lock(&w->lock);
    w->aborts = c;
    pthread_mutex_unlock(&w->lock);
}

void rt_watchdog_stop(RtWatchdog *w, bool good) {
    uint64_t one = 1;
    atomic_store(&w->state, good ? FINISHED : FAILED);
    ssize_t written = write(w->wake, &one, sizeof one);
    (void)written; // else it sees the state soon
    pthread_join(w->thread, NULL);
    close(w->wake);
    free(w->peer);
    free(w);
}
