// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/metrics.h"

#include <string.h>

enum { LOWER, HIGHER };

const MetricInfo metric_info[NUM_METRICS] = {
#define METRIC(name, label, sums, better, unit)                                \
    {#name, label, SUMS_##sums, better, METRIC_##unit},
#include "base/metrics.def"
};

int metric_find(const char *name) {
    const char *dot = strrchr(name, '.');
    name = dot != NULL ? dot + 1 : name;
    for (int i = 0; i < NUM_METRICS; i++)
        if (strcmp(metric_info[i].name, name) == 0)
            return i;
    return -1;
}

bool metrics_need(unsigned metrics, MetricSums sums) {
    for (int i = 0; i < NUM_METRICS; i++)
        if (metrics >> i & 1 && metric_info[i].sums == sums)
            return true;
    return false;
}
