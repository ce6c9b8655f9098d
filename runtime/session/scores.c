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
#include <string.h>

typedef struct {
    double score;
    bool positive;
} Ranked;

struct RtScores {
    const char *name; // of the model's output; "": it has none
    RtScores *next;
    const RtState *output, *label; // of a batch: f32[rows, columns], and f32[
                                   // rows, 1] or f32[rows, columns]
    int64_t all;      // rows of all batches
    float *outputs;   // [all, columns]
    float *labels;    // [all, 1] classes; [all, columns] 0 or 1; -1: no label
    double *log_sums; // [all]: log sum exp of the outputs of a row
    Ranked *ranked;   // [all]
};

// ---- memory ----

static int64_t eval_batches(const RtRun *run) {
    return (rt_eval_split(run)->count - 1) / run->trainer->batch + 1;
}

// The states of an output; false: it is not ranked.
static bool states_find(const RtPlan *plan, const char *name, RtScores *of) {
    of->name = name;
    of->output = rt_sums_find(plan, name, "scores");
    of->label = rt_sums_find(plan, name, "scores.label");
    return of->output != NULL;
}

// qsort takes a copy of its array.
static size_t bytes_of_batch(const RtScores *of) {
    return rt_state_bytes(of->output) + rt_state_bytes(of->label) +
           (size_t)of->output->dim[0] * (sizeof(double) + 2 * sizeof(Ranked));
}

size_t rt_scores_bytes(const RtRun *run) {
    const RtTrainer *t = run->trainer;
    size_t bytes = 0;
    RtScores of;
    for (int i = 0; run->plan != NULL && i < rt_num_outputs(t); i++)
        if (states_find(run->plan, rt_output_name(t, i), &of))
            bytes += bytes_of_batch(&of);
    return __builtin_mul_overflow(bytes, (size_t)eval_batches(run), &bytes)
               ? SIZE_MAX
               : bytes;
}

static bool scores_allocate(RtScores *of, size_t batches) {
    of->all = of->output->dim[0] * (int64_t)batches;
    of->outputs = calloc(batches, rt_state_bytes(of->output));
    of->labels = calloc(batches, rt_state_bytes(of->label));
    of->log_sums = calloc((size_t)of->all, sizeof *of->log_sums);
    of->ranked = calloc((size_t)of->all, sizeof *of->ranked);
    return of->outputs != NULL && of->labels != NULL && of->log_sums != NULL &&
           of->ranked != NULL;
}

bool rt_session_open_scores(RtSession *s, RtError *e) {
    const RtTrainer *t = s->run->trainer;
    for (int i = 0; i < rt_num_outputs(t); i++) {
        RtScores found = {.next = s->scores};
        if (!states_find(s->plan, rt_output_name(t, i), &found))
            continue;
        RtScores *of = malloc(sizeof *of);
        if (of == NULL)
            return rt_fail(e, EXIT_MEMORY, "out of memory");
        *of = found;
        s->scores = of;
        if (!scores_allocate(of, (size_t)eval_batches(s->run)))
            return rt_fail(e, EXIT_MEMORY, "out of memory for the metric auc");
    }
    return true;
}

void rt_session_close_scores(RtSession *s) {
    for (RtScores *of = s->scores, *next; of != NULL; of = next) {
        next = of->next;
        free(of->outputs);
        free(of->labels);
        free(of->log_sums);
        free(of->ranked);
        free(of);
    }
}

void rt_session_add_scores(RtSession *s, int64_t batch) {
    for (const RtScores *of = s->scores; of != NULL; of = of->next) {
        size_t outputs = rt_state_bytes(of->output),
               labels = rt_state_bytes(of->label);
        s->device->read(s->device,
                        (char *)of->outputs + (size_t)batch * outputs,
                        of->output->offset, outputs);
        s->device->read(s->device, (char *)of->labels + (size_t)batch * labels,
                        of->label->offset, labels);
    }
}

static size_t output_count(const RtScores *of) {
    return (size_t)(of->all * of->output->dim[1]);
}

static size_t label_count(const RtScores *of) {
    return (size_t)(of->all * of->label->dim[1]);
}

void rt_session_clear_scores(RtSession *s) {
    if (s->run->world == NULL)
        return;
    for (const RtScores *of = s->scores; of != NULL; of = of->next) {
        memset(of->outputs, 0, output_count(of) * sizeof *of->outputs);
        memset(of->labels, 0, label_count(of) * sizeof *of->labels);
    }
}

// Rows of other ranks are 0 before.
void rt_session_gather_scores(RtSession *s) {
    RtWorld *w = s->run->world;
    for (const RtScores *of = s->scores; of != NULL; of = of->next) {
        rt_world_sum(w, &(RtBuffer){.memory = of->outputs}, output_count(of));
        rt_world_sum(w, &(RtBuffer){.memory = of->labels}, label_count(of));
    }
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

double rt_session_auc(const RtSession *s, const char *output) {
    const RtScores *of = s->scores;
    double sum = 0, measured = 0;
    while (of != NULL && strcmp(of->name, output) != 0)
        of = of->next;
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
