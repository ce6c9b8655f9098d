// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launch times: the time of each training launch in a trace, longest first.

#include "runtime/report/report.h"

#include <math.h>
#include <stdlib.h>

static bool holds(const RtStep *s, const RtLaunch *launch) {
    return launch >= s->launch && launch < s->launch + s->num_launches;
}

// Evaluation launches, and batch copies, do not count.
static bool is_training(const RtPlan *plan, const RtSpan *span) {
    for (int i = 0; span->launches > 0 && i < plan->num_steps; i++) {
        const RtStep *s = &plan->step[i];
        bool trains = (s->kind >= RT_TRAIN && s->kind <= RT_ACCUMULATE) ||
                      s->kind == RT_AVERAGE;
        if (trains && s->launch != NULL && holds(s, span->launch))
            return true;
    }
    return false;
}

// The order of the steps' launch tables.
static int launch_order(const void *a, const void *b) {
    const RtLaunchTime *x = a, *y = b;
    uintptr_t m = (uintptr_t)x->span.launch, n = (uintptr_t)y->span.launch;
    if (m != n)
        return m < n ? -1 : 1;
    return x->span.launches - y->span.launches;
}

static int time_order(const void *a, const void *b) {
    const RtLaunchTime *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds > y->seconds ? -1 : 1;
    return launch_order(a, b);
}

// Adds up equal launches of several steps; returns their number.
static int merge(RtLaunchTime *l, int count) {
    int last = -1;
    for (int i = 0; i < count; i++) {
        if (last < 0 || launch_order(&l[last], &l[i]) != 0) {
            l[++last] = l[i];
            continue;
        }
        l[last].seconds += l[i].seconds;
        l[last].times += l[i].times;
    }
    return last + 1;
}

RtLaunchTime *rt_launch_times(const RtTrace *t, const RtPlan *plan,
                              int *count) {
    int spans;
    const RtSpan *span = rt_trace_spans(t, &spans);
    RtLaunchTime *l = calloc((size_t)spans + 1, sizeof *l);
    *count = 0;
    if (l == NULL)
        return NULL;
    for (int i = 0; i < spans; i++)
        if (is_training(plan, &span[i]))
            l[(*count)++] =
                (RtLaunchTime){span[i], span[i].end - span[i].begin, 1};
    qsort(l, (size_t)*count, sizeof *l, launch_order);
    *count = merge(l, *count);
    qsort(l, (size_t)*count, sizeof *l, time_order);
    return l;
}

// ---- the table ----

static void print_launch_time(FILE *f, const RtLaunchTime *l, double whole,
                              const char *what) {
    fprintf(f, "%10.1f %6.1f %%  %s", 1e6 * l->seconds / (double)l->times,
            100 * l->seconds / fmax(whole, 1e-9), what);
}

static void print_origin(FILE *f, const RtSpan *s) {
    const char *path = s->launch[s->launches - 1].path;
    char lines[512];
    rt_span_lines(lines, sizeof lines, s);
    fprintf(f, "%s%s%s%s\n", *lines != '\0' ? "  " : "", lines,
            *path != '\0' ? "  " : "", path);
}

void rt_launch_times_print(FILE *f, const RtLaunchTime *l, int count) {
    enum { SHOWN = 10 };
    RtLaunchTime others = {0};
    double whole = 0;
    char words[32];
    for (int i = 0; i < count; i++)
        whole += l[i].seconds;
    fprintf(f, "\n   mean us   share  launches by time\n");
    for (int i = 0; i < count && i < SHOWN; i++) {
        print_launch_time(f, &l[i], whole, l[i].span.name);
        print_origin(f, &l[i].span);
    }
    for (int i = SHOWN; i < count; i++) {
        others.seconds += l[i].seconds;
        others.times += l[i].times;
    }
    snprintf(words, sizeof words, "%d other%s\n", count - SHOWN,
             count == SHOWN + 1 ? "" : "s");
    if (count > SHOWN)
        print_launch_time(f, &others, whole, words);
    fputc('\n', f);
}
