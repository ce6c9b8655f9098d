// The median of measurements, and where the true one is.
#ifndef TOOLS_SPREAD_H
#define TOOLS_SPREAD_H

#include "base/arena.h"

typedef struct {
    int count;
    double least, median, most;
    double low, high;  // low .. high has the true median, with confidence
    double confidence; // of at least 0.95, or less where few are there
} Spread;

Spread spread_of(Arena *a, const double *value, int count);
// The width of low .. high, as a share of the median.
double spread_range(Arena *a, const double *value, int count);

#endif
