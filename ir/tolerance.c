// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tolerance: measures the error of numbers and bounds the allowed error.
#include "ir/tolerance.h"

#include <math.h>

double error_rms(const double *x, const double *y, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sqrt(sum / (double)(count ? count : 1));
}

double error_size(const double *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum / (double)(count ? count : 1));
}

// Whether both are NaN, or the same infinity, once they are stored: a loss
// scale that is too large makes such gradients, and must find them.
static bool overflows_alike(DType stored, double right, double found) {
    double rounded = dtype_round(stored, right);
    return (isinf(rounded) && rounded == found) ||
           (isnan(rounded) && isnan(found));
}

ErrorNorms error_norms(DType stored, int64_t count, const double *right,
                       const double *rough, const double *found) {
    ErrorNorms sum = {0};
    for (int64_t i = 0; i < count; i++) {
        if (overflows_alike(stored, right[i], found[i]))
            continue;
        sum.error += (found[i] - right[i]) * (found[i] - right[i]);
        sum.size += right[i] * right[i];
        sum.rounding += (rough[i] - right[i]) * (rough[i] - right[i]);
    }
    return (ErrorNorms){sqrt(sum.error), sqrt(sum.size), sqrt(sum.rounding)};
}

double error_alone(DType storage) {
    return storage == F32 ? 2e-5 : storage == F16 ? 5e-4 : 4e-3;
}

int64_t error_indices(int64_t count, DType storage) {
    return count > 1000 ? count / (storage == F32 ? 1000 : 20) : 0;
}

double error_allowed(Type type, DType storage, double unfused,
                     const double *right) {
    int64_t count = type_count(&type);
    double factor = storage != F32 || count < 1000 ? 3 : 2;
    if (!dtype_float(type.dtype))
        return factor * unfused;
    return factor * unfused +
           error_alone(storage) / 10 * error_size(right, count);
}

// Half of the least number, between which and 0 it is rounded.
double error_underflow(DType stored) {
    return stored == F16 ? 0x1p-25 : stored == BF16 ? 0x1p-134 : 0;
}

static double *sizes_of(Arena *a, const double *value, int64_t count) {
    double *size = ARENA_UNINIT(a, (size_t)count + 1, double);
    for (int64_t i = 0; i < count; i++)
        size[i] = fabs(value[i]);
    return size;
}

double error_terms(const Graph *g, NodeId n, double *const *value) {
    const Node *d = &g->node[n];
    if (d->op != OP_sum && !(op_info[d->op].traits & CONTRACTS))
        return 0;
    Arena *a = arena_new();
    double **size = ARENA_ARRAY(a, (size_t)g->count + 1, double *);
    double *sum = ARENA_ARRAY(a, (size_t)type_count(d->type) + 1, double);
    for (int i = 0; i < d->num_args; i++)
        size[d->arg[i]] =
            sizes_of(a, value[d->arg[i]], type_count(g->node[d->arg[i]].type));
    node_eval(g, n, size, sum, a);
    double total = error_size(sum, type_count(d->type)) *
                   sqrt((double)type_count(d->type));
    arena_free(a);
    // Sums that overflow are compared as such, and there may be none.
    return isfinite(total) ? total : 0;
}
