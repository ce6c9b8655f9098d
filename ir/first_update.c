// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// First update: the meaning of optimizer and clip nodes.
//
// An optimizer node is its parameter after one update from initial states.
// Gradients are those of the graph's gradient nodes, clipped.  The
// optimizer pass writes the same formulas as nodes; docs/numerics.md names
// their sources.

#include "ir/first_update.h"

#include <math.h>
#include <string.h>

typedef struct {
    const Graph *g;
    const Node *n;
    double *const *value;
    Arena *a;
    int64_t count;
    const double *param;
    double rate;
    double *gradient; // clipped
    double *out;
} Update;

static double scalar(const Update *u, const char *name) {
    return u->value[optimizer_in(u->n, name)][0];
}

// The number of the update, from 1.
static double count_of(const Update *u) {
    return u->value[optimizer_count(u->n)][0];
}

static bool flag(const Update *u, AttrKey key) {
    return node_int(u->n, key, 0) != 0;
}

static double norm(const double *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

// ---- gradients ----

static bool clips_norm(const Node *n) {
    return strcmp(node_text(n, ATTR_mode), "norm") == 0;
}

// The factor of gradients; there are no sums of earlier batches.
static double share_of_batch(const Graph *g, double *const *value) {
    double share = 1;
    for (NodeId id = 0; id < g->count; id++)
        if (g->node[id].op == OP_accumulated)
            share *= value[id][0];
    return share;
}

// torch.nn.utils.clip_grad_norm_ and clip_grad_value_.
double clip_eval(const Graph *g, const Node *n, double *const *value) {
    double limit = value[n->arg[0]][0], sum = 0;
    double share = share_of_batch(g, value);
    if (!clips_norm(n))
        return limit;
    for (NodeId id = 0; id < g->count; id++)
        if (g->node[id].op == OP_gradient)
            sum += pow(norm(value[id], type_count(g->node[id].type)), 2);
    return fmin(1, limit / (share * sqrt(sum) + 1e-6));
}

// An element of a gradient as the graph's accumulated and clip nodes leave it.
static double clipped(const Update *u, double x) {
    x *= share_of_batch(u->g, u->value);
    for (NodeId id = 0; id < u->g->count; id++) {
        const Node *n = &u->g->node[id];
        if (n->op != OP_clip)
            continue;
        double by = u->value[id][0];
        x = clips_norm(n) ? x * by : x > by ? by : x < -by ? -by : x;
    }
    return x;
}

// False when the graph has no gradient for the parameter.
static bool find_gradient(Update *u) {
    u->gradient = ARENA_ARRAY(u->a, (size_t)u->count + 1, double);
    for (NodeId id = 0; id < u->g->count; id++) {
        const Node *n = &u->g->node[id];
        if (n->op != OP_gradient || n->arg[0] != u->n->arg[0])
            continue;
        for (int64_t i = 0; i < u->count; i++)
            u->gradient[i] = u->n->op == OP_accumulate
                                 ? u->value[id][i]
                                 : clipped(u, u->value[id][i]);
        return true;
    }
    return false;
}

// ---- common parts of the rules ----

static double *array(const Update *u) {
    return ARENA_ARRAY(u->a, (size_t)u->count + 1, double);
}

static double attribute(const Update *u, AttrKey key) {
    return node_float(u->n, key, 0);
}

// a / b, or 1 where either is 0.
static double ratio(double a, double b) {
    return a != 0 && b != 0 ? a / b : 1;
}

// The parameter less rate * direction, after a decay outside the gradient.
static void descend(Update *u, double decay, double rate,
                    const double *direction) {
    double kept = 1 - u->rate * decay;
    for (int64_t i = 0; i < u->count; i++)
        u->out[i] = u->param[i] * kept - rate * direction[i];
}

// ---- sgd, lars ----

// The direction of a velocity that starts with 0, with so much of the parameter
// in the gradient.
static double *velocity(const Update *u, double decay) {
    double momentum = scalar(u, "momentum"), *d = array(u);
    for (int64_t i = 0; i < u->count; i++) {
        d[i] = u->gradient[i] + decay * u->param[i];
        if (flag(u, ATTR_nesterov))
            d[i] += momentum * d[i];
    }
    return d;
}

static void sgd(Update *u) {
    double decay = scalar(u, "weight_decay");
    bool outside = flag(u, ATTR_decoupled);
    double *d = velocity(u, outside ? 0 : decay);
    descend(u, outside ? decay : 0, u->rate, d);
}

// You et al., 2017.
static void lars(Update *u) {
    double decay = scalar(u, "weight_decay");
    double w = norm(u->param, u->count), g = norm(u->gradient, u->count);
    double above = g != 0 ? attribute(u, ATTR_trust) * w : 0;
    double below = g + decay * w + attribute(u, ATTR_eps);
    descend(u, 0, u->rate * ratio(above, below), velocity(u, decay));
}

// ---- adam, adamw, lamb ----

// The first step's moment of x, corrected as in update t.
static double moment(double beta, double t, double x) {
    return (1 - beta) * x / (1 - pow(beta, t));
}

// The direction of Adam for the gradient and so much of the parameter.
static double *adam_direction(const Update *u, double decay) {
    double beta1 = scalar(u, "beta1"), beta2 = scalar(u, "beta2");
    double t = count_of(u), *d = array(u);
    for (int64_t i = 0; i < u->count; i++) {
        double g = u->gradient[i] + decay * u->param[i];
        double root = sqrt(moment(beta2, t, g * g));
        d[i] = moment(beta1, t, g) / (root + attribute(u, ATTR_eps));
    }
    return d;
}

static void adam(Update *u) {
    double decay = scalar(u, "weight_decay");
    descend(u, 0, u->rate, adam_direction(u, decay));
}

static void adamw(Update *u) {
    double decay = scalar(u, "weight_decay");
    descend(u, decay, u->rate, adam_direction(u, 0));
}

static void lamb(Update *u) {
    double decay = scalar(u, "weight_decay"), *d = adam_direction(u, 0);
    for (int64_t i = 0; i < u->count; i++)
        d[i] += decay * u->param[i];
    double length = ratio(norm(u->param, u->count), norm(d, u->count));
    descend(u, 0, u->rate * length, d);
}

// ---- rmsprop, adagrad, lion ----

static void rmsprop(Update *u) {
    double alpha = scalar(u, "alpha"), *d = array(u);
    for (int64_t i = 0; i < u->count; i++) {
        double g = u->gradient[i] + scalar(u, "weight_decay") * u->param[i];
        double v = (1 - alpha) * g * g, mean = (1 - alpha) * g;
        if (flag(u, ATTR_centered))
            v -= mean * mean;
        d[i] = g / (sqrt(v) + attribute(u, ATTR_eps));
    }
    descend(u, 0, u->rate, d);
}

static void adagrad(Update *u) {
    double t = count_of(u), decay = scalar(u, "weight_decay"), *d = array(u);
    double rate = u->rate / (1 + (t - 1) * attribute(u, ATTR_lr_decay));
    for (int64_t i = 0; i < u->count; i++) {
        double g = u->gradient[i] + decay * u->param[i];
        double sum = attribute(u, ATTR_initial_accumulator_value) + g * g;
        d[i] = g / (sqrt(sum) + attribute(u, ATTR_eps));
    }
    descend(u, 0, rate, d);
}

static double sign(double x) {
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static void lion(Update *u) {
    double *d = array(u);
    for (int64_t i = 0; i < u->count; i++)
        d[i] = sign((1 - scalar(u, "beta1")) * u->gradient[i]);
    descend(u, scalar(u, "weight_decay"), u->rate, d);
}

// ---- nadam, radam, adan ----

// The momentum of update t.
static double nadam_momentum(const Update *u, double t) {
    double decay = attribute(u, ATTR_momentum_decay);
    return attribute(u, ATTR_beta1) * (1 - 0.5 * pow(0.96, t * decay));
}

static void nadam(Update *u) {
    double t = count_of(u), *d = array(u);
    double now = nadam_momentum(u, t), next = nadam_momentum(u, t + 1);
    double beta1 = attribute(u, ATTR_beta1), beta2 = scalar(u, "beta2");
    for (int64_t i = 0; i < u->count; i++) {
        double g = u->gradient[i] + scalar(u, "weight_decay") * u->param[i];
        double m = (1 - beta1) * g, root = sqrt(moment(beta2, t, g * g));
        double up = g + next / (1 - now * next) * m;
        d[i] = up / (root + attribute(u, ATTR_eps));
    }
    descend(u, 0, u->rate, d);
}

// The factor of Adam's direction, or 0 if the second moment is of too few
// gradients.
static double rectification(double beta, double t) {
    double power = pow(beta, t), most = 2 / (1 - beta) - 1;
    double length = most - 2 * t * power / (1 - power);
    return length > 5 ? sqrt((length - 4) * (length - 2) * most /
                             ((most - 4) * (most - 2) * length))
                      : 0;
}

static void radam(Update *u) {
    double t = count_of(u), beta2 = scalar(u, "beta2"), *d = array(u);
    double by = rectification(beta2, t) * sqrt(1 - pow(beta2, t));
    for (int64_t i = 0; i < u->count; i++) {
        double g = u->gradient[i] + scalar(u, "weight_decay") * u->param[i];
        double root = sqrt((1 - beta2) * g * g) + attribute(u, ATTR_eps);
        d[i] = moment(scalar(u, "beta1"), t, g) * (by > 0 ? by / root : 1);
    }
    descend(u, 0, u->rate, d);
}

static void adan(Update *u) {
    double t = count_of(u), beta2 = scalar(u, "beta2");
    double kept = 1 + u->rate * scalar(u, "weight_decay");
    for (int64_t i = 0; i < u->count; i++) {
        double g = u->gradient[i], change = t > 1 ? g : 0;
        double ahead = g + beta2 * change;
        double root = sqrt(moment(scalar(u, "beta3"), t, ahead * ahead));
        double up =
            moment(scalar(u, "beta1"), t, g) + beta2 * moment(beta2, t, change);
        double step = u->rate * up / (root + attribute(u, ATTR_eps));
        u->out[i] = (u->param[i] - step) / kept;
    }
}

// ---- muon ----

// One iteration of Newton and Schulz, x := a x + b A x + c A A x with A = x x'.
static void iterate(const Update *u, double *x, int64_t rows, int64_t columns) {
    const double *c = node_attr(u->n, ATTR_coefficients)->floats;
    size_t square = (size_t)(rows * rows);
    double *A = ARENA_ARRAY(u->a, square + 1, double);
    double *B = ARENA_ARRAY(u->a, square + 1, double), *y = array(u);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < rows; j++)
            for (int64_t k = 0; k < columns; k++)
                A[i * rows + j] += x[i * columns + k] * x[j * columns + k];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < rows; j++) {
            B[i * rows + j] = c[1] * A[i * rows + j];
            for (int64_t k = 0; k < rows; k++)
                B[i * rows + j] += c[2] * A[i * rows + k] * A[k * rows + j];
        }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            y[i * columns + j] = c[0] * x[i * columns + j];
            for (int64_t k = 0; k < rows; k++)
                y[i * columns + j] += B[i * rows + k] * x[k * columns + j];
        }
    memcpy(x, y, (size_t)u->count * sizeof *x);
}

// d with all singular values near 1.
static void orthogonalize(const Update *u, double *d) {
    int64_t rows = u->n->type->dim[0], columns = rows ? u->count / rows : 0;
    double size = norm(d, u->count) + attribute(u, ATTR_eps);
    for (int64_t i = 0; i < u->count; i++)
        d[i] /= size;
    for (int64_t i = 0; i < node_int(u->n, ATTR_iterations, 5); i++)
        iterate(u, d, rows, columns);
}

static void muon(Update *u) {
    double *d = velocity(u, 0), *w = array(u);
    double size =
        ratio(sqrt((double)u->n->type->dim[0]), norm(u->param, u->count));
    for (int64_t i = 0; i < u->count; i++)
        w[i] = u->param[i] * (flag(u, ATTR_renormalize) ? size : 1);
    u->param = w;
    orthogonalize(u, d);
    descend(u, scalar(u, "weight_decay"), u->rate, d);
}

// ---- all ----

static void accumulate(Update *u) {
    memcpy(u->out, u->gradient, (size_t)u->count * sizeof *u->out);
}

static void (*const rule[NUM_OPS])(Update *) = {
    [OP_accumulate] = accumulate,
#define OPTIMIZER(name, ...) [OP_##name] = name,
#include "ir/optimizers.def"
};

void update_eval(const Graph *g, const Node *n, double *const *value, Arena *a,
                 double *out) {
    Update u = {.g = g,
                .n = n,
                .value = value,
                .a = a,
                .count = type_count(n->type),
                .param = value[n->arg[0]],
                .rate = n->num_args > 1 ? value[n->arg[1]][0] : 0,
                .out = out};
    if (!find_gradient(&u) && n->op != OP_accumulate)
        memcpy(out, u.param, (size_t)u.count * sizeof *out);
    else
        rule[n->op](&u);
}
