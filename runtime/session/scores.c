// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scores: the outputs and labels of all rows of an evaluation, and the area
// under the ROC curve, which depends on their order.
//
// The evaluation stores those of a batch in two states
// (frontend/functions/metric.c), and the host copies them after each batch.
// Memory for all batches is allocated before the first step.

#include "runtime/session/session.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    double score;
    bool positive;
} Ranked;

struct RtScores {
    const RtState *output, *label; // of a batch: f32[rows, columns], and f32[
                                   // rows, 1] or f32[rows, columns]
    int64_t all;      // rows of all batches
    float *outputs;   // [all, columns]
    float *labels;    // [all, 1] classes; [all, columns] 0 or 1; -1: no label
    double *log_sums; // [all]: log sum exp of the outputs of a row
    Ranked *ranked;   // [all]
};

// ---- memory ----

static const RtState *output_of(const RtPlan *plan) {
    return rt_state_find(plan, "metric.scores");
}

static const RtState *label_of(const RtPlan *plan) {
    return rt_state_find(plan, "metric.scores.label");
}

static int64_t eval_batches(const RtRun *run) {
    return (rt_eval_split(run)->count - 1) / run->trainer->batch + 1;
}

// qsort takes a copy of its array.
size_t rt_scores_bytes(const RtRun *run) {
    if (run->plan == NULL || output_of(run->plan) == NULL)
        return 0;
    size_t bytes = rt_state_bytes(output_of(run->plan)) +
                   rt_state_bytes(label_of(run->plan)) +
                   (size_t)output_of(run->plan)->dim[0] *
                       (sizeof(double) + 2 * sizeof(Ranked));
    return __builtin_mul_overflow(bytes, (size_t)eval_batches(run), &bytes)
               ? SIZE_MAX
               : bytes;
}

bool rt_session_open_scores(RtSession *s, RtError *e) {
    if (output_of(s->plan) == NULL)
        return true;
    RtScores *of = s->scores = calloc(1, sizeof *of);
    if (of == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    size_t batches = (size_t)eval_batches(s->run);
    of->output = output_of(s->plan);
    of->label = label_of(s->plan);
    of->all = of->output->dim[0] * (int64_t)batches;
    of->outputs = calloc(batches, rt_state_bytes(of->output));
    of->labels = calloc(batches, rt_state_bytes(of->label));
    of->log_sums = calloc((size_t)of->all, sizeof *of->log_sums);
    of->ranked = calloc((size_t)of->all, sizeof *of->ranked);
    return (of->outputs != NULL && of->labels != NULL &&
            of->log_sums != NULL && of->ranked != NULL) ||
           rt_fail(e, EXIT_MEMORY, "out of memory for the metric auc");
}

void rt_scores_free(RtScores *of) {
    if (of == NULL)
        return;
    free(of->outputs);
    free(of->labels);
    free(of->log_sums);
    free(of->ranked);
    free(of);
}

void rt_session_add_scores(RtSession *s, int64_t batch) {
    const RtScores *of = s->scores;
    if (of == NULL)
        return;
    size_t outputs = rt_state_bytes(of->output),
           labels = rt_state_bytes(of->label);
    s->device->read(s->device, (char *)of->outputs + (size_t)batch * outputs,
                    of->output->offset, outputs);
    s->device->read(s->device, (char *)of->labels + (size_t)batch * labels,
                    of->label->offset, labels);
}

// ---- the area ----

static double log_sum_exp(const float *x, int64_t count) {
    double most = (double)x[0], sum = 0;
    for (int64_t k = 1; k < count; k++)
        most = fmax(most, (double)x[k]);
    for (int64_t k = 0; k < count; k++)
        sum += exp((double)x[k] - most);
    return most + log(sum);
}

// Classes are ranked by the logarithm of their softmax, logits by themselves.
static void normalize(const RtScores *of) {
    int64_t columns = of->output->dim[1];
    for (int64_t i = 0; i < of->all && of->label->dim[1] < columns; i++)
        of->log_sums[i] = log_sum_exp(of->outputs + i * columns, columns);
}

// The counted rows of a column; returns their number, or -1 for a score that is
// NaN.
static int64_t rank_column(const RtScores *of, int64_t k) {
    int64_t columns = of->output->dim[1], count = 0;
    bool classes = of->label->dim[1] < columns;
    for (int64_t i = 0; i < of->all; i++) {
        float label = of->labels[classes ? i : i * columns + k];
        double score =
            (double)of->outputs[i * columns + k] - of->log_sums[i];
        if (label < 0)
            continue;
        if (isnan(score))
            return -1;
        of->ranked[count++] =
            (Ranked){score, classes ? label == (float)k : label > 0};
    }
    return count;
}

static int by_score(const void *a, const void *b) {
    double x = ((const Ranked *)a)->score, y = ((const Ranked *)b)->score;
    return (x > y) - (x < y);
}

// The share of pairs of a positive and a negative row in which the positive one
// has the higher score, where a tie counts a half (Mann and Whitney, 1947).
// NAN: there are no pairs.
static double area_under(const Ranked *row, int64_t count) {
    double below = 0, positives = 0, pairs = 0;
    for (int64_t i = 0, end; i < count; i = end) {
        double tied[2] = {0, 0};
        for (end = i; end < count && row[end].score == row[i].score; end++)
            tied[row[end].positive]++;
        pairs += tied[1] * (below + tied[0] / 2);
        below += tied[0];
        positives += tied[1];
    }
    return pairs / (positives * below);
}

double rt_session_auc(const RtSession *s) {
    const RtScores *of = s->scores;
    double sum = 0, measured = 0;
    if (of == NULL)
        return (double)NAN;
    normalize(of);
    for (int64_t k = 0; k < of->output->dim[1]; k++) {
        int64_t count = rank_column(of, k);
        if (count < 0)
            return (double)NAN;
        qsort(of->ranked, (size_t)count, sizeof *of->ranked, by_score);
        double area = area_under(of->ranked, count);
        sum += isnan(area) ? 0 : area;
        measured += !isnan(area);
    }
    return sum / measured;
}
