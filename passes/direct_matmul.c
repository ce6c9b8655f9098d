// Direct products: expands matrix products with few multiplications to sums.
//
//   requires   Operations are primitive and have no types yet.
//   preserves  Every value stays the same, up to the order of summation.
//   result     A sum over [M,N,K] or [K,M,N] replaces such a product.
//
// A library call ends a run of kernels that one launch can hold, and it cannot
// take their work.  For few multiplications a launch takes longer than they do.
// A sum of products is a kernel as others are: it computes its operands from
// those of the kernels before, and shares a merged launch with its neighbours.
//
// A product a b' sums rows: b has them in memory.  Any other sums columns, of
// which neighbours read neighbours of b.
#include "passes/passes.h"

// A GPU's kernel that reads both factors of each multiplication from a cache
// then takes about as long as a launch.  A processor takes longer than a call
// does, so plans without a described GPU leave the pass out (tools/model.c).
// Operands of 16 bits are left to tensor cores.
enum { MAX_PRODUCTS = 1 << 20 };

static bool is_direct(const Graph *g, const PassOptions *o, NodeId n) {
    const Node *d = &g->node[n];
    int64_t products = node_flops(g, n) / 2;
    return d->op == OP_matmul && d->type->rank == 2 && o->act == F32 &&
           products > 0 && products <= MAX_PRODUCTS;
}

static NodeId reshaped(Graph *g, NodeId a, int64_t x, int64_t y, int64_t z) {
    return graph_reshape(g, a, 3, (int64_t[]){x, y, z});
}

static NodeId transposed(Graph *g, NodeId a) {
    return graph_transpose(g, a, (int64_t[]){1, 0});
}

static NodeId add_sum(Graph *g, const Node *d, const NodeId *now) {
    bool ta = node_int(d, ATTR_ta, 0), tb = node_int(d, ATTR_tb, 0);
    NodeId a = now[d->arg[0]], b = now[d->arg[1]];
    int64_t m = d->type->dim[0], n = d->type->dim[1], axis = tb ? 2 : 0;
    int64_t k = g->node[a].type->dim[ta ? 0 : 1];
    if (ta == tb) // a as rows for rows, as columns for columns
        a = transposed(g, a);
    a = tb ? reshaped(g, a, m, 1, k) : reshaped(g, a, k, m, 1);
    b = tb ? reshaped(g, b, 1, n, k) : reshaped(g, b, k, 1, n);
    NodeId sum = graph_reduce(g, OP_sum, graph_op2(g, OP_mul, a, b), 1, &axis);
    return graph_reshape(g, sum, 2, d->type->dim);
}

static bool any_direct(const Graph *g, const PassOptions *o) {
    for (NodeId n = 0; n < g->count; n++)
        if (is_direct(g, o, n))
            return true;
    return false;
}

Graph *pass_direct_matmul(Graph *g, Arena *scratch, const PassOptions *o) {
    if ((g->facts & TYPED) || !any_direct(g, o))
        return g;
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        out->origin = g->node[n].from;
        now[n] = is_direct(g, o, n) && rewrite_next(out, o)
                     ? add_sum(out, &g->node[n], now)
                     : graph_copy(out, g, n, now);
    }
    return out;
}
