// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Signals: the first one requests a stop after the current step, a later one
// ends the program at once.  Signals within half a second count as one:
// timeout(1) and schedulers signal a program and then its process group.  A
// signal that was ignored at the start (nohup, a background job) stays ignored.
// A closed pipe or a file size limit is an error of its write, not the end of a
// long run.  A page of a mapped file that has become shorter, or whose disk
// fails, ends the program as a failed read does.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { GROUP_NANOSECONDS = 500000000 }; // nanoseconds

// Any thread may receive a signal, and two threads two at once.
static atomic_int caught;
// The signal that all ranks act on, where there are several.
static atomic_int agreed;
static atomic_bool together;
static atomic_llong first; // time of the first signal; 0: none

static long long nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1000000000LL * t.tv_sec + t.tv_nsec;
}

static void catch (int number) {
    long long now = nanoseconds(), before = 0;
    if (atomic_compare_exchange_strong(&first, &before, now)) {
        caught = number;
    } else if (now - before >= GROUP_NANOSECONDS) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

static void end_unread(int number) {
    static const char text[] = "error: a data file cannot be read: it has "
                               "become shorter, or its disk fails\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)number;
    (void)written;
    _Exit(EXIT_IO);
}

void rt_signals_catch(void) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGBUS, end_unread);
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now = {.sa_handler = catch, .sa_flags = SA_RESTART};
    sigemptyset(&now.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction before;
        sigaction(numbers[i], NULL, &before);
        if (before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &now, NULL);
    }
}

int rt_signals_caught(void) {
    return together ? agreed : caught;
}

int rt_signals_pending(void) {
    return caught;
}

void rt_signals_together(void) {
    together = true;
}

void rt_signals_agree(int number) {
    agreed = number;
}

void rt_signals_raise(int number) {
    rt_output_end();
    signal(number, SIG_DFL);
    raise(number);
}
