// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Evaluation sums: those of single batches, added in the order of batches.
//
// The states of metrics begin each batch at 0.  Compensated sums (NAME and
// NAME.low) are added in double, and moments as Chan, Golub and LeVeque (1979)
// do; frontend/functions/metric.c computes them.
//
// All ranks take those of a batch of each at once, with a sum over ranks in
// which the others' are 0; large ones, as confusion matrices, of one rank after
// another.

#include "runtime/session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Sums of one metric.  Moments are squared deviations; their means and number of
// rows are values of a batch, too.
typedef struct {
    const RtState *high, *low, *mean, *rows; // mean and rows: NULL of others
    size_t count, at; // elements; the first one, in the buffers below
    size_t mean_at, rows_at;
} Sum;

enum { MAX_AT_ONCE = 1 << 16 }; // floats of all ranks

struct RtEvalSums {
    Sum *sum; // [num_sums]
    int num_sums;
    size_t values; // of a batch
    int ranks;
    bool at_once;
    float *batch;  // [ranks, values] at once; else [values]
    double *total; // [values]
};

static const RtState *part_of(const RtPlan *plan, const RtState *s,
                              const char *part) {
    char name[256];
    snprintf(name, sizeof name, "%s.%s", s->name, part);
    return rt_state_find(plan, name);
}

static size_t reserve(RtEvalSums *e, const RtState *s) {
    size_t at = e->values;
    if (s != NULL)
        e->values += rt_state_bytes(s) / sizeof(float);
    return at;
}

static void add_sum(RtEvalSums *e, const RtPlan *plan, const RtState *s) {
    Sum sum = {.high = s,
               .low = part_of(plan, s, "low"),
               .mean = part_of(plan, s, "mean"),
               .rows = part_of(plan, s, "rows"),
               .count = rt_state_bytes(s) / sizeof(float)};
    if (sum.low == NULL)
        return;
    sum.at = reserve(e, sum.high);
    sum.mean_at = reserve(e, sum.mean);
    sum.rows_at = reserve(e, sum.rows);
    e->sum[e->num_sums++] = sum;
}

static void find_sums(RtEvalSums *e, const RtPlan *plan) {
    for (int i = 0; i < plan->num_states; i++)
        if (plan->state[i].kind == RT_METRIC)
            add_sum(e, plan, &plan->state[i]);
}

bool rt_session_open_sums(RtSession *s, RtError *e) {
    if (s->run->trainer->shards == 0)
        return true;
    RtEvalSums *of = s->sums = calloc(1, sizeof *of);
    if (of == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    of->sum = calloc((size_t)s->plan->num_states + 1, sizeof *of->sum);
    if (of->sum == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    find_sums(of, s->plan);
    of->ranks = rt_world_size(s->run->world);
    of->at_once = (size_t)of->ranks * of->values <= MAX_AT_ONCE;
    size_t taken = of->at_once ? (size_t)of->ranks : 1;
    of->batch = calloc(taken * of->values + 1, sizeof *of->batch);
    of->total = calloc(of->values + 1, sizeof *of->total);
    return (of->batch != NULL && of->total != NULL) ||
           rt_fail(e, EXIT_MEMORY, "out of memory");
}

void rt_eval_sums_free(RtEvalSums *e) {
    if (e == NULL)
        return;
    free(e->sum);
    free(e->batch);
    free(e->total);
    free(e);
}

void rt_session_sums_begin(RtSession *s) {
    if (s->sums != NULL)
        memset(s->sums->total, 0, s->sums->values * sizeof *s->sums->total);
}

// ---- one batch ----

static void read_state(const RtSession *s, const RtState *from, float *to) {
    if (from != NULL)
        s->device->read(s->device, to, from->offset, rt_state_bytes(from));
}

// The compensation of a single batch is 0.
static void read_batch(const RtSession *s, float *to) {
    for (int i = 0; i < s->sums->num_sums; i++) {
        const Sum *sum = &s->sums->sum[i];
        read_state(s, sum->high, to + sum->at);
        read_state(s, sum->mean, to + sum->mean_at);
        read_state(s, sum->rows, to + sum->rows_at);
    }
}

// Adds the squared deviations of a batch, and moves the means.
static void add_moments(RtEvalSums *e, const Sum *s, const float *batch) {
    double before = e->total[s->rows_at], rows = (double)batch[s->rows_at];
    double all = before + rows;
    for (size_t k = 0; k < s->count && rows > 0; k++) {
        double *mean = &e->total[s->mean_at + k];
        double moved = (double)batch[s->mean_at + k] - *mean;
        e->total[s->at + k] +=
            (double)batch[s->at + k] + moved * moved * before * rows / all;
        *mean += moved * rows / all;
    }
    e->total[s->rows_at] = all;
}

static void add_batch(RtEvalSums *e, const float *batch) {
    for (int i = 0; i < e->num_sums; i++) {
        const Sum *s = &e->sum[i];
        if (s->mean != NULL)
            add_moments(e, s, batch);
        else
            for (size_t k = 0; k < s->count; k++)
                e->total[s->at + k] += (double)batch[s->at + k];
    }
}

static void add_at_once(const RtSession *s, int batches) {
    RtEvalSums *e = s->sums;
    int rank = rt_world_rank(s->run->world);
    size_t all = (size_t)e->ranks * e->values;
    memset(e->batch, 0, all * sizeof *e->batch);
    if (rank < batches)
        read_batch(s, e->batch + (size_t)rank * e->values);
    rt_world_sum(s->run->world, &(RtBuffer){.memory = e->batch}, all);
    for (int i = 0; i < batches; i++)
        add_batch(e, e->batch + (size_t)i * e->values);
}

// The sum tells whether a rank has no data.
static void add_in_turn(const RtSession *s, int batches) {
    RtEvalSums *e = s->sums;
    RtWorld *w = s->run->world;
    int rank = rt_world_rank(w), ignored;
    float nothing = 0;
    rt_world_sum(w, &(RtBuffer){.memory = &nothing}, 1);
    for (int i = 0; i < batches && rt_world_failed(w, &ignored) < 0; i++) {
        if (rank == i)
            read_batch(s, e->batch);
        rt_world_broadcast(w, i, &(RtBuffer){.memory = e->batch},
                           e->values * sizeof *e->batch);
        add_batch(e, e->batch);
    }
}

void rt_session_add_sums(RtSession *s, int batches) {
    RtMetrics none = {.lr = rt_metrics_read(s->plan, s->device).lr};
    if (s->sums->at_once)
        add_at_once(s, batches);
    else
        add_in_turn(s, batches);
    rt_world_agree(s->run->world);
    rt_metrics_write(s->plan, s->device, &none);
    rt_metrics_clear_sums(s->plan, s->device);
}

static void write_sum(const RtSession *s, const Sum *sum) {
    const double *total = s->sums->total + sum->at;
    float *part = s->sums->batch;
    size_t bytes = sum->count * sizeof *part;
    for (size_t k = 0; k < sum->count; k++)
        part[k] = (float)total[k];
    s->device->write(s->device, sum->high->offset, part, bytes);
    for (size_t k = 0; k < sum->count; k++)
        part[k] = isfinite(total[k]) ? (float)(total[k] - (double)part[k]) : 0;
    s->device->write(s->device, sum->low->offset, part, bytes);
}

void rt_session_sums_end(RtSession *s) {
    for (int i = 0; s->sums != NULL && i < s->sums->num_sums; i++)
        write_sum(s, &s->sums->sum[i]);
}
