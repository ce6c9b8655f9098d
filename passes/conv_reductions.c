// Conv-backward reductions: data gradients of convolutions of which only sums
// over columns are needed.
//
//   needs   gradients already there, and no precision decided
//   keeps   every value
//   leaves  no gradient of an image that nothing but one sum over its rows
//           depends on, as of the bias before an activation whose filters are
//           frozen
//
// A sum of f * dx, where dx = conv_grad_input(dy, w), is a sum over products of
// w and conv_grad_weight(dy, f): both add up f * dy * w, in another order.  The
// filters' own gradient is conv_grad_weight(dy, x), so one call makes both from
// x and f beside one another, and reads dy once.
//
// f is the factor of dx on its way to the sum: the same operations on 1.  As an
// image it is stored as an activation, without the scale of the loss, so it
// must be of such a size.
#include "passes/passes.h"
#include "passes/plan/group.h"

#include <math.h>

typedef struct {
    const Graph *old;
    NodeId *root;    // of each node: the gradient that it is a multiple of
    bool *spoilt;    // of a gradient: something else depends on it as well
    NodeId *total;   // of a gradient: the sum over its rows, or NO_NODE
    NodeId *filters; // of a gradient: the filters' gradient beside it, or
                     // NO_NODE where this is not to be rewritten
    NodeId *user;    // of each node: the first that reads it
    bool *wild;      // of each node: it may be too large for an activation
} Sums;

static const Node *at(const Sums *s, NodeId n) {
    return &s->old->node[n];
}

static const Type *type_at(const Sums *s, NodeId n) {
    return at(s, n)->type;
}

// ---- dependence on a gradient ----

static bool is_zero(const Node *d) {
    double value;
    return node_number(d, &value) && value == 0;
}

// Whether n may exceed the range of activations: quotients, products with a
// large constant, and nodes in f32.
static bool is_wild(const Sums *s, NodeId n) {
    static const double large = 1024;
    const Node *d = at(s, n);
    bool pointwise = op_info[d->op].facts & (POINTWISE | VIEW);
    if (d->from.full || d->op == OP_div || d->op == OP_rsqrt)
        return true;
    if (d->op == OP_constant) {
        const Attr *values = node_attr(d, ATTR_values);
        for (int i = 0; i < values->count; i++)
            if (!(fabs(values->floats[i]) <= large))
                return true;
    }
    for (int i = 0; i < d->num_args && pointwise; i++)
        if (s->wild[d->arg[i]])
            return true;
    return false;
}

// Whether n is a multiple of root, element by element, if its operands are, by
// a factor that an activation can hold.
static bool is_multiple(const Sums *s, NodeId n, NodeId root) {
    const Node *d = at(s, n);
    bool of[3] = {false}, zero[3] = {false};
    if (d->from.full || !type_has_shape(d->type, type_at(s, root)))
        return false;
    for (int i = 0; i < d->num_args && i < 3; i++) {
        of[i] = s->root[d->arg[i]] == root;
        zero[i] = is_zero(at(s, d->arg[i]));
    }
    switch (d->op) {
    case OP_neg:
        return of[0];
    case OP_add:
    case OP_sub:
        return of[0] && of[1];
    case OP_mul:
        return of[0] != of[1] && !s->wild[d->arg[of[0]]];
    case OP_select:
        return !of[0] && (of[1] || zero[1]) && (of[2] || zero[2]);
    default:
        return false;
    }
}

static bool sums_rows(const Sums *s, NodeId n) {
    return at(s, n)->op == OP_sum && reduce_extent(s->old, n) == OVER_COLUMN;
}

// Node n depends on a gradient.
static void follow_root(Sums *s, NodeId n, NodeId root) {
    if (s->root[n] != NO_NODE) // on another as well
        s->spoilt[s->root[n]] = s->spoilt[root] = true;
    else if (is_multiple(s, n, root))
        s->root[n] = root;
    else if (sums_rows(s, n) && s->total[root] == NO_NODE)
        s->total[root] = n;
    else
        s->spoilt[root] = true;
}

static void follow(Sums *s, NodeId n) {
    const Node *d = at(s, n);
    s->wild[n] = is_wild(s, n);
    for (int i = 0; i < d->num_args; i++) {
        NodeId root = s->root[d->arg[i]];
        if (s->user[d->arg[i]] == NO_NODE)
            s->user[d->arg[i]] = n;
        if (root != NO_NODE && s->root[n] != root)
            follow_root(s, n, root);
    }
    if (d->op == OP_conv_grad_input && !d->from.full)
        s->root[n] = n;
}

// ---- which gradients ----

// The same windows of the same operands, all channels in one group.
static bool is_beside(const Sums *s, NodeId input, NodeId filters) {
    const Node *a = at(s, input), *b = at(s, filters);
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

// In place of dx, which is written and read, x and f are written and x is read
// twice more at most; dy is read once less.
static bool is_worth(const Sums *s, NodeId input) {
    Type dx = *type_at(s, input), dy = *type_at(s, at(s, input)->arg[0]);
    return dx.dim[3] % 8 == 0 && type_count(&dy) > 2 * type_count(&dx);
}

// Finds the filters' gradients, if there are any.  One call makes them and the
// sum, so nothing may want them before all that the sum follows from is there.
static bool find_filters(Sums *s, Arena *scratch) {
    NodeId *input = graph_none(s->old, scratch);
    bool any = false;
    for (NodeId n = 0; n < s->old->count; n++)
        if (at(s, n)->op == OP_conv_grad_input)
            input[at(s, n)->arg[0]] = n;
    for (NodeId n = 0; n < s->old->count; n++) {
        if (at(s, n)->op != OP_conv_grad_weight)
            continue;
        NodeId dx = input[at(s, n)->arg[0]];
        if (dx == NO_NODE || s->spoilt[dx] || s->total[dx] == NO_NODE ||
            s->user[n] < s->total[dx] || n > s->total[dx])
            continue;
        if (!is_beside(s, dx, n) || !is_worth(s, dx))
            continue;
        s->filters[dx] = n;
        any = true;
    }
    return any;
}

// ---- the new nodes ----

// [...,C] as [...,1,C], so that two lie beside one another; a value for each
// column or for all is one for both.
static NodeId apart(Graph *g, NodeId a) {
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

// x and f as images of twice as many channels.
static NodeId place_images(Graph *g, NodeId x, NodeId f) {
    Type t = *g->node[x].type;
    int64_t halves[] = {2, 1};
    NodeId half = graph_iota(g, type_of(I32, 2, halves), 0);
    NodeId first =
        graph_op2(g, OP_eq, half, graph_constant(g, type_scalar(I32), 0));
    NodeId both = graph_op3(g, OP_select, first, apart(g, x), apart(g, f));
    t.dim[3] *= 2;
    return graph_reshape(g, both, 4, t.dim);
}

// The filters' gradient for channels from `low` on.
static NodeId place_half(Graph *g, NodeId both, int64_t low, int64_t channels) {
    int64_t before[] = {0, 0, 0, low}, behind[] = {0, 0, 0, channels - low};
    return graph_slice(g, both, before, behind);
}

// Both gradients, once f is known: now[] has it for the operand of the sum.
static void place_both(const Sums *s, Graph *g, NodeId dx, NodeId *now) {
    static const int64_t axes[] = {0, 1, 2};
    NodeId total = s->total[dx], filters = s->filters[dx];
    Node d = *at(s, filters);
    int64_t channels = d.type->dim[3];
    g->at = d.from;
    NodeId arg[] = {now[d.arg[0]],
                    place_images(g, now[d.arg[1]], now[at(s, total)->arg[0]])};
    d.arg = arg;
    Type wide = *d.type;
    wide.dim[3] = 2 * channels;
    d.type = &wide;
    NodeId both = graph_add(g, d);
    now[filters] = place_half(g, both, 0, channels);
    g->at = at(s, total)->from;
    NodeId product = graph_op2(g, OP_mul, now[at(s, dx)->arg[1]],
                               place_half(g, both, channels, channels));
    NodeId sum = graph_reduce(g, OP_sum, product, 3, axes);
    Type t = *type_at(s, total);
    now[total] = graph_reshape(g, sum, t.rank, t.dim);
}

// Which gradients of filters wait for a sum.
static bool *find_late(Sums *s, Graph *out, Arena *scratch,
                       const PassOptions *o) {
    bool *late = ARENA_ARRAY(scratch, s->old->count, bool);
    for (NodeId n = 0; n < s->old->count; n++) {
        if (s->filters[n] != NO_NODE && !rewrite_next(out, o))
            s->filters[n] = NO_NODE;
        if (s->filters[n] != NO_NODE)
            late[s->filters[n]] = true;
    }
    return late;
}

static Graph *place(Sums *s, Arena *scratch, const PassOptions *o) {
    const Graph *old = s->old;
    Graph *g = graph_like(old);
    NodeId *now = ARENA_ARRAY(scratch, old->count, NodeId);
    NodeId *of = graph_none(old, scratch);
    bool *late = find_late(s, g, scratch, o);
    for (NodeId n = 0; n < old->count; n++)
        if (s->filters[n] != NO_NODE)
            of[s->total[n]] = n;
    for (NodeId n = 0; n < old->count; n++) {
        g->at = at(s, n)->from;
        if (of[n] != NO_NODE)
            place_both(s, g, of[n], now);
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
    Sums s = {.old = g,
              .root = graph_none(g, scratch),
              .spoilt = ARENA_ARRAY(scratch, g->count, bool),
              .total = graph_none(g, scratch),
              .filters = graph_none(g, scratch),
              .user = graph_none(g, scratch),
              .wild = ARENA_ARRAY(scratch, g->count, bool)};
    for (NodeId n = 0; n < g->count; n++)
        follow(&s, n);
    return find_filters(&s, scratch) ? place(&s, scratch, o) : g;
}
