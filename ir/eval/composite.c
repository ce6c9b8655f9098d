// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Composite: operations that stand for several simpler ones, at once.
#include "ir/eval/rule.h"

// Over every stride-th element of x, count in all.
static double mean_of(const double *x, int64_t count, int64_t stride) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i * stride];
    return sum / (double)count;
}

static double variance_of(const double *x, int64_t count, int64_t stride) {
    double mean = mean_of(x, count, stride), sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (x[i * stride] - mean) * (x[i * stride] - mean);
    return sum / (double)count;
}

void eval_batch_norm(const Eval *e) {
    const Type *t = arg_type(e, 0), *own = e->n->type;
    int64_t C = t->dim[t->rank - 1], count = C ? type_count(t) / C : 0;
    int64_t results = C ? type_count(own) / C : 0;
    double eps = node_float(e->n, ATTR_eps, 1e-5);
    for (int64_t c = 0; c < C; c++) {
        const double *x = arg(e, 0) + c;
        double mean = mean_of(x, count, C);
        double root = sqrt(variance_of(x, count, C) + eps);
        const double *z = arg(e, e->n->num_args == 4 ? 3 : 0) + c;
        for (int64_t i = 0; i < results; i++)
            e->out[i * C + c] =
                (z[i * C] - mean) / root * arg(e, 1)[c] + arg(e, 2)[c];
    }
}

// The logarithm of the sum of exponentials, exact for large numbers too.
static double log_sum_exp(const double *x, int64_t count) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        most = larger(x[i], most) ? x[i] : most;
    for (int64_t i = 0; i < count; i++)
        sum += exp(x[i] - most);
    return most + log(sum);
}

// Against (1 - smoothing) for the label, or of each class's share, and
// smoothing / K for each class.
void eval_cross_entropy(const Eval *e) {
    Type t = *arg_type(e, 0);
    double smoothing = node_float(e->n, ATTR_smoothing, 0);
    bool soft = arg_type(e, 1)->dtype != I32;
    for (int64_t m = 0; m < t.dim[0]; m++) {
        const double *row = arg(e, 0) + m * t.dim[1];
        double total = log_sum_exp(row, t.dim[1]);
        for (int64_t k = 0; k < t.dim[1]; k++) {
            double label =
                soft ? arg(e, 1)[m * t.dim[1] + k] : arg(e, 1)[m] == (double)k;
            double target =
                (1 - smoothing) * label + smoothing / (double)t.dim[1];
            if (target != 0)
                e->out[m] += target * (total - row[k]);
        }
    }
}

static void softmax(const Eval *e, bool logarithm) {
    Type t = *e->n->type;
    int64_t K = t.dim[t.rank - 1];
    for (int64_t i = 0; i < type_count(&t); i++) {
        const double *row = arg(e, 0) + i / K * K;
        double power = arg(e, 0)[i] - log_sum_exp(row, K);
        e->out[i] = logarithm ? power : exp(power);
    }
}

void eval_softmax(const Eval *e) {
    softmax(e, false);
}

void eval_log_softmax(const Eval *e) {
    softmax(e, true);
}
