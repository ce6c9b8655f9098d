// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Results: a table with columns as wide as their contents.

#include "runtime/cuda/tune/tune.h"

#include <stdlib.h>
#include <string.h>

RtTuningResult *rt_tuning_results_add(RtTuningResults *t, int group,
                                      const char *way, double seconds,
                                      RtError *e) {
    if (t->count == t->room) {
        int room = t->room > 0 ? 2 * t->room : 64;
        RtTuningResult *grown = realloc(t->row, (size_t)room * sizeof *grown);
        if (grown == NULL) {
            rt_fail(e, EXIT_MEMORY, "out of memory");
            return NULL;
        }
        t->row = grown;
        t->room = room;
    }
    RtTuningResult *row = &t->row[t->count++];
    *row = (RtTuningResult){.group = group, .seconds = seconds};
    snprintf(row->way, sizeof row->way, "%s", way);
    return row;
}

void rt_tuning_results_free(RtTuningResults *t) {
    free(t->row);
    *t = (RtTuningResults){0};
}

void rt_tuning_result_call(RtTuningResult *r, const RtCall *c, unsigned with) {
    static const char *const fusion[] = {
        [RT_FUSED_STATISTICS] = " + statistics",
        [RT_FUSED_PROLOGUE] = " + prologue",
        [RT_FUSED_PROLOGUE_WEIGHT] = " + prologue",
        [RT_FUSED_BACKWARD] = " + backward",
    };
    const char *kind = rt_call_name(c->kind);
    char *to = r->launch;
    const size_t room = sizeof r->launch;
    snprintf(r->model, sizeof r->model, "%s", c->layer);
    if (c->kind > RT_CONV_GRAD_WEIGHT)
        snprintf(to, room, "%s %lld of %dx%dx%d%s%s", kind, (long long)c->batch,
                 c->n, c->c, c->k, c->ta ? " a'" : "", c->tb ? " b'" : "");
    else
        snprintf(to, room, "%s %dx%dx%dx%d by %dx%dx%d", kind, c->n, c->h, c->w,
                 c->c, c->k, c->r, c->s);
    for (int k = 0; k <= RT_FUSED_BACKWARD; k++)
        if (with >> k & 1) {
            size_t at = strlen(to);
            snprintf(to + at, room - at, "%s", fusion[k]);
        }
}

void rt_tuning_result_lines(RtTuningResult *r, const RtStep *step, int launch) {
    const RtLaunch *own = rt_launch_of(step, launch);
    if (own != NULL)
        snprintf(r->model, sizeof r->model, "%s, %s", own->path, own->lines);
}

// ---- the table ----

static int compare(const void *left, const void *right) {
    const RtTuningResult *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->seconds > b->seconds || a->seconds < b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return strcmp(a->way, b->way);
}

typedef struct {
    int launch, model, way;
} Widths;

static int wider(int width, const char *text) {
    int length = (int)strlen(text);
    return length > width ? length : width;
}

static void print_row(FILE *f, const RtTuningResult *r, bool again,
                      const Widths *w) {
    fprintf(f, "%-*s  %-*s  %-*s ", w->launch, again ? "" : r->launch, w->model,
            again ? "" : r->model, w->way, r->way);
    if (r->seconds > 1e6)
        fprintf(f, "%10s", "fails");
    else
        fprintf(f, "%10.2f", 1e6 * r->seconds);
    fprintf(f, "%s\n", r->chosen ? "  chosen" : "");
}

void rt_tuning_results_print(FILE *f, const RtTuningResults *t) {
    Widths w = {6, 5, 3};
    for (int i = 0; i < t->count; i++) {
        w.launch = wider(w.launch, t->row[i].launch);
        w.model = wider(w.model, t->row[i].model);
        w.way = wider(w.way, t->row[i].way);
    }
    if (t->count > 0)
        qsort(t->row, (size_t)t->count, sizeof *t->row, compare);
    fprintf(f, "%-*s  %-*s  %-*s %10s\n", w.launch, "launch", w.model, "model",
            w.way, "way", "us");
    for (int i = 0; i < t->count; i++)
        print_row(f, &t->row[i],
                  i > 0 && t->row[i].group == t->row[i - 1].group &&
                      strcmp(t->row[i].launch, t->row[i - 1].launch) == 0,
                  &w);
}
