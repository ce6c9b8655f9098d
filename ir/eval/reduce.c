// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reduce: operations that make one number of many.
#include "ir/eval/broadcast.h"
#include "ir/eval/rule.h"

#include <math.h>

// ---- along axes ----

// Takes elements that lie in a row into a result: all into one (step 0), or
// each into one (step 1).  mean: of the elements of each result, or NULL.
typedef void RunTake(double *restrict out, const double *restrict x,
                     const double *restrict mean, int64_t count, int64_t step);

static void runs_take(const Eval *e, RunTake *take, double *out,
                      const double *mean) {
    const double *x = arg(e, 0);
    BroadcastWalk p = broadcast_walk(*arg_type(e, 0), *e->n->type);
    int64_t left = type_count(arg_type(e, 0));
    for (int64_t some, at; left > 0; left -= some, x += some) {
        some = broadcast_next(&p, left, &at);
        take(out + at, x, mean ? mean + at : NULL, some, p.step[0]);
    }
}

static void run_add(double *restrict out, const double *restrict x,
                    const double *restrict mean, int64_t count, int64_t step) {
    (void)mean;
    if (step == 0) {
        double sum = *out;
        for (int64_t i = 0; i < count; i++)
            sum += x[i];
        *out = sum;
        return;
    }
    for (int64_t i = 0; i < count; i++)
        out[i] += x[i];
}

void eval_sum(const Eval *e) {
    runs_take(e, run_add, e->out, NULL);
}

static void run_largest(double *restrict out, const double *restrict x,
                        const double *restrict mean, int64_t count,
                        int64_t step) {
    (void)mean;
    for (int64_t i = 0; i < count; i++)
        if (larger(x[i], out[i * step]))
            out[i * step] = x[i];
}

void eval_max(const Eval *e) {
    for (int64_t i = 0; i < type_count(e->n->type); i++)
        e->out[i] = -INFINITY;
    runs_take(e, run_largest, e->out, NULL);
}

static void run_square(double *restrict out, const double *restrict x,
                       const double *restrict mean, int64_t count,
                       int64_t step) {
    for (int64_t i = 0; i < count; i++) {
        double away = x[i] - mean[i * step];
        out[i * step] += away * away;
    }
}

// Two passes: the means first, then the squares of differences from them.
void eval_var(const Eval *e) {
    int64_t count = type_count(arg_type(e, 0)), kept = type_count(e->n->type);
    double each = kept ? (double)(count / kept) : 0;
    double *mean = ARENA_ARRAY(e->arena, (size_t)kept + 1, double);
    runs_take(e, run_add, mean, NULL);
    for (int64_t i = 0; i < kept; i++)
        mean[i] /= each;
    runs_take(e, run_square, e->out, mean);
    for (int64_t i = 0; i < kept; i++)
        e->out[i] /= each;
}

// ---- of whole tensors and rows ----

void eval_argmax(const Eval *e) {
    Type t = *arg_type(e, 0);
    int64_t K = t.dim[t.rank - 1];
    for (int64_t m = 0; m < type_count(e->n->type); m++) {
        const double *row = arg(e, 0) + m * K;
        int64_t best = 0;
        for (int64_t k = 1; k < K; k++)
            if (row[k] > row[best] || (isnan(row[k]) && !isnan(row[best])))
                best = k;
        e->out[m] = (double)best;
    }
}

void eval_all_finite(const Eval *e) {
    e->out[0] = 1;
    for (int k = 0; k < e->n->num_args; k++) {
        int64_t count = type_count(arg_type(e, k));
        for (int64_t i = 0; i < count; i++)
            if (!isfinite(arg(e, k)[i]))
                e->out[0] = 0;
    }
}

void eval_total(const Eval *e) {
    e->out[0] = 0;
    for (int k = 0; k < e->n->num_args; k++) {
        int64_t count = type_count(arg_type(e, k));
        for (int64_t i = 0; i < count; i++)
            e->out[0] += arg(e, k)[i];
    }
}
