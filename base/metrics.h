// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Metrics: the table of the metrics of an evaluation.
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdbool.h>

typedef enum {
#define METRIC(name, ...) METRIC_##name,
#include "base/metrics.def"
    NUM_METRICS
} MetricId;

typedef enum {
    SUMS_LOSS,
    SUMS_CORRECT,
    SUMS_TOP5,
    SUMS_COUNTS,
    SUMS_ERRORS,
    SUMS_MOMENTS,
    SUMS_SCORES,
    NUM_SUMS
} MetricSums;

typedef enum { METRIC_NUMBER, METRIC_SHARE, METRIC_TABLE } MetricUnit;

typedef struct {
    const char *name, *label;
    MetricSums sums;
    bool higher_is_better;
    MetricUnit unit;
} MetricInfo;

extern const MetricInfo metric_info[NUM_METRICS];

// The metric of that name, or of OUTPUT.METRIC, which is that of a named
// output; -1: none.
int metric_find(const char *name);
// Whether a set of metrics, a bit for each, has one of those sums.
bool metrics_need(unsigned metrics, MetricSums sums);

#endif
