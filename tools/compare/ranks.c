// Ranks: the exact two-sided tests of Mann and Whitney (1947), and of Mann
// (1945) against a trend.  The first requires independent measurements, such as
// runs of a program on a steady machine, but not the steps of one run.  The
// second finds machines that are not steady.
//
// U counts the pairs in which x is larger.  If both have one distribution, all
// orders are equally likely, and U is counted by the Gaussian binomial
// coefficient (nx + ny over nx), whose factors (1 - q^(ny + i)) / (1 - q^i) are
// multiplied one after the other.
#include "tools/compare/ranks.h"

#include <math.h>

// One factor, scaled so that all coefficients keep the sum 1.
static void factor_multiply(double *p, int most, int i, int ny) {
    for (int k = i; k <= most; k++)
        p[k] += p[k - i];
    for (int k = most; k >= ny + i; k--)
        p[k] -= p[k - ny - i];
    for (int k = 0; k <= most; k++)
        p[k] *= (double)i / (ny + i);
}

// The sum of p[0 .. most].
static double sum_of(const double *p, int most) {
    double sum = 0;
    for (int k = 0; k <= most; k++)
        sum += p[k];
    return sum;
}

// The probability that U is at most `most`.
static double chance_of(Arena *a, int most, int nx, int ny) {
    double *p = ARENA_ARRAY(a, (size_t)most + 1, double);
    p[0] = 1;
    for (int i = 1; i <= nx; i++)
        factor_multiply(p, most, i, ny);
    return sum_of(p, most);
}

// Equal values count against a difference.
double ranks_chance(Arena *a, const double *x, int nx, const double *y,
                    int ny) {
    int greater = 0, less = 0;
    for (int i = 0; i < nx; i++)
        for (int j = 0; j < ny; j++) {
            greater += x[i] > y[j];
            less += x[i] < y[j];
        }
    int apart = greater > less ? greater : less;
    return fmin(1, 2 * chance_of(a, nx * ny - apart, nx, ny));
}

double ranks_least_chance(Arena *a, int nx, int ny) {
    return fmin(1, 2 * chance_of(a, 0, nx, ny));
}

// In any order of n values each has from 0 to i - 1 greater ones among the i
// first, all equally likely: factors (1 - q^i) / (1 - q).
double ranks_trend_chance(Arena *a, const double *value, int count) {
    int up = 0, down = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            up += value[i] > value[j];
            down += value[i] < value[j];
        }
    int most = count * (count - 1) / 2 - (up > down ? up : down);
    double *p = ARENA_ARRAY(a, (size_t)most + 1, double);
    p[0] = 1;
    for (int i = 2; i <= count; i++)
        factor_multiply(p, most, 1, i - 1);
    return fmin(1, 2 * sum_of(p, most));
}
