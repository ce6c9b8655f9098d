// Stack sums: a sum of many equal terms becomes one operation on their stacked
// operands.
//
//   requires   The graph has gradients, and no precision is assigned.
//   preserves  Every value stays the same, up to the order of its sums.
//   result     The rewrites below are made.
//
// A loop over positions uses a weight once for each, so its gradient is a sum
// with a term for each position.  As one kernel, such a sum has as many
// operands, and each term is a library call.
//
//   sum of a_t' b_t             a' b with the rows of all a_t, and of all b_t
//   sum of column reductions,   one of the rows of all
//   or of single rows
//   sum of pads, which fill an  their operands side by side; the gradient of
//   axis without a gap          a tensor that is cut into slices
#include "passes/passes.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_TERMS = 8 };

// Terms that are alike, or all terms of a sum.
typedef struct {
    NodeId *term;
    int count;
} Terms;

// The terms of the sum that an addition ends, by the rewrite of each.
typedef struct {
    Terms *stacked;
    int num_stacked;
    Terms rest; // in their order
} Sum;

typedef struct {
    const Graph *old;
    Graph *g;
    const PassOptions *options;
    uint32_t *uses;
    bool *seen; // old additions that are part of a later sum
    bool *gone; // old nodes that belong to a rewritten sum alone
    Sum **sum;  // of the last addition of each; NULL: as it was
    NodeId *now, *stack;
    Arena *scratch;
} Stacking;

static const Type *type_at(const Stacking *s, NodeId n) {
    return graph_node(s->old, n)->type;
}

// ---- kinds of terms ----

// Whether the operation adds rows: a_t' b_t, or a sum over the first of two
// axes, which autodiff leaves out where there is one row.
static bool adds_rows(const Stacking *s, NodeId n) {
    const Node *d = graph_node(s->old, n);
    if (d->op == OP_matmul)
        return d->type->rank == 2 && node_int(d, ATTR_ta, 0) &&
               !node_int(d, ATTR_tb, 0);
    if (d->num_args != 1 || type_at(s, d->arg[0])->rank != 2 ||
        d->type->rank != 1)
        return false;
    if (d->op == OP_reshape)
        return type_at(s, d->arg[0])->dim[0] == 1;
    const Attr *axes = node_attr(d, ATTR_axes);
    return d->op == OP_sum && axes->count == 1 && axes->ints[0] == 0;
}

// The only axis that a pad makes longer, or -1.
static int padded_axis(const Stacking *s, NodeId n) {
    Type t = *type_at(s, graph_node(s->old, n)->arg[0]);
    int axis = -1;
    for (int i = 0; i < t.rank; i++) {
        if (t.dim[i] == type_at(s, n)->dim[i])
            continue;
        if (axis >= 0)
            return -1;
        axis = i;
    }
    return axis;
}

// Whether term n belongs with term m.
static bool is_alike(const Stacking *s, NodeId n, NodeId m) {
    const Node *d = graph_node(s->old, n), *e = graph_node(s->old, m);
    if (d->op != e->op || s->uses[n] != 1)
        return false;
    for (int i = 0; i < d->num_args; i++)
        if (!type_is(type_at(s, d->arg[i]), type_at(s, e->arg[i])))
            return false;
    if (d->op == OP_pad)
        return padded_axis(s, n) >= 0 && padded_axis(s, n) == padded_axis(s, m);
    return adds_rows(s, n) && adds_rows(s, m);
}

static int by_position(const void *a, const void *b) {
    const NodeId *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

// Sorts pads that fill an axis, one operand after another; else returns false.
static bool sort_pads(const Stacking *s, Terms t) {
    int axis = padded_axis(s, t.term[0]);
    int64_t size = type_at(s, graph_node(s->old, t.term[0])->arg[0])->dim[axis];
    NodeId *sorted = graph_map_new(s->old, s->scratch);
    if (t.count * size != type_at(s, t.term[0])->dim[axis])
        return false;
    for (int i = 0; i < t.count; i++) {
        int64_t low =
            node_ints(graph_node(s->old, t.term[i]), ATTR_low, axis, 0);
        if (low % size != 0 || sorted[low / size] != NO_NODE)
            return false;
        sorted[low / size] = t.term[i];
    }
    memcpy(t.term, sorted, (size_t)t.count * sizeof *sorted);
    return true;
}

// Autodiff makes the gradients of the last position first.
static bool sort_rows(Terms t) {
    qsort(t.term, (size_t)t.count, sizeof *t.term, by_position);
    return true;
}

// ---- sums ----

static bool continues(const Stacking *s, NodeId sum, NodeId n) {
    return graph_node(s->old, n)->op == OP_add && s->uses[n] == 1 &&
           type_is(type_at(s, n), type_at(s, sum));
}

// The additions below addition n that have no other use, and their terms from
// the left.
static Terms find_terms(const Stacking *s, NodeId n, Terms *inner) {
    Terms all = {NULL, 0};
    int height = 0;
    *inner = all;
    for (s->stack[height++] = n; height > 0;) {
        NodeId top = s->stack[--height];
        if (top != n && !continues(s, n, top)) {
            ARENA_APPEND(s->scratch, all.term, all.count, top);
            continue;
        }
        ARENA_APPEND(s->scratch, inner->term, inner->count, top);
        s->seen[top] = true;
        s->stack[height++] = graph_node(s->old, top)->arg[1];
        s->stack[height++] = graph_node(s->old, top)->arg[0];
    }
    return all;
}

// Takes the first term and those like it.
static Terms take_alike(const Stacking *s, Terms *from) {
    Terms like = {ARENA_ARRAY(s->scratch, (size_t)from->count, NodeId), 0};
    NodeId first = from->term[0];
    int left = 0;
    for (int i = 0; i < from->count; i++)
        if (i == 0 || is_alike(s, from->term[i], first))
            like.term[like.count++] = from->term[i];
        else
            from->term[left++] = from->term[i];
    from->count = left;
    return like;
}

// Whether a rewrite applies, for which the terms are sorted.
static bool is_stacked(const Stacking *s, Terms t) {
    if (t.count < LEAST_TERMS || !is_alike(s, t.term[0], t.term[0]))
        return false;
    bool sorted = graph_node(s->old, t.term[0])->op == OP_pad ? sort_pads(s, t)
                                                              : sort_rows(t);
    return sorted && rewrite_allowed(s->g, s->options);
}

static void mark_gone(Stacking *s, Terms t) {
    for (int i = 0; i < t.count; i++)
        s->gone[t.term[i]] = true;
}

// Whether some terms of the sum that addition n ends are stacked.
static bool find_sum(Stacking *s, NodeId n) {
    Terms inner, all = find_terms(s, n, &inner), left = all;
    Sum sum = {NULL, 0, {NULL, 0}};
    if (all.count < LEAST_TERMS)
        return false;
    left.term = ARENA_ARRAY(s->scratch, (size_t)all.count, NodeId);
    memcpy(left.term, all.term, (size_t)all.count * sizeof *all.term);
    while (left.count > 0) {
        Terms like = take_alike(s, &left);
        if (!is_stacked(s, like))
            continue;
        ARENA_APPEND(s->scratch, sum.stacked, sum.num_stacked, like);
        mark_gone(s, like);
    }
    if (sum.num_stacked == 0)
        return false;
    for (int i = 0; i < all.count; i++)
        if (!s->gone[all.term[i]])
            ARENA_APPEND(s->scratch, sum.rest.term, sum.rest.count,
                         all.term[i]);
    mark_gone(s, inner);
    s->gone[n] = false;
    s->sum[n] = ARENA_NEW(s->scratch, Sum);
    *s->sum[n] = sum;
    return true;
}

// From the end, so that a sum is found before its parts.
static bool find_sums(Stacking *s) {
    bool any = false;
    for (NodeId n = s->old->count; n-- > 0;)
        if (graph_node(s->old, n)->op == OP_add && !s->seen[n])
            any |= find_sum(s, n);
    return any;
}

// ---- rewrites ----

// Operand i of all terms, as matrices [M,C], one after another.
static NodeId stack_operands(Stacking *s, Terms t, int i, int64_t rows) {
    NodeId *part = ARENA_ARRAY(s->scratch, (size_t)t.count, NodeId);
    int64_t columns =
        type_count(type_at(s, graph_node(s->old, t.term[0])->arg[i])) / rows;
    int64_t dim[] = {rows, columns};
    for (int k = 0; k < t.count; k++)
        part[k] = graph_reshape(
            s->g, s->now[graph_node(s->old, t.term[k])->arg[i]], 2, dim);
    return graph_stack(s->g, part, t.count, rows, columns);
}

static NodeId add_all_rows(Stacking *s, Terms t) {
    static const int64_t rows[] = {0};
    const Node *d = graph_node(s->old, t.term[0]);
    NodeId arg[2];
    for (int i = 0; i < d->num_args; i++) {
        Type one = *type_at(s, d->arg[i]);
        int64_t dim[] = {t.count * one.dim[0], one.dim[1]};
        arg[i] = graph_reshape(s->g, stack_operands(s, t, i, one.dim[0]), 2,
                               dim);
    }
    if (d->op != OP_matmul)
        return graph_reduce(s->g, OP_sum, arg[0], 1, rows);
    Node all = *d;
    all.arg = arg;
    return graph_move(s->g, all);
}

// [count,A,B] is [A,count,B] where the axis is not the first.
static NodeId side_by_side(Stacking *s, Terms t) {
    static const int64_t order[] = {1, 0, 2};
    int axis = padded_axis(s, t.term[0]);
    Type all = *type_at(s, t.term[0]);
    Type one = *type_at(s, graph_node(s->old, t.term[0])->arg[0]);
    int64_t before = 1;
    for (int i = 0; i < axis; i++)
        before *= one.dim[i];
    NodeId y =
        stack_operands(s, t, 0, before > 1 ? before : one.dim[1]);
    if (before > 1)
        y = graph_transpose(s->g, y, order);
    return graph_reshape(s->g, y, all.rank, all.dim);
}

static NodeId rewrite_sum(Stacking *s, const Sum *sum) {
    NodeId y = NO_NODE;
    for (int i = 0; i < sum->num_stacked + sum->rest.count; i++) {
        int k = i - sum->num_stacked;
        NodeId next =
            k >= 0 ? s->now[sum->rest.term[k]]
            : graph_node(s->old, sum->stacked[i].term[0])->op == OP_pad
                ? side_by_side(s, sum->stacked[i])
                : add_all_rows(s, sum->stacked[i]);
        y = y == NO_NODE ? next : graph_op2(s->g, OP_add, y, next);
    }
    return y;
}

Graph *pass_stack_sums(Graph *g, Arena *scratch, const PassOptions *o) {
    if (!(g->facts & BACKWARD) || (g->facts & TYPED))
        return g;
    Stacking s = {.old = g,
                  .g = graph_like(g),
                  .options = o,
                  .uses = graph_uses(g, scratch),
                  .gone = ARENA_ARRAY(scratch, g->count, bool),
                  .seen = ARENA_ARRAY(scratch, g->count, bool),
                  .sum = ARENA_ARRAY(scratch, g->count, Sum *),
                  .now = graph_map_new(g, scratch),
                  .stack = ARENA_ARRAY(scratch, g->count, NodeId),
                  .scratch = scratch};
    if (!find_sums(&s))
        return g;
    for (NodeId n = 0; n < g->count; n++) {
        s.g->origin = g->node[n].from;
        if (s.sum[n] != NULL)
            s.now[n] = rewrite_sum(&s, s.sum[n]);
        else if (!s.gone[n])
            s.now[n] = graph_copy(s.g, g, n, s.now);
    }
    return s.g;
}
