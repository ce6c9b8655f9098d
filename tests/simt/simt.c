// The scheduler of the faithful mode: one fiber for each CUDA thread.
//
// A round runs every thread that can run until it waits or ends, then resolves
// shuffles, then barriers.  When nothing can be resolved the threads of the
// block have diverged, which is reported with the line where each waits.
#include "tests/simt/simt.h"
#include "tests/simt/fiber.h"
#include "tests/simt/races.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIBRARIES = 64 };

typedef enum { RUNS, AT_BARRIER, AT_SHUFFLE, ENDED } ThreadState;

// A thread of the block that is running.
typedef struct {
    struct SimtThread self;
    Fiber *fiber;
    ThreadState state;
    const char *file; // where it waits
    int line;
    unsigned value; // offered to the shuffle, then its result
    int lane;
} Thread;

static Thread thread[SIMT_MAX_BLOCK];
static int order[SIMT_MAX_BLOCK];
static int block_size;
static Thread *running;
static SimtSchedule schedule;
static unsigned random_state;
static struct {
    void (*thread)(char *arena, const size_t *arg);
    char *arena;
    const size_t *arg;
} kernel;

struct SimtThread *simt_self;

// One launch at a time: a runtime may start its blocks from several threads.
static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;

// The shared variables of each program and library that is loaded.  Each access
// is looked up in them, so there are no gaps.
static struct { char *start, *stop; } shared[MAX_LIBRARIES];
static int num_shared;

void simt_shared_add(char *start, char *stop) {
    if (start == stop)
        return;
    if (num_shared == MAX_LIBRARIES) {
        fputs("simt: too many libraries are loaded\n", stderr);
        abort();
    }
    shared[num_shared].start = start;
    shared[num_shared++].stop = stop;
}

void simt_shared_forget(const char *start) {
    for (int i = num_shared; i-- > 0;)
        if (shared[i].start == start)
            shared[i] = shared[--num_shared];
}

bool simt_is_shared(const void *p) {
    const char *at = p;
    for (int i = 0; i < num_shared; i++)
        if (at >= shared[i].start && at < shared[i].stop)
            return true;
    return false;
}

static void shared_poison(void) {
    for (int i = 0; i < num_shared; i++)
        memset(shared[i].start, 0xff,
               (size_t)(shared[i].stop - shared[i].start));
}

void simt_schedule(SimtSchedule s, unsigned seed) {
    schedule = s;
    random_state = seed;
}

bool simt_on_stack(const void *p) {
    return running && fiber_owns(running->fiber, p);
}

static unsigned random_below(unsigned n) {
    random_state = random_state * 1664525u + 1013904223u;
    return (unsigned)((unsigned long long)(random_state >> 8) * n >> 24);
}

static void shuffle_order(int *at, int count) {
    for (int i = count - 1; i > 0; i--) {
        int j = (int)random_below((unsigned)i + 1), was = at[i];
        at[i] = at[j];
        at[j] = was;
    }
}

static void thread_body(void) {
    kernel.thread(kernel.arena, kernel.arg);
    running->state = ENDED;
    fiber_leave(running->fiber);
}

static void thread_wait(ThreadState state, const char *file, int line) {
    running->state = state;
    running->file = file;
    running->line = line;
    fiber_leave(running->fiber);
}

void simt_barrier(const char *file, int line) {
    thread_wait(AT_BARRIER, file, line);
}

unsigned simt_shuffle(unsigned value, int lane, const char *file, int line) {
    running->value = value;
    running->lane = lane;
    thread_wait(AT_SHUFFLE, file, line);
    return running->value;
}

int simt_atomic_add(int *p, int v) {
    int old = *p;
    *p = old + v;
    race_atomic();
    return old;
}

// Runs each thread that can run.  False when there was none.
static bool threads_run(void) {
    if (schedule == SIMT_RANDOM)
        shuffle_order(order, block_size);
    bool any = false;
    for (int i = 0; i < block_size; i++) {
        Thread *t = &thread[order[i]];
        if (t->state != RUNS)
            continue;
        any = true;
        running = t;
        simt_self = &t->self;
        fiber_enter(t->fiber);
    }
    running = NULL;
    return any;
}

static void thread_fault(const Thread *t, const char *what, int other) {
    char place[400];
    snprintf(place, sizeof place, "%s:%d: %s", t->file, t->line, what);
    simt_fault_add(place, "block %d thread %d and thread %d", t->self.block,
                   t->self.thread, other);
}

// Exchanges the values of one warp whose lanes all wait at a shuffle.  False
// when they do not.
static bool warp_shuffle(Thread *lane, int lanes) {
    unsigned value[SIMT_WARP];
    for (int i = 0; i < lanes; i++) {
        if (lane[i].state != AT_SHUFFLE)
            return false;
        value[i] = lane[i].value;
    }
    for (int i = 0; i < lanes; i++) {
        int from = lane[i].lane;
        if (lane[i].line != lane[0].line)
            thread_fault(&lane[i], "lanes of a warp shuffle at different lines",
                         lane[0].self.thread);
        if (from < 0 || from >= lanes)
            thread_fault(&lane[i], "a shuffle from a lane that is not there",
                         lane[0].self.thread + from);
        else
            lane[i].value = value[from];
        lane[i].state = RUNS;
    }
    return true;
}

static bool warps_shuffle(void) {
    bool any = false;
    for (int first = 0; first < block_size; first += SIMT_WARP) {
        int left = block_size - first;
        if (warp_shuffle(&thread[first], left < SIMT_WARP ? left : SIMT_WARP))
            any = true;
    }
    return any;
}

static bool threads_all(ThreadState state) {
    for (int i = 0; i < block_size; i++)
        if (thread[i].state != state)
            return false;
    return true;
}

// Lets the block go on when all of its threads wait at a barrier.
static bool block_barrier(void) {
    if (!threads_all(AT_BARRIER))
        return false;
    for (int i = 0; i < block_size; i++) {
        if (thread[i].line != thread[0].line)
            thread_fault(&thread[i], "threads wait at different barriers", 0);
        thread[i].state = RUNS;
    }
    race_barrier();
    return true;
}

// Reports the first thread that waits and the first that does not wait with it.
static void divergence_report(void) {
    int waits = 0, other = 0;
    while (thread[waits].state == ENDED)
        waits++;
    while (other < block_size - 1 && thread[other].state == thread[waits].state)
        other++;
    thread_fault(&thread[waits],
                 thread[waits].state == AT_BARRIER
                     ? "a barrier that not every thread reaches"
                     : "a shuffle that not every lane reaches",
                 other);
}

static void block_prepare(int block, int grid) {
    shared_poison();
    for (int i = 0; i < block_size; i++) {
        Thread *t = &thread[i];
        if (!t->fiber)
            t->fiber = fiber_new();
        fiber_reset(t->fiber, thread_body);
        t->self = (struct SimtThread){i, block, grid};
        t->state = RUNS;
        order[i] = schedule == SIMT_DESCENDING ? block_size - 1 - i : i;
    }
    race_block();
}

static void block_run(int block, int grid) {
    block_prepare(block, grid);
    while (threads_run() || warps_shuffle() || block_barrier())
        continue;
    if (!threads_all(ENDED))
        divergence_report();
}

static void launch_run(int first, int last, int grid) {
    race_launch(grid, kernel.arg);
    for (int i = first; i < last; i++)
        block_run(schedule == SIMT_DESCENDING ? last - 1 - (i - first) : i,
                  grid);
    simt_self = NULL;
}

void simt_run(void (*entry)(char *arena, const size_t *arg), char *arena,
              const size_t *arg, int first, int last, int grid, int block) {
    assert(block > 0 && block <= SIMT_MAX_BLOCK);
    pthread_mutex_lock(&busy);
    kernel.thread = entry;
    kernel.arena = arena;
    kernel.arg = arg;
    block_size = block;
    launch_run(first, last, grid);
    pthread_mutex_unlock(&busy);
}
