// How far functions of kernels on the host are from what they compute, in units
// of the last place: the table of docs/numerics.md has that, rounded up.
//
// Compiled as an emitted trainer is, so that they are the vector versions which
// kernels call; on the processor and library of that table.  Every 61st float
// is tried, and compared with the function in double.
#define _GNU_SOURCE
#include "runtime/prelude/prelude.h"

#include <gnu/libc-version.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRIDE = 61, COUNT = 4096, SKIPPED = 77 };

typedef void Kernel(const float *x, float *y);

#define FUNCTION(name)                                                         \
    static void every_##name(const float *restrict x, float *restrict y) {     \
        LANES_DO(k, COUNT) {                                                   \
            y[k] = name(x[k]);                                                 \
        }                                                                      \
    }
FUNCTION(rsqrtf)
FUNCTION(expf)
FUNCTION(logf)
FUNCTION(tanhf)
FUNCTION(sinf)
FUNCTION(cosf)
FUNCTION(normal_cdf)
FUNCTION(normal_pdf)

static double rsqrt(double x) {
    return 1 / sqrt(x);
}

static double cdf(double x) {
    return 0.5 * erfc(-sqrt(0.5) * x);
}

static double pdf(double x) {
    return sqrt(0.5 / acos(-1)) * exp(-0.5 * x * x);
}

// What half a unit of x is in units of the density, and a unit.
static double bell_units(double x) {
    return 1 + 0.5 * x * x;
}

static const struct {
    const char *name, *row; // of the table
    Kernel *kernel;
    double (*exact)(double x);
    double (*units)(double x); // one, where there is none
} function[] = {
    {"rsqrt", "| rsqrt |", every_rsqrtf, rsqrt, NULL},
    {"exp", "| exp |", every_expf, exp, NULL},
    {"log", "| log |", every_logf, log, NULL},
    {"tanh", "| tanh |", every_tanhf, tanh, NULL},
    {"sin", "| sin, cos |", every_sinf, sin, NULL},
    {"cos", "| sin, cos |", every_cosf, cos, NULL},
    {"cdf", "| cdf |", every_normal_cdf, cdf, bell_units},
    {"pdf", "| pdf |", every_normal_pdf, pdf, bell_units},
};
enum { NUM_FUNCTIONS = sizeof function / sizeof function[0] };

// Infinite where only one of both is a number of f32, or one is none.
static double units_off(double found, double exact) {
    int exponent;
    float rounded = (float)exact;
    if (isnan(exact) || isinf(rounded))
        return (isnan(exact) ? isnan(found) : found == (double)rounded)
                   ? 0
                   : INFINITY;
    if (!isfinite(found))
        return INFINITY;
    frexp(exact, &exponent);
    return fabs(found - exact) /
           ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

// Fills x from the float with these bits on; the bits to go on with.
static uint64_t floats_next(float *x, uint64_t bits) {
    for (int n = 0; n < COUNT; bits += STRIDE) {
        uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, sizeof f);
        x[n++] = bits <= UINT32_MAX && isfinite(f) ? f : 1;
    }
    return bits;
}

static double off(int i, double x, double y) {
    double units = function[i].units ? function[i].units(x) : 1;
    return units_off(y, function[i].exact(x)) / units;
}

static double most_units_off(int i) {
    static float x[COUNT], y[COUNT];
    double most = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX;) {
        bits = floats_next(x, bits);
        function[i].kernel(x, y);
        for (int k = 0; k < COUNT; k++)
            most = fmax(most, off(i, x[k], y[k]));
    }
    return most;
}

// The third column of that row; less than 0: there is none.
static double documented(const char *row) {
    char path[4096], line[4096];
    const char *source = getenv("SINTER_SOURCE");
    snprintf(path, sizeof path, "%s/docs/numerics.md", source ? source : ".");
    FILE *f = fopen(path, "r");
    double units = -1;
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, row, strlen(row)) == 0)
            sscanf(line + strlen(row), "%*[^|]|%lf", &units);
    if (f != NULL)
        fclose(f);
    return units;
}

int main(void) {
    int failed = 0;
#ifndef __AVX512F__
    return SKIPPED;
#endif
    if (strcmp(gnu_get_libc_version(), "2.36") != 0)
        return SKIPPED;
    for (int i = 0; i < NUM_FUNCTIONS; i++) {
        double most = most_units_off(i), right = documented(function[i].row);
        printf("%s: %.3f, the table has %.1f\n", function[i].name, most, right);
        failed += !(most <= right && most > right - 0.1);
    }
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
