// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Metrics: those of an evaluation that are computed from counts of classes or
// labels, and from moments of values.  frontend/functions/metric.c adds the
// sums.

#include "runtime/session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- sums ----

int rt_num_outputs(const RtTrainer *t) {
    return t->num_output_names > 0 ? t->num_output_names : 1;
}

const char *rt_output_name(const RtTrainer *t, int i) {
    return t->num_output_names > 0 ? t->output_name[i].name : "";
}

const RtState *rt_sums_find(const RtPlan *plan, const char *output,
                            const char *sums) {
    char name[RT_NAME_BYTES];
    snprintf(name, sizeof name, "metric.%s.%s", output, sums);
    const RtState *own = rt_state_find(plan, name);
    snprintf(name, sizeof name, "metric.%s", sums);
    return own != NULL ? own : rt_state_find(plan, name);
}

// An output whose metrics are computed.
typedef struct {
    const RtSession *s;
    const char *name; // "": it has none
    RtOutputKind kind;
} Output;

// Reads a state of sums and adds what their compensation has; the caller frees
// them.  NULL: the plan has none, or no memory.
static double *sums_read(const Output *o, const char *sums, int64_t *count) {
    char low[RT_NAME_BYTES];
    const RtPlan *plan = o->s->plan;
    const RtState *high = rt_sums_find(plan, o->name, sums);
    if (high == NULL)
        return NULL;
    snprintf(low, sizeof low, "%s.low", high->name);
    const RtState *part[] = {high, rt_state_find(plan, low)};
    size_t bytes = rt_state_bytes(high);
    *count = (int64_t)(bytes / sizeof(float));
    float *read = malloc(bytes);
    double *sum = calloc((size_t)*count, sizeof *sum);
    for (int i = 0; i < 2 && part[i] != NULL && read != NULL && sum != NULL;
         i++) {
        o->s->device->read(o->s->device, read, part[i]->offset, bytes);
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

static double sum_read(const Output *o, const char *sums) {
    int64_t count;
    double *sum = sums_read(o, sums, &count);
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

static void count_labels(const Output *o, Counts *c, const double *both,
                         int64_t labels) {
    double *given = sums_read(o, "counts.label", &labels);
    double *found = sums_read(o, "counts.output", &labels);
    for (int64_t k = 0; k < labels && given != NULL && found != NULL; k++)
        c[k] = (Counts){both[k], given[k], found[k]};
    free(given);
    free(found);
}

// Moves the sums to *keep.
static void measure_classes(const Output *o, double value[NUM_METRICS],
                            RtConfusion *keep) {
    int64_t count = 0;
    double *sum = sums_read(o, "counts", &count);
    bool is_matrix = o->kind == RT_CLASSES;
    int64_t classes = is_matrix ? (int64_t)lround(sqrt((double)count)) : count;
    Counts *c = calloc((size_t)classes + 1, sizeof *c);
    if (sum != NULL && c != NULL && is_matrix)
        count_classes(c, sum, classes);
    else if (sum != NULL && c != NULL)
        count_labels(o, c, sum, classes);
    if (sum != NULL && c != NULL)
        measure_counts(c, classes, !is_matrix, value);
    free(c);
    free(keep->count);
    *keep = (RtConfusion){o->name, sum, classes};
}

// ---- values ----

// 1 - squared errors / squared deviations from the mean, for each column; their
// mean, as scikit-learn's r2_score.
static double measure_moments(const Output *o) {
    int64_t columns = 0;
    double *deviation = sums_read(o, "moments", &columns);
    double *error = sums_read(o, "moments.error", &columns);
    double sum = 0;
    for (int64_t k = 0; k < columns && deviation != NULL && error != NULL; k++)
        sum += deviation[k] > 0 ? 1 - error[k] / deviation[k]
                                : (double)(error[k] == 0);
    free(deviation);
    free(error);
    return sum / (double)columns;
}

// ---- outputs ----

// Divides sums of the loss by the weights of rows instead of the samples, and
// adds up the quotients.
static void weigh(const Output *o, RtRow *row, double samples) {
    double *value = row->metric, weights = sum_read(o, "weights");
    if (weights > 0)
        value[METRIC_loss] *= samples / weights;
    for (int i = 1;; i++) {
        char sum[32], by[32];
        snprintf(sum, sizeof sum, "loss_%d", i);
        snprintf(by, sizeof by, "weights_%d", i);
        weights = sum_read(o, by);
        if (isnan(weights))
            break;
        value[METRIC_loss] += weights > 0 ? sum_read(o, sum) / weights : 0;
    }
    if (o->s->run->trainer->metrics >> METRIC_perplexity & 1)
        value[METRIC_perplexity] = exp(value[METRIC_loss]);
}

// The metrics of an output, NAN without their sums.  Accuracies are shares of
// the rows that count.
static void measure_output(const Output *o, double samples,
                           double value[NUM_METRICS], RtConfusion *keep) {
    double counted = sum_read(o, "counted");
    for (int k = 0; k < NUM_METRICS; k++)
        value[k] = NAN;
    counted = counted > 0 ? counted : samples;
    value[METRIC_accuracy] = sum_read(o, "correct") / counted;
    value[METRIC_top5] = sum_read(o, "top5") / counted;
    measure_classes(o, value, keep);
    value[METRIC_mae] = sum_read(o, "errors") / samples;
    value[METRIC_rmse] = sqrt(sum_read(o, "errors.square") / samples);
    value[METRIC_r2] = measure_moments(o);
    value[METRIC_auc] = rt_session_auc(o->s, o->name);
}

// Takes the metrics of an output that the evaluation lists; true if the
// confusion matrix is one.
static bool take(RtSession *s, RtRow *row, const Output *o,
                 const double value[NUM_METRICS]) {
    const RtTrainer *t = s->run->trainer;
    bool only = t->num_output_names == 0;
    bool confusion = only && t->metrics >> METRIC_confusion & 1;
    for (int k = METRIC_accuracy; only && k < NUM_METRICS; k++)
        if (metric_info[k].sums != SUMS_LOSS &&
            (k == METRIC_accuracy || t->metrics >> k & 1))
            row->metric[k] = value[k];
    for (int k = 0; k < t->num_output_metrics; k++) {
        const RtOutputMetric *m = &t->output_metric[k];
        if (strcmp(m->output, o->name) != 0)
            continue;
        confusion |= m->metric == METRIC_confusion;
        s->measured[k] = value[m->metric];
        if (!rt_metric_has_output(m))
            row->metric[m->metric] = value[m->metric];
    }
    return confusion;
}

bool rt_session_open_metrics(RtSession *s, RtError *e) {
    const RtTrainer *t = s->run->trainer;
    s->measured =
        calloc((size_t)t->num_output_metrics + 1, sizeof *s->measured);
    s->confusion = calloc((size_t)rt_num_outputs(t), sizeof *s->confusion);
    return (s->measured != NULL && s->confusion != NULL) ||
           rt_fail(e, EXIT_MEMORY, "out of memory");
}

void rt_session_close_metrics(RtSession *s) {
    for (int i = 0; s->confusion != NULL && i < rt_num_outputs(s->run->trainer);
         i++)
        free(s->confusion[i].count);
    free(s->confusion);
    free(s->measured);
}

void rt_session_measure_sums(RtSession *s, RtRow *row, double samples) {
    const RtTrainer *t = s->run->trainer;
    weigh(&(Output){s, "", t->output}, row, samples);
    row->measured = s->measured;
    row->confusion = s->confusion;
    row->num_confusions = 0;
    for (int i = 0; i < rt_num_outputs(t); i++) {
        double value[NUM_METRICS];
        Output o = {s, rt_output_name(t, i),
                    t->num_output_names > 0 ? t->output_name[i].kind
                                            : t->output};
        measure_output(&o, samples, value, &s->confusion[row->num_confusions]);
        row->num_confusions += take(s, row, &o, value);
    }
}
