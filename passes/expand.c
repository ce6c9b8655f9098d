// Expand: composite operations become primitive ones.
//
//   requires   Gradients are appended, if the graph will have any.
//   preserves  Every value stays the same.
//   result     No composite operation is left.
//
// ops.def names the function that expands each of them.
#include "passes/composite.h"
#include "passes/passes.h"

#include <string.h>

// A graph that is being rebuilt, and the node at hand.
typedef struct {
    Graph *g;
    const Graph *old;
    NodeId id;
    const NodeId *now;
    bool shards; // the graph is the part of a shard
} Expansion;

typedef NodeId ExpandRule(const Expansion *e);

#define EXPAND(rule) static ExpandRule expand_##rule;
#include "ir/ops.def"

Normalized composite_normalize(Graph *g, NodeId x, const Node *d) {
    double eps = node_float(d, ATTR_eps, 1e-5);
    Type type = *g->node[x].type;
    int64_t axes[MAX_RANK];
    int count = type.rank - 1;
    for (int i = 0; i < count; i++)
        axes[i] = i;
    double n = (double)type_count(&type) / (double)type.dim[count];
    NodeId sum = graph_reduce(g, OP_sum, x, count, axes);
    NodeId share = graph_number(g, 1 / n);
    NodeId mean = graph_op2(g, OP_div, sum, graph_number(g, n));
    NodeId var = graph_reduce(g, OP_var, x, count, axes);
    if (node_int(d, ATTR_sync, 0)) {
        BatchMoments m = graph_sync_moments(g, sum, var, n);
        mean = m.mean;
        var = m.var;
        share = graph_op2(g, OP_div, graph_number(g, 1), m.count);
    }
    NodeId safe = graph_op2(g, OP_add, var, graph_number(g, eps));
    return (Normalized){mean, graph_op1(g, OP_rsqrt, safe), share};
}

Exponents composite_exponents(Graph *g, NodeId x, int axis) {
    int64_t axes[] = {axis};
    NodeId largest = graph_reduce(g, OP_max, x, 1, axes);
    NodeId shifted = graph_op2(g, OP_sub, x, largest);
    NodeId exponent = graph_op1(g, OP_exp, shifted);
    NodeId sum = graph_reduce(g, OP_sum, exponent, 1, axes);
    return (Exponents){shifted, exponent, sum};
}

static bool has_shares(const Graph *g, NodeId label) {
    return g->node[label].type->dtype != I32;
}

// bool [M,K]: whether column k is the label of row m.
static NodeId chosen(Graph *g, NodeId logits, NodeId label) {
    Type type = *g->node[logits].type;
    int64_t column[] = {type.dim[0], 1};
    NodeId rows = graph_reshape(g, label, 2, column);
    NodeId columns = graph_iota(g, type_of(I32, 2, type.dim), 1);
    return graph_op2(g, OP_eq, columns, rows);
}

NodeId composite_target(Graph *g, NodeId logits, NodeId label,
                        double smoothing) {
    double rest = smoothing / (double)g->node[logits].type->dim[1];
    if (!has_shares(g, label)) {
        NodeId other = graph_number(g, rest);
        NodeId own = graph_number(g, 1 - smoothing + rest);
        return graph_op3(g, OP_select, chosen(g, logits, label), own, other);
    }
    if (smoothing == 0)
        return label;
    NodeId own = graph_op2(g, OP_mul, label, graph_number(g, 1 - smoothing));
    return graph_op2(g, OP_add, own, graph_number(g, rest));
}

static const Node *node(const Expansion *e) {
    return &e->old->node[e->id];
}

static NodeId operand(const Expansion *e, int i) {
    return e->now[node(e)->arg[i]];
}

// Not composite: stays as it is.
static NodeId expand_none(const Expansion *e) {
    return graph_copy(e->g, e->old, e->id, e->now);
}

// With gain = scale istd, a factor of a channel.  The distance from the mean is
// 0 for a constant x, which the inverse deviation would magnify otherwise.
static NodeId expand_batch_norm(const Expansion *e) {
    Graph *g = e->g;
    Normalized p = composite_normalize(g, operand(e, 0), node(e));
    NodeId gain = graph_op2(g, OP_mul, operand(e, 1), p.istd);
    NodeId z = operand(e, node(e)->num_args == 4 ? 3 : 0);
    NodeId centred = graph_op2(g, OP_sub, z, p.mean);
    NodeId scaled = graph_op2(g, OP_mul, centred, gain);
    return graph_op2(g, OP_add, scaled, operand(e, 2));
}

// loss = log(sum) sum(target) - sum(target shifted).
static NodeId cross_entropy_of_shares(const Expansion *e, const Exponents *p) {
    Graph *g = e->g;
    int64_t axes[] = {1};
    NodeId target = composite_target(g, operand(e, 0), operand(e, 1),
                                     node_float(node(e), ATTR_smoothing, 0));
    NodeId whole = graph_reduce(g, OP_sum, target, 1, axes);
    NodeId all = graph_op2(g, OP_mul, graph_op1(g, OP_log, p->sum), whole);
    NodeId part = graph_op2(g, OP_mul, target, p->shifted);
    return graph_op2(g, OP_sub, all, graph_reduce(g, OP_sum, part, 1, axes));
}

// loss = log(sum) - (1 - a) shifted[label] - a / K sum(shifted).
static NodeId expand_cross_entropy(const Expansion *e) {
    Graph *g = e->g;
    double a = node_float(node(e), ATTR_smoothing, 0);
    NodeId logits = operand(e, 0);
    int64_t classes = g->node[logits].type->dim[1];
    int64_t axes[] = {1};
    Exponents p = composite_exponents(g, logits, 1);
    if (has_shares(g, operand(e, 1)))
        return cross_entropy_of_shares(e, &p);
    NodeId label = chosen(g, logits, operand(e, 1));
    NodeId kept = graph_op3(g, OP_select, label, p.shifted, graph_number(g, 0));
    NodeId target = graph_reduce(g, OP_sum, kept, 1, axes);
    NodeId loss = graph_op1(g, OP_log, p.sum);
    if (a == 0)
        return graph_op2(g, OP_sub, loss, target);
    target = graph_op2(g, OP_mul, target, graph_number(g, 1 - a));
    NodeId all = graph_reduce(g, OP_sum, p.shifted, 1, axes);
    all = graph_op2(g, OP_mul, all, graph_number(g, a / (double)classes));
    return graph_op2(g, OP_sub, graph_op2(g, OP_sub, loss, target), all);
}

static Exponents exponents(const Expansion *e) {
    int last = e->g->node[operand(e, 0)].type->rank - 1;
    int axis = (int)node_int(node(e), ATTR_axis, last);
    return composite_exponents(e->g, operand(e, 0), axis);
}

static NodeId expand_softmax(const Expansion *e) {
    Exponents p = exponents(e);
    NodeId share = graph_op2(e->g, OP_div, graph_number(e->g, 1), p.sum);
    return graph_op2(e->g, OP_mul, p.exp, share);
}

static NodeId expand_log_softmax(const Expansion *e) {
    Exponents p = exponents(e);
    return graph_op2(e->g, OP_sub, p.shifted, graph_op1(e->g, OP_log, p.sum));
}

// Each part of a step but that of a shard knows of one.
static NodeId expand_sum_over_shards(const Expansion *e) {
    return e->shards ? expand_none(e) : operand(e, 0);
}

static NodeId expand_stop_gradient(const Expansion *e) {
    return operand(e, 0);
}

// ---- resize ----

// Rows (axis 0) or columns (axis 1) that the pixels of a resized image are
// between: `low`, and the one after it with this share (NO_NODE: none).
typedef struct {
    NodeId low, high, share;
} Blend;

// i32[count] as i32[N,count].
static NodeId for_each_image(Graph *g, NodeId index, int64_t images) {
    Type t = type_of(I32, 2, (int64_t[]){images, g->node[index].type->dim[0]});
    return graph_broadcast(g, index, &t);
}

static NodeId i32_constant(Graph *g, int64_t value) {
    return graph_constant(g, type_scalar(I32), (double)value);
}

static Blend blend_nearest(Graph *g, NodeId pixel, int64_t from, int64_t to) {
    NodeId low = graph_op2(g, OP_mul, pixel, i32_constant(g, from));
    low = graph_op2(g, OP_div, low, i32_constant(g, to));
    return (Blend){low, NO_NODE, NO_NODE};
}

// Pixels are squares, and their centres are at halves.
static Blend blend_bilinear(Graph *g, NodeId pixel, int64_t from, int64_t to) {
    double step = (double)from / (double)to;
    NodeId at = graph_cast(g, pixel, F32);
    at = graph_op2(g, OP_mul, at, graph_number(g, step));
    at = graph_op2(g, OP_add, at, graph_number(g, 0.5 * step - 0.5));
    at = graph_op2(g, OP_maximum, at, graph_number(g, 0));
    NodeId floor = graph_op1(g, OP_floor, at);
    NodeId low = graph_cast(g, floor, I32);
    NodeId high = graph_op2(g, OP_add, low, i32_constant(g, 1));
    return (Blend){low, high, graph_op2(g, OP_sub, at, floor)};
}

static Blend blend(const Expansion *e, int axis) {
    Graph *g = e->g;
    Type image = *g->node[operand(e, 0)].type;
    int64_t from = image.dim[1 + axis];
    int64_t to = node_ints(node(e), ATTR_size, axis, 1);
    NodeId pixel = graph_iota(g, type_of(I32, 1, &to), 0);
    bool nearest = strcmp(node_text(node(e), ATTR_mode), "nearest") == 0;
    Blend b = nearest ? blend_nearest(g, pixel, from, to)
                      : blend_bilinear(g, pixel, from, to);
    b.low = for_each_image(g, b.low, image.dim[0]);
    if (nearest)
        return b;
    b.high = for_each_image(g, b.high, image.dim[0]);
    b.share =
        graph_reshape(g, b.share, axis == 0 ? 3 : 2, (int64_t[]){to, 1, 1});
    return b;
}

// a and b, of which b has this share.
static NodeId mix(Graph *g, NodeId a, NodeId b, NodeId share) {
    NodeId rest = graph_op2(g, OP_sub, graph_number(g, 1), share);
    NodeId of_b = graph_op2(g, OP_mul, b, share);
    return graph_op2(g, OP_add, graph_op2(g, OP_mul, a, rest), of_b);
}

static NodeId row_of(const Expansion *e, NodeId rows, const Blend *columns) {
    NodeId x = operand(e, 0);
    NodeId low = graph_op3(e->g, OP_take, x, rows, columns->low);
    if (columns->high == NO_NODE)
        return low;
    NodeId high = graph_op3(e->g, OP_take, x, rows, columns->high);
    return mix(e->g, low, high, columns->share);
}

static NodeId expand_resize(const Expansion *e) {
    Blend rows = blend(e, 0), columns = blend(e, 1);
    NodeId y = row_of(e, rows.low, &columns);
    if (rows.high != NO_NODE)
        y = mix(e->g, y, row_of(e, rows.high, &columns), rows.share);
    return graph_cast(e->g, y, node(e)->type->dtype);
}

// ---- the pass ----

static ExpandRule *const expand_rule[NUM_OPS] = {
#define OP(name, ...) [OP_##name] =
#define EXPAND(rule) expand_##rule,
#include "ir/ops.def"
};

Graph *pass_expand(Graph *g, Arena *scratch, const PassOptions *o) {
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        out->origin = g->node[n].from;
        Expansion e = {out, g, n, now, o->part == PART_SHARD};
        now[n] = expand_rule[g->node[n].op](&e);
    }
    return out;
}
