// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CSV: rows of metrics with the same columns in each, for spreadsheets.

#include "runtime/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

bool rt_csv_named(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".csv") == 0;
}

// The first four metrics always have one.
static bool has_column(int metric, unsigned metrics) {
    return metric <= METRIC_perplexity ||
           (metrics >> metric & 1 && metric_info[metric].unit != METRIC_TABLE);
}

// A column of its own, beside those of metric_info.
static bool metric_has_column(const RtOutputMetric *m) {
    return rt_metric_has_output(m) &&
           metric_info[m->metric].unit != METRIC_TABLE;
}

void rt_csv_begin(FILE *f, const RtTrainer *t) {
    fputs("split,epoch,step", f);
    for (int i = 0; i < NUM_METRICS; i++)
        if (has_column(i, t->metrics))
            fprintf(f, ",%s", metric_info[i].name);
    for (int i = 0; i < t->num_output_metrics; i++)
        if (metric_has_column(&t->output_metric[i]))
            fprintf(f, ",%s", t->output_metric[i].name);
    fputs(",lr,loss_scale,skipped,samples_per_second,wait_ms,elapsed,on,stops"
          "\n",
          f);
}

// An empty field: it is not finite, or the row has none.
static void number_put(FILE *f, bool has, double value) {
    if (has && isfinite(value))
        fprintf(f, ",%.9g", value);
    else
        fputc(',', f);
}

void rt_csv_row(FILE *f, const RtTrainer *t, const RtRow *row, double rate) {
    static const char *const on[] = {[RT_ON_TEST] = "",
                                     [RT_ON_TRAIN] = "train",
                                     [RT_ON_VALIDATION] = "validation"};
    bool whole = !row->interval, scales = !isnan(row->scale);
    fputs(row->interval ? "step" : row->train ? "train" : "test", f);
    number_put(f, true, row->epoch);
    fprintf(f, ",%" PRId64, row->step);
    number_put(f, true, row->metric[METRIC_loss]);
    number_put(f, true, row->metric[METRIC_accuracy]);
    for (int i = METRIC_top5; i < NUM_METRICS; i++)
        if (has_column(i, t->metrics))
            number_put(f, true, row->metric[i]);
    for (int i = 0; i < t->num_output_metrics; i++)
        if (metric_has_column(&t->output_metric[i]))
            number_put(f, row->measured != NULL,
                       row->measured != NULL ? row->measured[i] : 0);
    number_put(f, true, row->lr);
    number_put(f, scales, row->scale);
    number_put(f, scales, row->skipped);
    number_put(f, whole, rate);
    number_put(f, whole, row->waited * 1e3);
    number_put(f, whole, row->elapsed);
    fprintf(f, ",%s,%s\n", on[row->on], row->stops ? "true" : "");
}

const char *rt_csv_step(const char *row) {
    for (int i = 0; i < 2 && row != NULL; i++)
        row = strchr(row, ',') != NULL ? strchr(row, ',') + 1 : NULL;
    return row;
}
