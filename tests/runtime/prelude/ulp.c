// The errors of the host's functions in kernels, in units of the last place:
// the table of docs/numerics.md has the largest, rounded up.
//
// Compiled as an emitted trainer is, so that loops over lanes become vectors.
// Compares every 251st float, and with ULP_ALL=1 all floats, with the function
// in double.  The table must not have more than the error of all of them.
#define _GNU_SOURCE
#include "runtime/prelude/prelude.h"

#include <gnu/libc-version.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRIDE = 251, COUNT = 4096 };

typedef void Kernel(const float *x, float *y);

#define weight(x) exp_weight(-fabsf(x))

#define FUNCTION(name)                                                         \
    static void every_##name(const float *restrict x, float *restrict y) {     \
        LANES_DO(k, COUNT) {                                                   \
            y[k] = name(x[k]);                                                 \
        }                                                                      \
    }
FUNCTION(rsqrtf)
FUNCTION(expf)
FUNCTION(weight)
FUNCTION(logf)
FUNCTION(tanhf)
FUNCTION(sigmoid)
FUNCTION(sinf)
FUNCTION(cosf)
FUNCTION(normal_cdf)
FUNCTION(normal_pdf)

static double rsqrt(double x) {
    return 1 / sqrt(x);
}

// 0 where e^-x is infinite in f32.
static double logistic(double x) {
    return isinf((float)exp(-x)) ? 0 : 1 / (1 + exp(-x));
}

static double exp_below_0(double x) {
    return fabs(x) > 87.33654f ? 0 : exp(-fabs(x));
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
    bool libm;                 // the C library's, which differ
} function[] = {
    {"rsqrt", "| rsqrt |", every_rsqrtf, rsqrt, NULL, false},
    {"exp", "| exp |", every_expf, exp, NULL, false},
    {"weight", "| exp of attention's weights |", every_weight, exp_below_0,
     NULL, false},
    {"log", "| log |", every_logf, log, NULL, false},
    {"tanh", "| tanh |", every_tanhf, tanh, NULL, false},
    {"sigmoid", "| sigmoid |", every_sigmoid, logistic, NULL, false},
    {"sin", "| sin, cos |", every_sinf, sin, NULL, true},
    {"cos", "| sin, cos |", every_cosf, cos, NULL, true},
    {"cdf", "| cdf |", every_normal_cdf, cdf, bell_units, false},
    {"pdf", "| pdf |", every_normal_pdf, pdf, bell_units, false},
};
enum { NUM_FUNCTIONS = sizeof function / sizeof function[0] };

// Infinite if only one of both is a number of f32, or for a zero with the wrong
// sign.
static double units_off(double found, double exact) {
    int exponent;
    float rounded = (float)exact;
    if (isnan(exact) || isinf(rounded))
        return (isnan(exact) ? isnan(found) : found == (double)rounded)
                   ? 0
                   : INFINITY;
    if (!isfinite(found) || (found == 0 && signbit(found) != signbit(exact)))
        return INFINITY;
    frexp(exact, &exponent);
    return fabs(found - exact) /
           ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

// Fills x from the float with these bits on; the bits to go on with.
static uint64_t floats_next(float *x, uint64_t bits, int stride) {
    for (int n = 0; n < COUNT; n++, bits += (unsigned)stride) {
        uint32_t low = bits <= UINT32_MAX ? (uint32_t)bits : 0;
        memcpy(&x[n], &low, sizeof *x);
    }
    return bits;
}

static double off(int i, double x, double y) {
    double units = units_off(y, function[i].exact(x));
    return units > 0 && isfinite(units) && function[i].units
               ? units / function[i].units(x)
               : units;
}

static double most_units_off(int i, int stride) {
    static float x[COUNT], y[COUNT];
    static const float ends[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN};
    double most = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX;) {
        bits = floats_next(x, bits, stride);
        if (stride > 1)
            memcpy(x, ends, sizeof ends);
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
    int failed = 0, stride = getenv("ULP_ALL") ? 1 : STRIDE;
    const bool measured = strcmp(gnu_get_libc_version(), "2.36") == 0;
    for (int i = 0; i < NUM_FUNCTIONS; i++) {
        if (function[i].libm && !measured)
            continue;
        double most = most_units_off(i, stride);
        double right = documented(function[i].row);
        printf("%s: %.3f, the table has %.1f\n", function[i].name, most, right);
        failed += !(most <= right && (stride > 1 || most > right - 0.1));
    }
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
