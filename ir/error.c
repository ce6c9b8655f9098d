// Error: how far numbers are from right, and how far they may be.
#include "ir/error.h"

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

double error_alone(DType storage) {
    return storage == F32 ? 2e-5 : storage == F16 ? 5e-4 : 4e-3;
}

int64_t error_places(int64_t count, DType storage) {
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

double error_terms(const Graph *g, NodeId n, double *const *value) {
    const Node *d = &g->node[n];
    double total = 0;
    if (d->op != OP_sum)
        return 0;
    for (int64_t i = 0; i < type_count(g->node[d->arg[0]].type); i++)
        total += fabs(value[d->arg[0]][i]);
    // Sums of what overflows are compared as such, and there may be none.
    return total > 0 && isfinite(total)
               ? total / sqrt((double)type_count(d->type))
               : 0;
}
