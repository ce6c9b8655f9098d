// Conv-backward reductions: computes the gradient of a bias before a
// convolution in the convolution's weight-gradient call.
//
//   requires   Operations are primitive, and no precision is assigned.
//   preserves  Every value stays the same, up to the order of summation.
//   result     If one column reduction is the only use of a convolution's data
//              gradient, the weight-gradient call computes the sum, and the
//              data gradient is not computed.
//
// An example is a bias, an activation and a convolution, where nothing before
// the bias is trained.  The bias gradient is the sum of f * dx over the rows
// [N,H,W], where dx = conv_grad_input(dy, w) and f is the derivative of the
// activation.
//
// That sum equals the sum over [K,R,S] of w * conv_grad_weight(dy, f): both add
// f * dy * w, in another order.  The filters' own gradient is
// conv_grad_weight(dy, x).  So one call computes both, from x and f as channels
// of one image, and reads dy once.
//
// The pass finds f by applying the operations between dx and the sum to 1.  f
// is stored as an activation, without the loss scale, so it must be in the
// range of 16-bit floats.
#include "passes/passes.h"
#include "passes/plan/group.h"

#include <math.h>

typedef struct {
    const Graph *old;
    NodeId *root;    // of each node: the data gradient that it is a multiple of
    bool *other_use; // of a data gradient: it has a use beside the sum
    NodeId *total;   // of a data gradient: the sum over its rows, or NO_NODE
    NodeId *filters; // of a data gradient: the filters' gradient of the same
                     // convolution; NO_NODE if it is not rewritten
    NodeId *user;    // of each node: the first that reads it
    bool *large;     // of each node: it may exceed the range of activations
} Reductions;

static const Type *type_at(const Reductions *s, NodeId n) {
    return graph_node(s->old, n)->type;
}

// ---- dependence on a gradient ----

static bool is_zero(const Node *d) {
    double value;
    return node_number(d, &value) && value == 0;
}

// Whether n may exceed the range of activations: quotients, products with a
// large constant, and nodes in f32.
static bool is_large(const Reductions *s, NodeId n) {
    static const double limit = 1024;
    const Node *d = graph_node(s->old, n);
    bool pointwise = op_info[d->op].traits & (POINTWISE | VIEW);
    if (d->from.full_precision || d->op == OP_div || d->op == OP_rsqrt)
        return true;
    if (d->op == OP_constant) {
        const Attr *values = node_attr(d, ATTR_values);
        for (int i = 0; i < values->count; i++)
            if (!(fabs(values->floats[i]) <= limit))
                return true;
    }
    for (int i = 0; i < d->num_args && pointwise; i++)
        if (s->large[d->arg[i]])
            return true;
    return false;
}

// Whether n is a multiple of root, element by element, if its operands are, by
// a factor that an activation can hold.
static bool is_multiple(const Reductions *s, NodeId n, NodeId root) {
    const Node *d = graph_node(s->old, n);
    bool of[3] = {false}, zero[3] = {false};
    if (d->from.full_precision || !type_has_shape(d->type, type_at(s, root)))
        return false;
    for (int i = 0; i < d->num_args && i < 3; i++) {
        of[i] = s->root[d->arg[i]] == root;
        zero[i] = is_zero(graph_node(s->old, d->arg[i]));
    }
    switch (d->op) {
    case OP_neg:
        return of[0];
    case OP_add:
    case OP_sub:
        return of[0] && of[1];
    case OP_mul:
        return of[0] != of[1] && !s->large[d->arg[of[0]]];
    case OP_select:
        return !of[0] && (of[1] || zero[1]) && (of[2] || zero[2]);
    default:
        return false;
    }
}

static bool is_column_sum(const Reductions *s, NodeId n) {
    return graph_node(s->old, n)->op == OP_sum &&
           reduction_kind(s->old, n) == COLUMN_REDUCTION;
}

// Node n reads root or a multiple of it.
static void follow_root(Reductions *s, NodeId n, NodeId root) {
    if (s->root[n] != NO_NODE) // on another as well
        s->other_use[s->root[n]] = s->other_use[root] = true;
    else if (is_multiple(s, n, root))
        s->root[n] = root;
    else if (is_column_sum(s, n) && s->total[root] == NO_NODE)
        s->total[root] = n;
    else
        s->other_use[root] = true;
}

static void follow(Reductions *s, NodeId n) {
    const Node *d = graph_node(s->old, n);
    s->large[n] = is_large(s, n);
    for (int i = 0; i < d->num_args; i++) {
        NodeId root = s->root[d->arg[i]];
        if (s->user[d->arg[i]] == NO_NODE)
            s->user[d->arg[i]] = n;
        if (root != NO_NODE && s->root[n] != root)
            follow_root(s, n, root);
    }
    if (d->op == OP_conv_grad_input && !d->from.full_precision)
        s->root[n] = n;
}

// ---- which gradients ----

// Whether both gradients are of the same convolution, with one group.
static bool is_same_conv(const Reductions *s, NodeId input, NodeId filters) {
    const Node *a = graph_node(s->old, input), *b = graph_node(s->old, filters);
    bool same = a->arg[0] == b->arg[0] &&
                type_has_shape(a->type, type_at(s, b->arg[1])) &&
                type_has_shape(b->type, type_at(s, a->arg[1]));
    for (int i = 0; i < 4; i++)
        same &= node_ints(a, ATTR_pad, i, 0) == node_ints(b, ATTR_pad, i, 0);
    for (int i = 0; i < 2; i++)
        same &= node_ints(a, ATTR_stride, i, 1) ==
                    node_ints(b, ATTR_stride, i, 1) &&
                node_ints(a, ATTR_dilation, i, 1) ==
                    node_ints(b, ATTR_dilation, i, 1);
    return same && node_int(a, ATTR_groups, 1) == 1 &&
           node_int(b, ATTR_groups, 1) == 1;
}

// The rewrite saves a write and a read of dx and a read of dy.  It costs writes
// of x and f and at most two reads of x.
static bool is_worth(const Reductions *s, NodeId input) {
    Type dx = *type_at(s, input),
         dy = *type_at(s, graph_node(s->old, input)->arg[0]);
    return dx.dim[3] % 8 == 0 && type_count(&dy) > 2 * type_count(&dx);
}

// Finds the filters' gradients to rewrite, and returns whether there are any.
// One call computes such a gradient and the sum, so no node before the sum may
// use the gradient.
static bool find_filters(Reductions *s, Arena *scratch) {
    NodeId *input = graph_map_new(s->old, scratch);
    bool any = false;
    for (NodeId n = 0; n < s->old->count; n++)
        if (graph_node(s->old, n)->op == OP_conv_grad_input)
            input[graph_node(s->old, n)->arg[0]] = n;
    for (NodeId n = 0; n < s->old->count; n++) {
        if (graph_node(s->old, n)->op != OP_conv_grad_weight)
            continue;
        NodeId dx = input[graph_node(s->old, n)->arg[0]];
        if (dx == NO_NODE || s->other_use[dx] || s->total[dx] == NO_NODE ||
            s->user[n] < s->total[dx] || n > s->total[dx])
            continue;
        if (!is_same_conv(s, dx, n) || !is_worth(s, dx))
            continue;
        s->filters[dx] = n;
        any = true;
    }
    return any;
}

// ---- the new nodes ----

// [...,C] as [...,1,C], the shape of one half in concat_images.  A value for
// each column, or for all, is broadcast and stays.
static NodeId as_half(Graph *g, NodeId a) {
    Type t = *g->node[a].type;
    int64_t dim[MAX_RANK];
    if (t.rank < 2)
        return a;
    for (int i = 0; i < t.rank; i++)
        dim[i] = t.dim[i];
    dim[t.rank - 1] = 1;
    dim[t.rank] = t.dim[t.rank - 1];
    return graph_reshape(g, a, t.rank + 1, dim);
}

// x and f as one image of twice as many channels.
static NodeId concat_images(Graph *g, NodeId x, NodeId f) {
    Type t = *g->node[x].type;
    int64_t halves[] = {2, 1};
    NodeId half = graph_iota(g, type_of(I32, 2, halves), 0);
    NodeId first =
        graph_op2(g, OP_eq, half, graph_constant(g, type_scalar(I32), 0));
    f = as_half(g, f);
    NodeId both = graph_op3(g, OP_select, first, as_half(g, x), f);
    t.dim[3] *= 2;
    return graph_reshape(g, both, 4, t.dim);
}

// The filters' gradient of `channels` channels, from `low` on.
static NodeId slice_half(Graph *g, NodeId both, int64_t low, int64_t channels) {
    int64_t before[] = {0, 0, 0, low}, behind[] = {0, 0, 0, channels - low};
    return graph_slice(g, both, before, behind);
}

// Adds both gradients.  now[] has f for the operand of the sum.
static void add_both(const Reductions *s, Graph *g, NodeId dx, NodeId *now) {
    static const int64_t axes[] = {0, 1, 2};
    NodeId total = s->total[dx], filters = s->filters[dx];
    Node d = *graph_node(s->old, filters);
    int64_t channels = d.type->dim[3];
    g->origin = d.from;
    NodeId arg[] = {now[d.arg[0]],
                    concat_images(g, now[d.arg[1]],
                                  now[graph_node(s->old, total)->arg[0]])};
    d.arg = arg;
    Type wide = *d.type;
    wide.dim[3] = 2 * channels;
    d.type = &wide;
    NodeId both = graph_add(g, d);
    now[filters] = slice_half(g, both, 0, channels);
    g->origin = graph_node(s->old, total)->from;
    NodeId product = graph_op2(g, OP_mul, now[graph_node(s->old, dx)->arg[1]],
                               slice_half(g, both, channels, channels));
    NodeId sum = graph_reduce(g, OP_sum, product, 3, axes);
    Type t = *type_at(s, total);
    now[total] = graph_reshape(g, sum, t.rank, t.dim);
}

// Finds the filters' gradients that move after a sum.
static bool *find_late(Reductions *s, Graph *out, Arena *scratch,
                       const PassOptions *o) {
    bool *late = ARENA_ARRAY(scratch, s->old->count, bool);
    for (NodeId n = 0; n < s->old->count; n++) {
        if (s->filters[n] != NO_NODE && !rewrite_allowed(out, o))
            s->filters[n] = NO_NODE;
        if (s->filters[n] != NO_NODE)
            late[s->filters[n]] = true;
    }
    return late;
}

static Graph *rebuild(Reductions *s, Arena *scratch, const PassOptions *o) {
    const Graph *old = s->old;
    Graph *g = graph_like(old);
    NodeId *now = ARENA_ARRAY(scratch, old->count, NodeId);
    NodeId *of = graph_map_new(old, scratch);
    bool *late = find_late(s, g, scratch, o);
    for (NodeId n = 0; n < old->count; n++)
        if (s->filters[n] != NO_NODE)
            of[s->total[n]] = n;
    for (NodeId n = 0; n < old->count; n++) {
        g->origin = graph_node(s->old, n)->from;
        if (of[n] != NO_NODE)
            add_both(s, g, of[n], now);
        else if (s->filters[n] != NO_NODE)
            now[n] = graph_number(g, 1);
        else if (!late[n])
            now[n] = graph_copy(g, old, n, now);
    }
    return g;
}

Graph *pass_conv_reductions(Graph *g, Arena *scratch, const PassOptions *o) {
    if (!(g->facts & BACKWARD) || (g->facts & TYPED))
        return g;
    Reductions s = {.old = g,
              .root = graph_map_new(g, scratch),
              .other_use = ARENA_ARRAY(scratch, g->count, bool),
              .total = graph_map_new(g, scratch),
              .filters = graph_map_new(g, scratch),
              .user = graph_map_new(g, scratch),
              .large = ARENA_ARRAY(scratch, g->count, bool)};
    for (NodeId n = 0; n < g->count; n++)
        follow(&s, n);
    return find_filters(&s, scratch) ? rebuild(&s, scratch, o) : g;
}
