// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clock: the one source of time, for budgets and rates.  No result depends on
// it.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"

#include <time.h>

double rt_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void rt_lap(RtLaps *l, RtStart part) {
    if (l == NULL)
        return;
    double now = rt_seconds();
    l->part[part] += now - l->last;
    l->last = now;
}
