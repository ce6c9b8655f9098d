// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Building: functions for nodes that are often added.  Where nothing would
// change, the result is the operand.

#include "ir/ir.h"

#include <string.h>

static NodeId add_plain(Graph *g, Op op, int count, const NodeId *arg) {
    return graph_add(
        g, (Node){.op = op, .num_args = count, .arg = arg, .group = -1});
}

NodeId graph_op1(Graph *g, Op op, NodeId a) {
    return add_plain(g, op, 1, &a);
}

NodeId graph_op2(Graph *g, Op op, NodeId a, NodeId b) {
    return add_plain(g, op, 2, (NodeId[]){a, b});
}

NodeId graph_op3(Graph *g, Op op, NodeId a, NodeId b, NodeId c) {
    return add_plain(g, op, 3, (NodeId[]){a, b, c});
}

static NodeId add_leaf(Graph *g, Op op, Type type, int count,
                       const Attr *attr) {
    return graph_add(g, (Node){.op = op,
                               .type = &type,
                               .num_attrs = count,
                               .attr = attr,
                               .group = -1});
}

NodeId graph_leaf(Graph *g, Op op, const char *name, Type type) {
    Attr attr = attr_text(ATTR_name, name);
    return add_leaf(g, op, type, 1, &attr);
}

NodeId graph_state(Graph *g, const char *name, const char *kind, Type type,
                   double init) {
    Attr attr[] = {attr_float(ATTR_init, init), attr_text(ATTR_kind, kind),
                   attr_text(ATTR_name, name)};
    return add_leaf(g, OP_state, type, 3, attr);
}

void leaf_set(Graph *g, NodeId n, AttrKey key, int64_t value) {
    Node *d = &g->node[n];
    Attr *attr = ARENA_ARRAY(g->arena, (size_t)d->num_attrs + 1, Attr);
    memcpy(attr, d->attr, (size_t)d->num_attrs * sizeof *attr);
    attr_insert(attr, d->num_attrs++, attr_int(key, value));
    d->attr = attr;
}

NodeId graph_values(Graph *g, Type type, const double *value) {
    Attr attr = attr_floats(ATTR_values, (int)type_count(&type), value);
    return add_leaf(g, OP_constant, type, 1, &attr);
}

NodeId graph_constant(Graph *g, Type type, double value) {
    Attr attr = attr_floats(ATTR_values, 1, &value);
    return add_leaf(g, OP_constant, type, 1, &attr);
}

NodeId graph_number(Graph *g, double value) {
    return graph_constant(g, type_scalar(F32), value);
}

NodeId graph_vector(Graph *g, const double *value, int count) {
    return graph_values(g, type_of(F32, 1, (int64_t[]){count}), value);
}

NodeId graph_iota(Graph *g, Type type, int axis) {
    Attr attr = attr_int(ATTR_axis, axis);
    return add_leaf(g, OP_iota, type, 1, &attr);
}

// Nodes of operations with a declared type.
static NodeId add_declared(Graph *g, Op op, NodeId a, const Type *type) {
    return graph_add(
        g,
        (Node){.op = op, .type = type, .num_args = 1, .arg = &a, .group = -1});
}

NodeId graph_cast(Graph *g, NodeId a, DType to) {
    if (g->node[a].type->dtype == to)
        return a;
    return add_declared(g, OP_cast, a, (Type[]){type_scalar(to)});
}

NodeId graph_reshape(Graph *g, NodeId a, int rank, const int64_t *dim) {
    Type type = type_of(g->node[a].type->dtype, rank, dim);
    if (type_is(&type, g->node[a].type))
        return a;
    return add_declared(g, OP_reshape, a, &type);
}

NodeId graph_broadcast(Graph *g, NodeId a, const Type *to) {
    return add_declared(g, OP_broadcast, a, to);
}

static NodeId add_with(Graph *g, Op op, NodeId a, int count, const Attr *attr) {
    return graph_add(g, (Node){.op = op,
                               .num_args = 1,
                               .num_attrs = count,
                               .arg = &a,
                               .attr = attr,
                               .group = -1});
}

NodeId graph_reduce(Graph *g, Op op, NodeId a, int count, const int64_t *axes) {
    Attr attr = attr_ints(ATTR_axes, count, axes);
    return add_with(g, op, a, 1, &attr);
}

NodeId graph_transpose(Graph *g, NodeId a, const int64_t *order) {
    int rank = g->node[a].type->rank;
    bool same = true;
    for (int i = 0; i < rank; i++)
        same &= order[i] == i;
    Attr attr = attr_ints(ATTR_order, rank, order);
    return same ? a : add_with(g, OP_transpose, a, 1, &attr);
}

NodeId graph_stack(Graph *g, const NodeId *a, int count, int64_t rows,
                   int64_t columns) {
    int64_t dim[] = {count, rows, columns};
    Type type = type_of(g->node[a[0]].type->dtype, 3, dim);
    return graph_add(g, (Node){.op = OP_stack,
                               .type = &type,
                               .num_args = count,
                               .arg = a,
                               .group = -1});
}

static NodeId add_ends(Graph *g, Op op, NodeId a, const int64_t *low,
                       const int64_t *high) {
    int rank = g->node[a].type->rank;
    bool none = true;
    for (int i = 0; i < rank; i++)
        none &= low[i] == 0 && high[i] == 0;
    Attr attr[] = {attr_ints(ATTR_high, rank, high),
                   attr_ints(ATTR_low, rank, low)};
    return none ? a : add_with(g, op, a, 2, attr);
}

NodeId graph_pad(Graph *g, NodeId a, const int64_t *low, const int64_t *high) {
    return add_ends(g, OP_pad, a, low, high);
}

NodeId graph_slice(Graph *g, NodeId a, const int64_t *low,
                   const int64_t *high) {
    return add_ends(g, OP_slice, a, low, high);
}

NodeId graph_assign(Graph *g, NodeId state, NodeId value) {
    return graph_op2(g, OP_assign, state, value);
}

// Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for
// Computing Sample Variances" (1982), for parts of equal size: the variance of
// all is the mean of var_k + (mean_k - mean)^2.  It needs a second sum after
// that of the means, but never subtracts two large numbers, as sums of squares
// would.  A shard without samples adds 0, also to the number of shards.
BatchMoments graph_sync_moments(Graph *g, NodeId sum, NodeId var,
                                double count) {
    NodeId own = graph_number(g, count);
    NodeId shards = graph_op1(g, OP_sum_over_shards, graph_number(g, 1));
    NodeId all = graph_op2(g, OP_mul, shards, own);
    NodeId mean =
        graph_op2(g, OP_div, graph_op1(g, OP_sum_over_shards, sum), all);
    NodeId apart = graph_op2(g, OP_sub, graph_op2(g, OP_div, sum, own), mean);
    NodeId term = graph_op2(g, OP_add, var, graph_op2(g, OP_mul, apart, apart));
    term = graph_op1(g, OP_sum_over_shards, term);
    return (BatchMoments){mean, graph_op2(g, OP_div, term, shards), all};
}
