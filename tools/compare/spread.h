// Spread: the median of measurements and its confidence interval.
#ifndef TOOLS_SPREAD_H
#define TOOLS_SPREAD_H

#include "base/arena.h"

typedef struct {
    int count;
    double least, median, most;
    double low, high;  // the confidence interval
    double confidence; // at least 0.95, or less for few measurements
} Spread;

Spread spread_of(Arena *a, const double *value, int count);
// The width of low .. high, as a share of the median.
double spread_range(Arena *a, const double *value, int count);

#endif
