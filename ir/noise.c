// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Noise: stochastic arithmetic (Vignes, "A stochastic arithmetic for reliable
// scientific computation", 1993).
//
// The graph is rebuilt with an error for each user of an operation that rounds,
// since a kernel may read a stored value and another recompute it: a
// number of 1 unit of its element type times its size, or for sums, which add
// up one by one in f32, the root of their length times the size of the sum if
// nothing cancelled.  If many terms are equal, their roundings go the same way,
// and the factor is the length; equal numbers have equal errors.  Selecting and
// moving has no error.  A kernel may also recompute pointwise values from
// stored ones: each user has its own such values too, as far as there is room.
#include "ir/noise.h"
#include "ir/tolerance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Graph *g;
    Arena *a;
    double *const *value; // of the graph that is rebuilt
    bool squares;         // variances of convolutions are computed from them
    uint32_t seed;
    double **leaf;    // of g
    const bool *draws; // of the graph that is rebuilt
    NodeId max_nodes; // below this size of g, each user has its own noise
} Noise;

// Halves are no closer to one another than this.
static const double LEAST_HALF = 0x1p-24;

static double unit_of(const Graph *g, DType d) {
    DType stored = d == ACT ? g->act : d;
    return stored == F16 ? 0x1p-11 : stored == BF16 ? 0x1p-8 : 0x1p-24;
}

// Which nodes are made of random draws and constants alone.  All kernels
// compute them alike, in f32.  An error could move them out of the domain of a
// function: a normal draw is the root of -2 log u, with u up to 1.
static bool *find_draws(const Graph *g, Arena *a) {
    bool *draws = ARENA_ARRAY(a, (size_t)g->count + 1, bool);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        bool fixed = op_info[d->op].traits & (POINTWISE | VIEW), some = false;
        for (int i = 0; i < d->num_args; i++) {
            some |= draws[d->arg[i]];
            fixed &= draws[d->arg[i]] || g->node[d->arg[i]].op == OP_constant;
        }
        draws[n] = d->op == OP_uniform || (fixed && some);
    }
    return draws;
}

// A value in 16 bits may be rounded after an operation that only moves it.
static bool rounds(const Graph *g, const Node *d) {
    static const Op exact[] = {OP_neg,     OP_abs,    OP_relu,    OP_broadcast,
                               OP_maximum, OP_select, OP_minimum, OP_uniform,
                               OP_floor,   OP_finite};
    unsigned traits = op_info[d->op].traits;
    if (!dtype_float(d->type->dtype) || (traits & (LEAF | EFFECT)))
        return false;
    if (d->type->dtype == ACT && g->act != F32)
        return true;
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (d->op == exact[i])
            return false;
    if (traits & REDUCES)
        return d->op == OP_sum || d->op == OP_var;
    return traits & (POINTWISE | CONTRACTS | SCATTERS | COMPOSITE | ATTENDS) ||
           d->op == OP_avg_pool || d->op == OP_avg_pool_grad ||
           d->op == OP_max_pool_grad || d->op == OP_resize_grad;
}

static bool adds_window(const Node *d) {
    return d->op == OP_avg_pool || d->op == OP_avg_pool_grad ||
           d->op == OP_max_pool_grad;
}

// How many numbers are added up for an element.
static double terms_of(const Graph *g, const Node *d) {
    double count = (double)type_count(d->type);
    if (adds_window(d))
        return (double)node_ints(d, ATTR_window, 0, 1) *
               (double)node_ints(d, ATTR_window, 1, 1);
    if (!(op_info[d->op].traits & (REDUCES | CONTRACTS | SCATTERS)) ||
        count == 0)
        return 1;
    double given = (double)type_count(g->node[d->arg[0]].type);
    if (op_info[d->op].traits & CONTRACTS) // at most all of both
        given *= (double)type_count(g->node[d->arg[1]].type);
    return given > count ? given / count : 1;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Whether most of so many numbers are there more than once.
static bool repeats(Arena *a, const double *x, int64_t count) {
    double *sorted = ARENA_ARRAY(a, (size_t)count + 1, double);
    int64_t different = 0;
    memcpy(sorted, x, (size_t)count * sizeof *x);
    qsort(sorted, (size_t)count, sizeof *sorted, by_size);
    for (int64_t i = 0; i < count; i++)
        different += i == 0 || sorted[i] != sorted[i - 1];
    return 2 * different < count;
}

// The relative error of adding up an element.
static double sum_error(const Noise *x, const Graph *g, const Node *d) {
    double terms = terms_of(g, d);
    bool equal = terms > 1 && repeats(x->a, x->value[d->arg[0]],
                                      type_count(g->node[d->arg[0]].type));
    return 0x1p-24 * (equal ? terms : sqrt(terms));
}

// The same sum of the absolute values of its terms.
static NodeId without_signs(Noise *x, const Node *d, NodeId now) {
    unsigned traits = op_info[d->op].traits;
    if (!(traits & (CONTRACTS | SCATTERS)) && d->op != OP_sum &&
        !adds_window(d))
        return graph_op1(x->g, OP_abs, now);
    Node copy = x->g->node[now];
    NodeId arg[3];
    for (int i = 0; i < copy.num_args; i++) {
        bool index = !dtype_float(x->g->node[copy.arg[i]].type->dtype);
        arg[i] = index ? copy.arg[i] : graph_op1(x->g, OP_abs, copy.arg[i]);
        copy = x->g->node[now];
    }
    copy.arg = arg;
    return graph_add(x->g, copy);
}

// Between -1 and 1 for a number.  Equal ones are rounded alike.
static double draw(uint32_t seed, NodeId n, double x) {
    float number = (float)x;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return 2 * random_uniform(seed, n, 0, bits) - 1;
}

// An input with errors of -size .. size for the numbers of node n.
static NodeId errors(Noise *x, const Graph *old, NodeId n, double size) {
    Type t = *old->node[n].type;
    NodeId input = graph_leaf(x->g, OP_input,
                              arena_format(x->a, "noise %u", x->g->count), t);
    int64_t count = type_count(&t);
    x->leaf[input] = ARENA_ARRAY(x->a, (size_t)count + 1, double);
    for (int64_t i = 0; i < count; i++)
        x->leaf[input][i] = size * draw(x->seed, input, x->value[n][i]);
    return input;
}

// A variance from a sum and a sum of squares in f32, as the kernels compute it
// (var_finalize in runtime/prelude/prelude.h): mean square less squared mean.
// The first has three roundings, those of the sum, of one by the count and of
// their product; the mean has as many, and is squared with one more.  So
// the variance is off by up to 3 + 7 units of the mean square, however small it
// is itself, and not below 0.
static NodeId of_squares(Noise *x, const Graph *old, NodeId n, NodeId now) {
    static const double roundings = 10 * 0x1p-24;
    const Node *d = &old->node[n];
    NodeId of = x->g->node[now].arg[0];
    Node sum = x->g->node[now];
    NodeId square = graph_op2(x->g, OP_mul, of, of);
    double count = (double)type_count(old->node[d->arg[0]].type) /
                   (double)type_count(d->type);
    sum.op = OP_sum;
    sum.arg = &square;
    NodeId error = errors(x, old, n, roundings / count);
    error = graph_op2(x->g, OP_mul, graph_add(x->g, sum), error);
    return graph_op1(x->g, OP_relu, graph_op2(x->g, OP_add, now, error));
}

static NodeId rebuild(Noise *x, const Graph *old, NodeId n, const NodeId *now);

// The value of operand n for one of its users.
static NodeId disturb(Noise *x, const Graph *old, NodeId n, const NodeId *now) {
    const Node *d = &old->node[n];
    double size = unit_of(old, d->type->dtype);
    bool again =
        op_info[d->op].traits & POINTWISE && x->g->count < x->max_nodes;
    NodeId own = again ? rebuild(x, old, n, now) : now[n];
    if (x->draws[n] || !rounds(old, d))
        return own;
    if (x->squares && d->op == OP_var && old->node[d->arg[0]].op == OP_conv)
        return of_squares(x, old, n, own);
    double sum = sum_error(x, old, d);
    NodeId terms = without_signs(x, d, own);
    NodeId error = graph_op2(x->g, OP_mul, terms,
                             errors(x, old, n, size > sum ? size : sum));
    NodeId off = graph_op2(x->g, OP_add, own, error);
    bool half =
        d->type->dtype == F16 || (d->type->dtype == ACT && old->act == F16);
    return half ? graph_op2(x->g, OP_add, off, errors(x, old, n, LEAST_HALF))
                : off;
}

static bool decides(Op op) {
    return op == OP_eq || op == OP_lt || op == OP_le || op == OP_argmax ||
           op == OP_max_pool_index;
}

// Decisions stay as they are: with errors of their own, a maximum would equal
// none of the values that are compared with it.
static NodeId hold(Noise *x, const Graph *old, NodeId n) {
    NodeId input =
        graph_leaf(x->g, OP_input, arena_format(x->a, "held %u", x->g->count),
                   *old->node[n].type);
    x->leaf[input] = x->value[n];
    return input;
}

static NodeId rebuild(Noise *x, const Graph *old, NodeId n, const NodeId *now) {
    Node d = old->node[n];
    if (decides(d.op))
        return hold(x, old, n);
    NodeId *arg = ARENA_ARRAY(x->a, (size_t)d.num_args + 1, NodeId);
    for (int i = 0; i < d.num_args; i++)
        arg[i] = d.op == OP_assign && i == 0 ? now[d.arg[i]]
                                             : disturb(x, old, d.arg[i], now);
    d.arg = arg;
    d.group = -1;
    return graph_add(x->g, d);
}

double **noise_eval(const Graph *g, Arena *a, double *const *leaf,
                    double *const *value, bool squares, uint32_t seed) {
    size_t room = 1; // for each node that is built once
    for (NodeId n = 0; n < g->count; n++)
        room += 1 + 8 * (size_t)g->node[n].num_args;
    Noise x = {.g = graph_new(a, g->name),
               .a = a,
               .value = value,
               .squares = squares,
               .seed = seed,
               .leaf = ARENA_ARRAY(a, 4 * room, double *),
               .draws = find_draws(g, a),
               .max_nodes = (NodeId)(2 * room)};
    NodeId *now = ARENA_ARRAY(a, g->count + 1, NodeId);
    double **disturbed = ARENA_ARRAY(a, g->count + 1, double *);
    x.g->act = g->act;
    for (NodeId n = 0; n < g->count; n++) {
        now[n] = rebuild(&x, g, n, now);
        if (leaf[n] != NULL)
            x.leaf[now[n]] = leaf[n];
    }
    double **computed = graph_eval(x.g, a, x.leaf, false);
    for (NodeId n = 0; n < g->count; n++)
        disturbed[n] = computed[now[n]];
    return disturbed;
}

// ---- errors that all users see ----

typedef struct {
    const Graph *g;
    const bool *updates, *draws, *wanted;
    double unit;   // an activation's
    double single; // of f32 and of sums
    bool alike;    // numbers are that are equal in f32
    uint32_t seed;
    NodeVisitor *visit;
    void *context;
} Shaken;

// Which nodes are made of a param or state of their shape element by element.
static bool *find_updates(const Graph *g, Arena *a) {
    bool *updates = ARENA_ARRAY(a, (size_t)g->count + 1, bool);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        updates[n] = d->op == OP_param || d->op == OP_state;
        for (int i = 0; i < d->num_args; i++)
            updates[n] |=
                updates[d->arg[i]] &&
                (op_info[d->op].traits & (POINTWISE | VIEW)) &&
                type_count(g->node[d->arg[i]].type) == type_count(d->type);
    }
    return updates;
}

// As draw, of all digits of x.
static double draw_double(uint32_t seed, NodeId n, double x) {
    uint32_t bits[2];
    memcpy(bits, &x, sizeof bits);
    return 2 * random_uniform(seed, n, bits[1], bits[0]) - 1;
}

static void shake(void *context, NodeId n, double *const *value) {
    const Shaken *s = context;
    const Node *d = &s->g->node[n];
    int64_t count = type_count(d->type);
    if (!s->draws[n] && rounds(s->g, d)) {
        double unit = s->updates[n] ? s->single : s->unit;
        double sum = s->single * sqrt(terms_of(s->g, d)) *
                     error_terms(s->g, n, value) /
                     sqrt((double)(count ? count : 1));
        for (int64_t i = 0; i < count; i++) {
            double x = value[n][i];
            value[n][i] +=
                (unit * fabs(x) + sum) *
                (s->alike ? draw(s->seed, n, x) : draw_double(s->seed, n, x));
        }
    }
    if (s->wanted[n])
        s->visit(s->context, n, value);
}

// Adds the errors that s describes to the graph.
static void shake_all(Shaken s, const Graph *g, double *const *leaf) {
    Arena *a = arena_new();
    bool *all = ARENA_ARRAY(a, (size_t)g->count + 1, bool);
    memset(all, true, g->count);
    s.g = g;
    s.updates = find_updates(g, a);
    s.draws = find_draws(g, a);
    graph_eval_visit(g, leaf, false, all, shake, &s);
    arena_free(a);
}

void noise_visit(const Graph *g, double *const *leaf, DType activations,
                 double units, uint32_t seed, const bool *wanted,
                 NodeVisitor *visit, void *context) {
    Shaken s = {.wanted = wanted,
                .unit = units * unit_of(g, activations),
                .single = units * 0x1p-24,
                .alike = true,
                .seed = seed,
                .visit = visit,
                .context = context};
    shake_all(s, g, leaf);
}

void noise_visit_double(const Graph *g, double *const *leaf, uint32_t seed,
                        const bool *wanted, NodeVisitor *visit, void *context) {
    static const double units = 8 * 0x1p-53;
    Shaken s = {.wanted = wanted,
                .unit = units,
                .single = units,
                .seed = seed,
                .visit = visit,
                .context = context};
    shake_all(s, g, leaf);
}
