// Canonicalize: rewrites of layers, before they have gradients.
//
//   requires   The graph is verified.  A graph with gradients, or without
//              composite operations, stays as it is.
//   preserves  Every value stays the same, up to the rounding of removed nodes,
//              and every gradient, but for pools of equal numbers, see below.
//   result     The rewrites below are made.  Unused nodes are left for dce.
//
// A bias that batch_norm subtracts with the mean moves to the running mean, the
// only place where it counts, and so has no gradient.
//
// A relu after a max_pool has fewer elements to compute, and its gradient reads
// the pooled tensor instead of the whole one.  The result of a batch_norm that
// is not one node is left as it is: its gradient reads the whole tensor anyway.
//
// A batch_norm after a max_pool has fewer elements to normalize, and the sums
// of its gradient are those of the pooled tensor.  Where its scale is exactly 0
// all elements of a window are equal, and the gradient of the scale is that of
// the largest x instead of the first one: both are subgradients.
//
// The last rows and columns of a convolution that no window of a pool reaches
// are not computed.
#include "passes/passes.h"

typedef struct {
    const Graph *old;
    Graph *g;
    uint32_t *uses;
    bool *cancelled; // a bias addition that find_cancelled finds
    NodeId *now;
    const PassOptions *options;
} Rewrite;

// ---- a bias before batch_norm ----

static bool reduces_all_but_channels(const Rewrite *e, NodeId n) {
    const Node *d = graph_node(e->old, n);
    if (d->op != OP_sum && d->op != OP_var)
        return false;
    int rank = graph_node(e->old, d->arg[0])->type->rank;
    bool kept = node_attr(d, ATTR_axes)->count == rank - 1;
    for (int i = 0; i < rank - 1; i++)
        kept &= node_ints(d, ATTR_axes, i, -1) == i;
    return kept;
}

// The operand of an addition that is a param for each channel of the other one,
// 0 or 1; -1 for none.
static int bias_of(const Rewrite *e, NodeId n) {
    const Node *d = graph_node(e->old, n);
    for (int i = 0; d->op == OP_add && i < 2; i++) {
        const Node *b = graph_node(e->old, d->arg[i]),
                   *x = graph_node(e->old, d->arg[1 - i]);
        if (b->op == OP_param && b->type->rank == 1 && d->type->rank > 1 &&
            b->type->dim[0] == d->type->dim[d->type->rank - 1] &&
            type_has_shape(x->type, d->type))
            return i;
    }
    return -1;
}

// Whether the node normalizes the values of which it takes mean and variance.
static bool normalizes_itself(const Rewrite *e, NodeId n) {
    return graph_node(e->old, n)->op == OP_batch_norm &&
           graph_node(e->old, n)->num_args == 3;
}

// Bias additions that batch_norm and its statistics alone read.  One of which
// nothing takes the mean stays: there is none for the bias to move to.
static void find_cancelled(Rewrite *e) {
    const Graph *old = e->old;
    for (NodeId n = 0; n < old->count; n++)
        e->cancelled[n] = bias_of(e, n) >= 0;
    for (NodeId n = 0; n < old->count; n++)
        for (int i = 0; i < graph_node(e->old, n)->num_args; i++) {
            bool normalised = normalizes_itself(e, n) && i == 0;
            if (!normalised && !reduces_all_but_channels(e, n))
                e->cancelled[graph_node(e->old, n)->arg[i]] = false;
        }
    for (NodeId n = 0; n < old->count; n++)
        e->cancelled[n] = e->cancelled[n] && e->uses[n] > 1 &&
                          rewrite_allowed(e->g, e->options);
}

// The reduction or normalisation of y + bias, from y.
static NodeId without_bias(Rewrite *e, NodeId n) {
    const Node *d = graph_node(e->old, n),
               *addition = graph_node(e->old, d->arg[0]);
    int bias = bias_of(e, d->arg[0]);
    NodeId arg[3];
    for (int i = 0; i < d->num_args; i++)
        arg[i] = e->now[d->arg[i]];
    arg[0] = e->now[addition->arg[1 - bias]];
    Node copy = *d;
    copy.arg = arg;
    NodeId result = graph_add(e->g, copy);
    if (d->op != OP_sum)
        return result;
    double count = (double)(type_count(addition->type) / type_count(d->type));
    NodeId number = graph_constant(e->g, type_scalar(d->type->dtype), count);
    NodeId all = graph_op2(e->g, OP_mul, e->now[addition->arg[bias]], number);
    return graph_op2(e->g, OP_add, result, all);
}

// ---- relu before max_pool ----

// Whether the value may be the result of batch_norm: it is one node, or ends
// with the addition of a product, as those for ghost batches and for evaluation
// do.
static bool is_normalised(const Rewrite *e, NodeId n) {
    const Node *d = graph_node(e->old, n);
    if (d->op == OP_reshape)
        return is_normalised(e, d->arg[0]);
    if (d->op == OP_add)
        return graph_node(e->old, d->arg[0])->op == OP_mul ||
               graph_node(e->old, d->arg[1])->op == OP_mul;
    return d->op == OP_batch_norm;
}

static bool pools_relu(const Rewrite *e, NodeId n) {
    if (graph_node(e->old, n)->op != OP_max_pool)
        return false;
    NodeId relu = graph_node(e->old, n)->arg[0];
    return graph_node(e->old, relu)->op == OP_relu && e->uses[relu] == 1 &&
           !is_normalised(e, graph_node(e->old, relu)->arg[0]);
}

static NodeId pool_first(Rewrite *e, NodeId n) {
    NodeId relu = graph_node(e->old, n)->arg[0],
           arg = e->now[graph_node(e->old, relu)->arg[0]];
    Node pool = *graph_node(e->old, n);
    pool.arg = &arg;
    NodeId pooled = graph_add(e->g, pool);
    e->g->origin = graph_node(e->old, relu)->from;
    return graph_op1(e->g, OP_relu, pooled);
}

// ---- max_pool before batch_norm ----

// The batch_norm that max_pool n pools, by itself or through a relu; NO_NODE:
// none, or others read it.
static NodeId norm_of(const Rewrite *e, NodeId n) {
    if (graph_node(e->old, n)->op != OP_max_pool)
        return NO_NODE;
    NodeId x = graph_node(e->old, n)->arg[0];
    if (graph_node(e->old, x)->op == OP_relu && e->uses[x] == 1)
        x = graph_node(e->old, x)->arg[0];
    return normalizes_itself(e, x) && e->uses[x] == 1 ? x : NO_NODE;
}

// The largest result of batch_norm in a window is that of the largest x where
// the scale is positive, and that of the smallest x where it is negative.
static NodeId norm_pooled(Rewrite *e, NodeId n, NodeId norm) {
    Graph *g = e->g;
    Node pool = *graph_node(e->old, n), y = g->node[e->now[norm]];
    NodeId arg[4] = {y.arg[0], y.arg[1], y.arg[2]};
    NodeId is_negative = graph_op2(g, OP_lt, arg[1], graph_number(g, 0));
    NodeId sign = graph_op3(g, OP_select, is_negative, graph_number(g, -1),
                            graph_number(g, 1));
    NodeId x = graph_op2(g, OP_mul, arg[0], sign);
    pool.arg = &x;
    arg[3] = graph_op2(g, OP_mul, graph_add(g, pool), sign);
    y.arg = arg;
    y.num_args = 4;
    g->origin = y.from;
    NodeId result = graph_add(g, y);
    const Node *relu = graph_node(e->old, graph_node(e->old, n)->arg[0]);
    if (relu->op != OP_relu)
        return result;
    g->origin = relu->from;
    return graph_op1(g, OP_relu, result);
}

// ---- a convolution that is pooled ----

// How many rows (axis 1) or columns (2) of pool d's operand follow its last
// window.
static int64_t unread_rows(const Rewrite *e, const Node *d, int axis) {
    int64_t end =
        (d->type->dim[axis] - 1) * node_ints(d, ATTR_stride, axis - 1, 1) +
        node_ints(d, ATTR_window, axis - 1, 1) -
        node_ints(d, ATTR_pad, 2 * (axis - 1), 0);
    int64_t unread = graph_node(e->old, d->arg[0])->type->dim[axis] - end;
    return unread > 0 && d->type->dim[axis] > 0 ? unread : 0;
}

// The padding at the end of axis 1 or 2 that convolution c needs for pool d;
// its own padding if it cannot have less.
static int64_t end_pad(const Rewrite *e, const Node *c, const Node *d,
                       int axis) {
    int64_t pad = node_ints(c, ATTR_pad, 2 * axis - 1, 0);
    int64_t less =
        unread_rows(e, d, axis) * node_ints(c, ATTR_stride, axis - 1, 1);
    return less <= pad ? pad - less : pad;
}

static bool leaves_rows_unread(const Rewrite *e, NodeId n) {
    const Node *d = graph_node(e->old, n);
    if (d->op != OP_max_pool && d->op != OP_avg_pool)
        return false;
    const Node *c = graph_node(e->old, d->arg[0]);
    return c->op == OP_conv && e->uses[d->arg[0]] == 1 &&
           (end_pad(e, c, d, 1) != node_ints(c, ATTR_pad, 1, 0) ||
            end_pad(e, c, d, 2) != node_ints(c, ATTR_pad, 3, 0));
}

// The pool of a convolution with less padding at its end.
static NodeId pool_cropped(Rewrite *e, NodeId n) {
    const Node *d = graph_node(e->old, n), *c = graph_node(e->old, d->arg[0]);
    int64_t pad[4];
    for (int i = 0; i < 4; i++)
        pad[i] = i % 2 ? end_pad(e, c, d, (i + 1) / 2)
                       : node_ints(c, ATTR_pad, i, 0);
    NodeId arg[] = {e->now[c->arg[0]], e->now[c->arg[1]]};
    Attr attr[NUM_ATTRS];
    Node conv = *c, pool = *d;
    for (int i = 0; i < c->num_attrs; i++)
        attr[i] = c->attr[i].key == ATTR_pad ? attr_ints(ATTR_pad, 4, pad)
                                             : c->attr[i];
    conv.arg = arg;
    conv.attr = attr;
    e->g->origin = c->from;
    NodeId cropped = graph_add(e->g, conv);
    pool.arg = &cropped;
    e->g->origin = d->from;
    return graph_add(e->g, pool);
}

Graph *pass_canonicalize(Graph *g, Arena *scratch, const PassOptions *o) {
    if (g->facts & (BACKWARD | PRIMITIVE))
        return g;
    Rewrite e = {.old = g,
                 .g = graph_like(g),
                 .uses = graph_uses(g, scratch),
                 .cancelled = ARENA_ARRAY(scratch, g->count, bool),
                 .now = ARENA_ARRAY(scratch, g->count, NodeId),
                 .options = o};
    find_cancelled(&e);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = graph_node(g, n);
        e.g->origin = d->from;
        if (d->num_args > 0 && e.cancelled[d->arg[0]])
            e.now[n] = without_bias(&e, n);
        else if (pools_relu(&e, n) && rewrite_allowed(e.g, o))
            e.now[n] = pool_first(&e, n);
        else if (norm_of(&e, n) != NO_NODE && rewrite_allowed(e.g, o))
            e.now[n] = norm_pooled(&e, n, norm_of(&e, n));
        else if (leaves_rows_unread(&e, n) && rewrite_allowed(e.g, o))
            e.now[n] = pool_cropped(&e, n);
        else
            e.now[n] = graph_copy(e.g, g, n, e.now);
    }
    return e.g;
}
