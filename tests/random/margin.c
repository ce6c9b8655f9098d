// Margin: see margin.h.
//
// Numbers that are equal in double are taken to be equal by construction, as
// zeros behind a relu are, and so to be equal however they are rounded.  But
// not where something has cancelled: what is left may be 0 in double by chance.
#include "tests/random/margin.h"

#include <math.h>

typedef struct {
    const Graph *g;
    const Node *n;
    double *const *value;
    double unit;
    bool cancelled; // what it is computed from
    Arena *a;
} Margin;

static const Type *type_at(const Margin *m, int i) {
    return m->g->node[m->n->arg[i]].type;
}

static const double *arg(const Margin *m, int i) {
    return m->value[m->n->arg[i]];
}

// The size of an error that operand i may have.
static double error_of(const Margin *m, int i) {
    int64_t count = type_count(type_at(m, i));
    double sum = 0;
    for (int64_t k = 0; k < count; k++)
        sum += arg(m, i)[k] * arg(m, i)[k];
    return m->unit * (sqrt(sum / (double)(count ? count : 1)) + 1e-3);
}

static bool is_close(const Margin *m, double x, double y, double error) {
    return (x != y || m->cancelled) && fabs(x - y) <= error;
}

// Where in a tensor t is what element at of a larger one, out, has to do with.
static int64_t place_in(Type t, Type out, int64_t at) {
    int64_t place = 0, stride = 1;
    for (int k = 1; k <= t.rank; k++) {
        int64_t size = out.dim[out.rank - k];
        if (t.dim[t.rank - k] != 1)
            place += at % size * stride;
        stride *= t.dim[t.rank - k];
        at /= size;
    }
    return place;
}

// The element of operand i that element at of the node needs.
static double broadcast(const Margin *m, int i, int64_t at) {
    return arg(m, i)[place_in(*type_at(m, i), *m->n->type, at)];
}

// What is left of the digits of a double when all others have cancelled.
static const double LEFT = 0x1p-40;

// Whether a variance is all but 0 beside the square of what it is of.
static bool spreads_little(const Margin *m) {
    const double *var = m->value[m->n - m->g->node];
    double most = 0;
    for (int64_t i = 0; i < type_count(type_at(m, 0)); i++)
        most = fmax(most, fabs(arg(m, 0)[i]));
    for (int64_t i = 0; i < type_count(m->n->type) && most > 0; i++)
        if (var[i] <= LEFT * LEFT * most * most)
            return true;
    return false;
}

// Whether of a sum over axes much less is left than its terms are together.
static bool sums_to_little(const Margin *m) {
    const double *sum = m->value[m->n - m->g->node];
    Type t = *type_at(m, 0);
    int64_t count = type_count(m->n->type);
    double *terms = ARENA_ARRAY(m->a, (size_t)count + 1, double);
    for (int64_t i = 0; i < type_count(&t); i++)
        terms[place_in(*m->n->type, t, i)] += fabs(arg(m, 0)[i]);
    for (int64_t i = 0; i < count; i++)
        if (terms[i] > 0 && fabs(sum[i]) <= LEFT * terms[i])
            return true;
    return false;
}

static bool is_difference(const Node *d) {
    return (d->op == OP_add || d->op == OP_sub) && dtype_float(d->type->dtype);
}

// Whether a difference takes back what its operand had added: (x + y) - x and
// (y - x) + x are y, but for roundings.
static bool takes_back(const Margin *m) {
    for (int i = 0; i < 2; i++) {
        const Node *d = &m->g->node[m->n->arg[i]];
        NodeId other = m->n->arg[1 - i];
        for (int k = 0; k < 2 && is_difference(d); k++)
            if (d->arg[k] == other &&
                (d->op == OP_sub && k == 1) == (m->n->op == OP_add))
                return true;
    }
    return false;
}

// Whether of a sum or difference much less is left than went in.
static bool cancels(const Margin *m) {
    if (m->n->op == OP_var)
        return spreads_little(m);
    if (m->n->op == OP_sum)
        return dtype_float(m->n->type->dtype) && sums_to_little(m);
    if (!is_difference(m->n))
        return false;
    if (takes_back(m))
        return true;
    for (int64_t i = 0; i < type_count(m->n->type); i++) {
        double size = fabs(broadcast(m, 0, i)) + fabs(broadcast(m, 1, i));
        if (size > 0 && fabs(m->value[m->n - m->g->node][i]) <= LEFT * size)
            return true;
    }
    return false;
}

static bool near_comparison(const Margin *m) {
    if (!dtype_float(type_at(m, 0)->dtype))
        return false;
    double error = error_of(m, 0) + error_of(m, 1);
    for (int64_t i = 0; i < type_count(m->n->type); i++)
        if (is_close(m, broadcast(m, 0, i), broadcast(m, 1, i), error))
            return true;
    return false;
}

// floor, and a cast of a float to a whole number.
static bool near_whole(const Margin *m) {
    if (!dtype_float(type_at(m, 0)->dtype))
        return false;
    double error = error_of(m, 0);
    for (int64_t i = 0; i < type_count(m->n->type); i++)
        if (fabs(arg(m, 0)[i] - nearbyint(arg(m, 0)[i])) <= error)
            return true;
    return false;
}

static bool near_argmax(const Margin *m) {
    Type t = *type_at(m, 0);
    int64_t K = t.dim[t.rank - 1];
    double error = error_of(m, 0);
    for (int64_t i = 0; i < type_count(&t); i++) {
        int64_t row = i / K;
        int64_t most = (int64_t)m->value[m->n - m->g->node][row];
        if (i % K != most &&
            is_close(m, arg(m, 0)[i], arg(m, 0)[row * K + most], error))
            return true;
    }
    return false;
}

// Of the windows over an image, all but equal pixels anywhere near.
static bool near_pool(const Margin *m) {
    Type t = *type_at(m, 0);
    double error = error_of(m, 0);
    int64_t rows = node_ints(m->n, ATTR_window, 0, 1);
    int64_t columns = node_ints(m->n, ATTR_window, 1, 1);
    for (int64_t i = 0; i < type_count(&t); i++) {
        int64_t c = i % t.dim[3], w = i / t.dim[3] % t.dim[2];
        int64_t h = i / t.dim[3] / t.dim[2] % t.dim[1];
        int64_t n = i / t.dim[3] / t.dim[2] / t.dim[1];
        for (int64_t y = h; y < t.dim[1] && y < h + rows; y++)
            for (int64_t x = w - columns + 1; x < t.dim[2] && x < w + columns;
                 x++)
                if (x >= 0 && (y != h || x != w) &&
                    is_close(
                        m, arg(m, 0)[i],
                        arg(m,
                            0)[((n * t.dim[1] + y) * t.dim[2] + x) * t.dim[3] +
                               c],
                        error))
                    return true;
    }
    return false;
}

static bool near_jump(const Margin *m) {
    switch (m->n->op) {
    case OP_lt:
    case OP_le:
    case OP_eq:
        return near_comparison(m);
    case OP_floor:
        return near_whole(m);
    case OP_cast:
        return !dtype_float(m->n->type->dtype) && m->n->type->dtype != BOOL &&
               near_whole(m);
    case OP_argmax:
        return near_argmax(m);
    case OP_max_pool_index:
        return near_pool(m);
    default:
        return false;
    }
}

bool *margin_unsure(const Graph *g, double *const *value, double unit,
                    Arena *a) {
    bool *unsure = ARENA_ARRAY(a, g->count + 1, bool);
    bool *cancelled = ARENA_ARRAY(a, g->count + 1, bool);
    for (NodeId n = 0; n < g->count; n++) {
        Margin m = {g, &g->node[n], value, unit, false, a};
        for (int i = 0; i < m.n->num_args; i++) {
            unsure[n] |= unsure[m.n->arg[i]];
            m.cancelled |= cancelled[m.n->arg[i]];
        }
        cancelled[n] = m.cancelled || cancels(&m);
        unsure[n] = unsure[n] || near_jump(&m);
    }
    return unsure;
}
