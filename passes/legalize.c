// Legalization: rewrites operations that neither a kernel nor a library has.
//
// A kernel iterates over rows by columns, so it has row, column and full
// reductions.  A reduction of the first axis and others, as for the statistics
// of ghost batches, is a column reduction of its transposed operand, which a
// kernel reads in place.  Any other reduction becomes one for each run of
// neighbouring axes, the last run first.  A run between kept axes is a window
// that covers all of it: the sum over the pixels of each image is avg_pool
// times their number.
//
// A scatter kernel adds rows of a matrix by a vector of indices: gather_grad of
// more axes is reshaped.
//
// A library reads its operands from memory.  A constant has no memory, so its
// copy becomes the operand.

#include "passes/legalize.h"
#include "passes/plan/group.h"

// ---- reductions ----

static bool is_other(const Graph *g, NodeId n) {
    unsigned traits = op_info[g->node[n].op].traits;
    return (traits & REDUCES) && !(traits & REDUCES_ALL) &&
           reduction_kind(g, n) == OTHER_REDUCTION;
}

// Reduces the middle of [N,H,W,C].
static NodeId over_window(Graph *g, Op op, NodeId image) {
    const int64_t *size = &g->node[image].type->dim[1];
    double pixels = (double)size[0] * (double)size[1];
    Attr attr[] = {attr_ints(ATTR_stride, 2, size),
                   attr_ints(ATTR_window, 2, size)};
    NodeId y =
        graph_add(g, (Node){.op = op == OP_max ? OP_max_pool : OP_avg_pool,
                            .num_args = 1,
                            .arg = &image,
                            .num_attrs = 2,
                            .attr = attr,
                            .group = -1});
    return op == OP_max ? y : graph_op2(g, OP_mul, y, graph_number(g, pixels));
}

// Reduces axes first .. last of x and keeps them as 1.
static NodeId over_run(Graph *g, Op op, NodeId x, int first, int last) {
    Type t = *g->node[x].type;
    int64_t before = 1, rows = 1, columns = t.dim[last], after = 1;
    for (int i = 0; i < first; i++)
        before *= t.dim[i];
    for (int i = first; i < last; i++)
        rows *= t.dim[i];
    for (int i = last + 1; i < t.rank; i++)
        after *= t.dim[i];
    NodeId y;
    if (after == 1 || rows * columns == 0) { // of nothing any order is right
        y = graph_reshape(g, x, 2, (int64_t[]){before * after, rows * columns});
        y = graph_reduce(g, op, y, 1, (int64_t[]){1});
    } else if (before == 1) {
        y = graph_reshape(g, x, 2, (int64_t[]){rows * columns, after});
        y = graph_reduce(g, op, y, 1, (int64_t[]){0});
    } else {
        y = graph_reshape(g, x, 4, (int64_t[]){before, rows, columns, after});
        y = over_window(g, op, y);
    }
    for (int i = first; i <= last; i++)
        t.dim[i] = 1;
    return graph_reshape(g, y, t.rank, t.dim);
}

// A run takes in axes of size 1, over which there is nothing to reduce.
static NodeId over_axes(Graph *g, Op op, NodeId x, unsigned reduced) {
    Type t = *g->node[x].type;
    for (int last = t.rank - 1; last >= 0; last--) {
        if (!(reduced >> last & 1) || t.dim[last] == 1)
            continue;
        int first = last;
        while (first > 0 &&
               (reduced >> (first - 1) & 1 || t.dim[first - 1] == 1))
            first--;
        x = over_run(g, op, x, first, last);
        last = first;
    }
    return x;
}

// The mean square of the differences from the mean.
static NodeId variance(Graph *g, NodeId x, unsigned reduced, double count) {
    NodeId sum = over_axes(g, OP_sum, x, reduced);
    NodeId mean = graph_op2(g, OP_mul, sum, graph_number(g, 1 / count));
    NodeId rest = graph_op2(g, OP_sub, x, mean);
    NodeId square = graph_op2(g, OP_mul, rest, rest);
    NodeId each = graph_number(g, 1 / count);
    return graph_op2(g, OP_mul, over_axes(g, OP_sum, square, reduced), each);
}

// Whether the first axis is reduced and the last is kept.
static bool has_columns(Type t, unsigned reduced) {
    int first = 0;
    while (t.dim[first] == 1)
        first++;
    return reduced >> first & 1 && t.dim[t.rank - 1] > 1 &&
           !(reduced >> (t.rank - 1) & 1);
}

// The reduced axes are rows, the others are columns.
static NodeId column_reduction(Graph *g, Op op, NodeId x, unsigned reduced) {
    Type t = *g->node[x].type;
    int64_t order[MAX_RANK], rows = 1, columns = 1;
    int count = 0;
    for (int i = 0; i < t.rank; i++)
        if (reduced >> i & 1) {
            order[count++] = i;
            rows *= t.dim[i];
        }
    for (int i = 0; i < t.rank; i++)
        if (!(reduced >> i & 1)) {
            order[count++] = i;
            columns *= t.dim[i];
        }
    x = graph_reshape(g, graph_transpose(g, x, order), 2,
                      (int64_t[]){rows, columns});
    return graph_reduce(g, op, x, 1, (int64_t[]){0});
}

static NodeId settle(Graph *g, const Node *n, NodeId x) {
    const Attr *axes = node_attr(n, ATTR_axes);
    double count =
        (double)type_count(g->node[x].type) / (double)type_count(n->type);
    unsigned reduced = 0;
    for (int i = 0; i < axes->count; i++)
        reduced |= 1u << axes->ints[i];
    x = graph_cast(g, x, F32);
    NodeId y;
    if (has_columns(*g->node[x].type, reduced))
        y = column_reduction(g, n->op, x, reduced);
    else
        y = n->op == OP_var ? variance(g, x, reduced, count)
                            : over_axes(g, n->op, x, reduced);
    y = graph_reshape(g, y, n->type->rank, n->type->dim);
    return graph_cast(g, y, n->type->dtype);
}

// ---- sums of rows by an index ----

static bool scatters_otherwise(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    return (op_info[d->op].traits & SCATTERS) &&
           (d->type->rank != 2 || g->node[d->arg[1]].type->rank != 1);
}

static NodeId scatter(Graph *g, const Node *d, NodeId dy, NodeId index) {
    int64_t count = type_count(g->node[index].type);
    int64_t columns = type_count(d->type) / d->type->dim[0];
    NodeId arg[] = {graph_reshape(g, dy, 2, (int64_t[]){count, columns}),
                    graph_reshape(g, index, 1, &count)};
    Type type = type_of(F32, 2, (int64_t[]){d->type->dim[0], columns});
    Node matrix = *d;
    matrix.type = &type;
    matrix.arg = arg;
    return graph_reshape(g, graph_add(g, matrix), d->type->rank, d->type->dim);
}

// ---- operands of libraries ----

static bool reads_memory(const Node *n) {
    return op_info[n->op].traits & (CALLS | REDUCES_ALL);
}

static bool is_immediate(const Graph *g, NodeId n) {
    return node_immediate(&g->node[node_base(g, n)]);
}

static bool has_immediate(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    bool any = false;
    for (int i = 0; i < d->num_args && reads_memory(d); i++)
        any |= is_immediate(g, d->arg[i]);
    return any;
}

static NodeId in_memory(Graph *g, NodeId n) {
    return is_immediate(g, n) ? graph_broadcast(g, n, g->node[n].type) : n;
}

static NodeId call(Graph *g, Node d, const NodeId *now, Arena *scratch) {
    NodeId *arg = ARENA_ARRAY(scratch, (size_t)d.num_args, NodeId);
    for (int i = 0; i < d.num_args; i++)
        arg[i] = in_memory(g, now[d.arg[i]]);
    d.arg = arg;
    return graph_add(g, d);
}

// ---- the graph ----

static bool is_legal(const Graph *g, NodeId n) {
    return !is_other(g, n) && !scatters_otherwise(g, n) && !has_immediate(g, n);
}

static NodeId legalize(Graph *out, const Graph *g, NodeId n, const NodeId *now,
                       Arena *scratch) {
    const Node *d = &g->node[n];
    if (is_other(g, n))
        return settle(out, d, now[d->arg[0]]);
    if (scatters_otherwise(g, n))
        return scatter(out, d, now[d->arg[0]], now[d->arg[1]]);
    if (has_immediate(g, n))
        return call(out, *d, now, scratch);
    return graph_copy(out, g, n, now);
}

Graph *graph_legalize(Graph *g, Arena *scratch) {
    bool all = true;
    for (NodeId n = 0; n < g->count; n++)
        all &= is_legal(g, n);
    if (all)
        return g;
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        out->origin = g->node[n].from;
        now[n] = legalize(out, g, n, now, scratch);
    }
    return out;
}
