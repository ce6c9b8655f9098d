// Direct products: expands matrix products of few multiplications.
//
//   requires   Operations are primitive, and no precision is assigned.
//   preserves  Every value stays the same, up to the order of summation.
//   result     A chain of products of few terms, or a row reduction of
//              [M,N,K], replaces such a product.
//
// A library call is a launch of its own, and ends a run of kernels that one
// launch can hold.  For few multiplications a launch takes longer than they do.
// A product of few terms, such as the gradient of a classifier's input, is
// computed by the kernels that use it.  In a product a b' both operands have
// their terms in rows: a kernel with a row for each element sums them, and
// shares a merged launch with its neighbours.  A gradient of weights is a
// column reduction, whose last block waits longer than a launch takes, and
// stays a call.
#include "passes/passes.h"

// A kernel that reads both factors of each multiplication from a cache takes
// about as long as a launch.  Operands of 16 bits are left to tensor cores.  On
// the host, for which no GPU is described, a kernel takes longer than a call.
enum { MAX_PRODUCTS = 1 << 20, MAX_TERMS = 12 };

static int64_t terms_of(const Graph *g, const Node *d) {
    return g->node[d->arg[0]].type->dim[node_int(d, ATTR_ta, 0) ? 0 : 1];
}

static bool has_few(const Graph *g, const PassOptions *o, NodeId n) {
    const Node *d = &g->node[n];
    if (d->op != OP_matmul || d->type->rank != 2 || o->act != F32 ||
        o->multiprocessors == 0 || o->level == 0)
        return false;
    int64_t terms = terms_of(g, d), products = type_count(d->type) * terms;
    bool rows = node_int(d, ATTR_tb, 0) && !node_int(d, ATTR_ta, 0);
    return products > 0 && products <= MAX_PRODUCTS &&
           (rows || terms <= MAX_TERMS);
}

// The values that a library call reads, and which are therefore in memory.
static bool *find_read(const Graph *g, const PassOptions *o, Arena *scratch) {
    bool *read = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = g->count; n-- > 0;) {
        const Node *d = &g->node[n];
        unsigned traits = op_info[d->op].traits;
        bool reads =
            (traits & CALLS) ? !has_few(g, o, n) : (traits & VIEW) && read[n];
        for (int i = 0; i < d->num_args && reads; i++)
            read[d->arg[i]] = true;
    }
    return read;
}

// The products to expand; NULL: none.  A kernel computes a chain for each user,
// so chains of chains would double their work with each: an operand that is
// computed from one must be in memory.
static bool *find_direct(const Graph *g, const PassOptions *o, Arena *scratch) {
    bool *direct = ARENA_ARRAY(scratch, g->count, bool);
    bool *chained = ARENA_ARRAY(scratch, g->count, bool), any = false;
    const bool *read = find_read(g, o, scratch);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        bool below = false;
        for (int i = 0; i < d->num_args; i++)
            below |= chained[d->arg[i]];
        direct[n] = has_few(g, o, n) && !below;
        if (!(op_info[d->op].traits & (CALLS | REDUCES)))
            chained[n] = below && !read[n];
        else if (direct[n])
            chained[n] = terms_of(g, d) <= MAX_TERMS && !read[n];
        any |= direct[n];
    }
    return any ? direct : NULL;
}

// Term i of each row or column of a, whose terms are along the axis, as [x,y].
static NodeId term_of(Graph *g, NodeId a, int axis, int64_t i, int64_t x,
                      int64_t y) {
    int64_t low[2] = {0}, high[2] = {0};
    low[axis] = i;
    high[axis] = g->node[a].type->dim[axis] - i - 1;
    return graph_reshape(g, graph_slice(g, a, low, high), 2, (int64_t[]){x, y});
}

static NodeId add_chain(Graph *g, const Node *d, const NodeId *now,
                        int64_t terms) {
    int a_axis = node_int(d, ATTR_ta, 0) ? 0 : 1;
    int b_axis = node_int(d, ATTR_tb, 0) ? 1 : 0;
    NodeId sum = NO_NODE;
    for (int64_t i = 0; i < terms; i++) {
        NodeId a = term_of(g, now[d->arg[0]], a_axis, i, d->type->dim[0], 1);
        NodeId b = term_of(g, now[d->arg[1]], b_axis, i, 1, d->type->dim[1]);
        NodeId product = graph_op2(g, OP_mul, a, b);
        sum = i == 0 ? product : graph_op2(g, OP_add, sum, product);
    }
    return sum;
}

static NodeId add_rows(Graph *g, const Node *d, const NodeId *now,
                       int64_t terms) {
    int64_t m = d->type->dim[0], n = d->type->dim[1], axis = 2;
    NodeId a = graph_reshape(g, now[d->arg[0]], 3, (int64_t[]){m, 1, terms});
    NodeId b = graph_reshape(g, now[d->arg[1]], 3, (int64_t[]){1, n, terms});
    NodeId sum = graph_reduce(g, OP_sum, graph_op2(g, OP_mul, a, b), 1, &axis);
    return graph_reshape(g, sum, 2, d->type->dim);
}

Graph *pass_direct_matmul(Graph *g, Arena *scratch, const PassOptions *o) {
    const bool *direct = g->facts & TYPED ? NULL : find_direct(g, o, scratch);
    if (direct == NULL)
        return g;
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        out->origin = d->from;
        if (!direct[n] || !rewrite_allowed(out, o))
            now[n] = graph_copy(out, g, n, now);
        else if (terms_of(g, d) <= MAX_TERMS)
            now[n] = add_chain(out, d, now, terms_of(g, d));
        else
            now[n] = add_rows(out, d, now, terms_of(g, d));
    }
    return out;
}
