// Spread: a confidence interval for a median from order statistics, for any
// distribution of measurements (David and Nagaraja, "Order Statistics", 2003,
// section 7.1).
#include "tools/compare/spread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

// The probability that fewer than k of n tosses are heads.
static double fewer_than(int k, int n) {
    double sum = 0;
    for (int i = 0; i < k; i++)
        sum +=
            exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) - n * log(2));
    return sum;
}

Spread spread_of(Arena *a, const double *value, int count) {
    Spread s = {.count = count};
    double *sorted = ARENA_ARRAY(a, (size_t)count + 1, double);
    if (count == 0)
        return s;
    memcpy(sorted, value, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_size);
    int k = 1;
    while (2 * (k + 1) <= count && 1 - 2 * fewer_than(k + 1, count) >= 0.95)
        k++;
    s.median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    s.least = sorted[0];
    s.most = sorted[count - 1];
    s.low = sorted[k - 1];
    s.high = sorted[count - k];
    s.confidence = fmax(0, 1 - 2 * fewer_than(k, count));
    return s;
}

double spread_range(Arena *a, const double *value, int count) {
    Spread s = spread_of(a, value, count);
    return s.median > 0 ? (s.high - s.low) / s.median : 0;
}
