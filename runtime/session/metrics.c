// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Metrics: those of an evaluation that are computed from counts of classes or
// labels, and from moments of values.  frontend/functions/metric.c adds the
// sums.

#include "runtime/session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// ---- sums ----

// Reads a state of sums and adds what their compensation has; the caller frees
// them.  NULL: the plan has none, or no memory.
static double *sums_read(const RtSession *s, const char *name, int64_t *count) {
    char low[64];
    const RtState *high = rt_state_find(s->plan, name);
    snprintf(low, sizeof low, "%s.low", name);
    if (high == NULL)
        return NULL;
    const RtState *part[] = {high, rt_state_find(s->plan, low)};
    size_t bytes = rt_state_bytes(high);
    *count = (int64_t)(bytes / sizeof(float));
    float *read = malloc(bytes);
    double *sum = calloc((size_t)*count, sizeof *sum);
    for (int i = 0; i < 2 && read != NULL && sum != NULL; i++) {
        s->device->read(s->device, read, part[i]->offset, bytes);
        for (int64_t k = 0; k < *count; k++)
            sum[k] += (double)read[k];
    }
    if (read == NULL) {
        free(sum);
        sum = NULL;
    }
    free(read);
    return sum;
}

static double sum_read(const RtSession *s, const char *name) {
    int64_t count;
    double *sum = sums_read(s, name, &count);
    double value = sum != NULL ? sum[0] : (double)NAN;
    free(sum);
    return value;
}

// ---- classes and labels ----

// The samples of a class or a label: true positives, those that have it, and
// those that are predicted to.
typedef struct {
    double both, given, found;
} Counts;

static void add_counts(double value[NUM_METRICS], Counts c, double share) {
    double either = c.given + c.found;
    value[METRIC_precision] += c.found > 0 ? share * c.both / c.found : 0;
    value[METRIC_recall] += c.given > 0 ? share * c.both / c.given : 0;
    value[METRIC_f1] += either > 0 ? share * 2 * c.both / either : 0;
    value[METRIC_iou] += either > 0 ? share * c.both / (either - c.both) : 0;
}

// Means over all labels, or over the classes that occur, as scikit-learn's with
// zero_division=0.
static void measure_counts(const Counts *c, int64_t count, bool labels,
                           double value[NUM_METRICS]) {
    Counts all = {0, 0, 0};
    double micro[NUM_METRICS] = {0}, occur = 0;
    for (int64_t k = 0; k < count; k++) {
        occur += labels || c[k].given + c[k].found > 0;
        all.both += c[k].both;
        all.given += c[k].given;
        all.found += c[k].found;
    }
    value[METRIC_precision] = value[METRIC_recall] = value[METRIC_f1] =
        value[METRIC_iou] = occur > 0 ? 0 : (double)NAN;
    for (int64_t k = 0; k < count; k++)
        add_counts(value, c[k], 1 / occur);
    add_counts(micro, all, 1);
    value[METRIC_precision_micro] = micro[METRIC_precision];
    value[METRIC_recall_micro] = micro[METRIC_recall];
    value[METRIC_f1_micro] = micro[METRIC_f1];
}

// The counts of each class in a confusion matrix.
static void count_classes(Counts *c, const double *matrix, int64_t classes) {
    for (int64_t i = 0; i < classes; i++)
        for (int64_t k = 0; k < classes; k++) {
            double samples = matrix[i * classes + k];
            c[i].given += samples;
            c[k].found += samples;
            c[i].both += i == k ? samples : 0;
        }
}

static void count_labels(const RtSession *s, Counts *c, const double *both,
                         int64_t labels) {
    double *given = sums_read(s, "metric.counts.label", &labels);
    double *found = sums_read(s, "metric.counts.output", &labels);
    for (int64_t k = 0; k < labels && given != NULL && found != NULL; k++)
        c[k] = (Counts){both[k], given[k], found[k]};
    free(given);
    free(found);
}

static void measure_classes(RtSession *s, RtRow *row) {
    const RtTrainer *t = s->run->trainer;
    int64_t count = 0;
    double *sum = sums_read(s, "metric.counts", &count);
    bool is_matrix = t->output == RT_CLASSES;
    int64_t classes = is_matrix ? (int64_t)lround(sqrt((double)count)) : count;
    Counts *c = calloc((size_t)classes + 1, sizeof *c);
    free(s->confusion);
    s->confusion = NULL;
    if (sum != NULL && c != NULL && is_matrix)
        count_classes(c, sum, classes);
    else if (sum != NULL && c != NULL)
        count_labels(s, c, sum, classes);
    if (sum != NULL && c != NULL)
        measure_counts(c, classes, !is_matrix, row->metric);
    if (is_matrix && t->metrics >> METRIC_confusion & 1) {
        row->confusion = s->confusion = sum;
        row->classes = classes;
        sum = NULL;
    }
    free(sum);
    free(c);
}

// ---- values ----

// 1 - squared errors / squared deviations from the mean, for each column; their
// mean, as scikit-learn's r2_score.
static void measure_moments(const RtSession *s, RtRow *row) {
    int64_t columns = 0;
    double *deviation = sums_read(s, "metric.moments", &columns);
    double *error = sums_read(s, "metric.moments.error", &columns);
    double *r2 = &row->metric[METRIC_r2], sum = 0;
    for (int64_t k = 0; k < columns && deviation != NULL && error != NULL; k++)
        sum += deviation[k] > 0 ? 1 - error[k] / deviation[k]
                                : (double)(error[k] == 0);
    *r2 = sum / (double)columns;
    free(deviation);
    free(error);
}

// Divides sums by the weights of rows, or by the rows that count, instead of
// the samples.
static void weigh(const RtSession *s, RtRow *row, double samples) {
    double weights = sum_read(s, "metric.weights");
    double counted = sum_read(s, "metric.counted");
    double *value = row->metric;
    if (weights > 0) {
        value[METRIC_loss] *= samples / weights;
        if (s->run->trainer->metrics >> METRIC_perplexity & 1)
            value[METRIC_perplexity] = exp(value[METRIC_loss]);
    }
    if (counted > 0) {
        value[METRIC_accuracy] *= samples / counted;
        value[METRIC_top5] *= samples / counted;
    }
}

void rt_session_measure_sums(RtSession *s, RtRow *row, double samples) {
    weigh(s, row, samples);
    measure_classes(s, row);
    row->metric[METRIC_mae] = sum_read(s, "metric.errors") / samples;
    row->metric[METRIC_rmse] =
        sqrt(sum_read(s, "metric.errors.square") / samples);
    measure_moments(s, row);
    row->metric[METRIC_auc] = rt_session_auc(s);
    for (int i = METRIC_precision; i < NUM_METRICS; i++)
        if (!(s->run->trainer->metrics >> i & 1))
            row->metric[i] = NAN;
}
