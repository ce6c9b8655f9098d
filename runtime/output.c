// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Output: streams whose reader cannot stop a run.
//
// A paused pager, a hanging terminal or a full pipe blocks a write, and the
// thread that prints takes no step and sees no signal.  So each stream has a
// buffer and a thread that writes.  The thread that prints waits for the write
// while the reader keeps up, which keeps lines in order, also between stdout
// and stderr, and before the next step.  After a second without progress it
// waits no longer: lines stay in the buffer, and lines that do not fit are
// dropped.  Dropped log lines are counted; rows and results wait longer, and
// are lost with an error.
#define _GNU_SOURCE // fopencookie

#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1 << 18, STACK = 1 << 18, NOTICE = 100 };
static const double SHORT_TIMEOUT = 1; // seconds, as RT_READER_TIMEOUT

typedef struct {
    int fd;
    bool rows; // rows and results: dropping one is an error
    pthread_t thread;
    pthread_mutex_t lock; // of all below
    pthread_cond_t changed;
    bool closes;  // the thread has ended: print unbuffered
    double since; // when the reader last read, or text began to wait
    int reason;   // errno of the last loss; 0: none
    bool failed;  // a write failed and lost the buffer; not yet reported
    long dropped; // lines, since the last that was written
    size_t queued;
    char text[ROOM];
} Output;

// ---- the thread that writes ----

static ssize_t write_some(int fd, const char *from, size_t bytes) {
    ssize_t n;
    while ((n = write(fd, from, bytes)) < 0 &&
           (errno == EINTR || errno == EAGAIN))
        if (errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
    if (n == 0)
        errno = ENOSPC;
    return n;
}

// The first o->queued bytes of the text stay in place without the lock.
static void write_first(Output *o) {
    enum { MAX_WRITE = 4096 }; // a pipe writes so much at once
    size_t some = o->queued < MAX_WRITE ? o->queued : MAX_WRITE;
    pthread_mutex_unlock(&o->lock);
    ssize_t n = write_some(o->fd, o->text, some);
    int reason = errno;
    pthread_mutex_lock(&o->lock);
    if (n <= 0) {
        o->reason = reason;
        o->failed = true;
    }
    o->queued -= n > 0 ? (size_t)n : o->queued;
    memmove(o->text, o->text + (n > 0 ? n : 0), o->queued);
    o->since = rt_seconds();
    pthread_cond_broadcast(&o->changed);
}

static void *write_all(void *arg) {
    Output *o = arg;
    pthread_mutex_lock(&o->lock);
    while (o->queued > 0 || !o->closes)
        if (o->queued > 0)
            write_first(o);
        else
            pthread_cond_wait(&o->changed, &o->lock);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

static void wait_shortly(Output *o) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += 50000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&o->changed, &o->lock, &t);
}

// Waits until at most `most` bytes are queued; false: the reader took nothing
// for `timeout` seconds.
static bool wait_for(Output *o, size_t most, double timeout) {
    while (o->queued > most) {
        bool hurries = rt_signals_caught() != 0 && timeout > SHORT_TIMEOUT;
        if (rt_seconds() - o->since >= (hurries ? SHORT_TIMEOUT : timeout))
            return false;
        wait_shortly(o);
    }
    return true;
}

static void enqueue(Output *o, const char *from, size_t bytes) {
    if (o->queued == 0)
        o->since = rt_seconds();
    memcpy(o->text + o->queued, from, bytes);
    o->queued += bytes;
    pthread_cond_broadcast(&o->changed);
}

static void print_dropped(Output *o) {
    char text[NOTICE];
    if (o->dropped == 0)
        return;
    int length = snprintf(
        text, sizeof text,
        "warning: %ld line%s dropped: the reader of the output was too slow\n",
        o->dropped, o->dropped == 1 ? "" : "s");
    enqueue(o, text, (size_t)length);
    o->dropped = 0;
}

// Reports once that a write has failed, with errno set.
static bool has_failed(Output *o) {
    bool failed = o->failed;
    o->failed = false;
    if (failed)
        errno = o->reason;
    return failed;
}

// Queues one line or more; 0 with errno set: a row is lost.
static size_t put_lines(Output *o, const char *from, size_t bytes) {
    bool keeps_up = o->queued == 0;
    if (has_failed(o) && o->rows)
        return 0;
    if (!wait_for(o, ROOM - NOTICE - bytes, o->rows ? RT_READER_TIMEOUT : 0)) {
        o->dropped++;
        errno = o->reason = ETIMEDOUT;
        return o->rows ? 0 : bytes;
    }
    if (!o->rows)
        print_dropped(o);
    enqueue(o, from, bytes);
    if (keeps_up)
        wait_for(o, 0, SHORT_TIMEOUT);
    return has_failed(o) ? 0 : bytes;
}

static size_t put_unbuffered(const Output *o, const char *from, size_t bytes) {
    ssize_t n = write_some(o->fd, from, bytes);
    return n > 0 ? (size_t)n : 0;
}

static ssize_t put(void *cookie, const char *from, size_t bytes) {
    Output *o = cookie;
    size_t done = 0, now = 1;
    pthread_mutex_lock(&o->lock);
    for (; done < bytes && now > 0; done += now) {
        now = bytes - done < ROOM / 2 ? bytes - done : ROOM / 2;
        now = o->closes ? put_unbuffered(o, from + done, now)
                        : put_lines(o, from + done, now);
    }
    pthread_mutex_unlock(&o->lock);
    return (ssize_t)done;
}

// ---- its end ----

// Whether all has been written, now or soon; false with errno set.
static bool finish(Output *o) {
    pthread_mutex_lock(&o->lock);
    bool written = wait_for(o, ROOM - NOTICE, RT_READER_TIMEOUT);
    if (written && !o->rows)
        print_dropped(o);
    written = wait_for(o, 0, RT_READER_TIMEOUT);
    int reason = written ? o->reason : ETIMEDOUT;
    pthread_mutex_unlock(&o->lock);
    errno = reason;
    return reason == 0;
}

// Ends the thread; false: it hangs in its write.
static bool stop(Output *o) {
    pthread_mutex_lock(&o->lock);
    bool stops = o->queued == 0;
    o->closes = stops;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    if (stops)
        pthread_join(o->thread, NULL);
    return stops;
}

static int end(void *cookie) {
    Output *o = cookie;
    bool good = finish(o);
    int reason = errno;
    if (stop(o)) {
        close(o->fd);
        free(o);
    }
    errno = reason;
    return good ? 0 : -1;
}

// ---- its beginning ----

// Signals go to the threads that compute.  SIGPIPE becomes an error of the
// write.
static bool start(Output *o) {
    sigset_t all, before;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool good = pthread_create(&o->thread, &attr, write_all, o) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return good;
}

static Output *output_new(int fd, bool rows) {
    Output *o = calloc(1, sizeof *o);
    pthread_condattr_t attr;
    if (o == NULL)
        return NULL;
    o->fd = fd;
    o->rows = rows;
    pthread_mutex_init(&o->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&o->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (start(o))
        return o;
    free(o);
    return NULL;
}

static FILE *stream_of(Output *o) {
    return fopencookie(o, "w",
                       (cookie_io_functions_t){.write = put, .close = end});
}

FILE *rt_output_open(int fd) {
    Output *o = output_new(fd, true);
    if (o != NULL)
        return stream_of(o);
    close(fd);
    errno = ENOMEM;
    return NULL;
}

// ---- stdout and stderr ----

static Output *out, *err;

// glibc lets a program assign these.  Without a thread, the stream stays as it
// was.
static Output *replace(FILE **standard, int fd, bool rows) {
    Output *o = output_new(fd, rows);
    FILE *f = o != NULL ? stream_of(o) : NULL;
    if (f == NULL)
        return NULL;
    fflush(*standard);
    setvbuf(f, NULL, !rows || isatty(fd) ? _IOLBF : _IOFBF, BUFSIZ);
    *standard = f;
    return o;
}

void rt_output_end(void) {
    fflush(stdout);
    fflush(stderr);
    if (out != NULL)
        finish(out);
    if (err != NULL)
        finish(err);
}

// At exit a GPU's driver frees memory, which no thread may use then.
static void leave(void) {
    rt_output_end();
    if (out != NULL)
        stop(out);
    if (err != NULL)
        stop(err);
}

void rt_output_begin(void) {
    out = replace(&stdout, STDOUT_FILENO, true);
    err = replace(&stderr, STDERR_FILENO, false);
    atexit(leave);
}

bool rt_output_complete(void) {
    bool good = fflush(stdout) == 0 && !ferror(stdout);
    return (out == NULL || finish(out)) && good;
}

void rt_leave(int status) {
    fflush(NULL);
    rt_output_end();
    _Exit(status);
}

const char *rt_output_reason(int reason) {
    return reason == ETIMEDOUT ? "its reader was too slow" : strerror(reason);
}
