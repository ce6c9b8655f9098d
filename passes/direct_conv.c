// Direct convolution: expands convolutions with few products per output and no
// trained parameter before them.
//
//   requires   Operations are primitive, and no precision is assigned.
//   preserves  Every value stays the same.
//   result     A sum of products replaces such a convolution.
//
// A library call reads a padded image and writes its result to memory.  If the
// image has few channels, the result is many times its size.  As a sum of
// products, it is computed by the kernels that use it, from the unpadded image.
// A convolution of trained filters stays a library call: their gradient's call
// reads the padded image, too.
#include "passes/passes.h"

enum { MAX_PRODUCTS = 12 };

// Whether a gradient to or through the operands of convolution n is computed,
// for each node of the graph.
static bool *find_trained(const Graph *g, Arena *scratch) {
    bool *trained = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        if (d->op == OP_conv_grad_input || d->op == OP_conv_grad_weight)
            trained[d->arg[1]] = true;
    }
    return trained;
}

// Whole windows, one beside the other, of every channel.
static bool is_plain(const Node *d) {
    bool plain = node_int(d, ATTR_groups, 1) == 1;
    for (int i = 0; i < 4; i++)
        plain &= node_ints(d, ATTR_pad, i, 0) == 0;
    for (int i = 0; i < 2; i++)
        plain &= node_ints(d, ATTR_stride, i, 1) == 1;
    return plain;
}

static bool is_direct(const Graph *g, const bool *trained, NodeId n) {
    const Node *d = &g->node[n];
    if (d->op != OP_conv || trained[d->arg[0]] || trained[d->arg[1]])
        return false;
    Type w = *g->node[d->arg[1]].type;
    return is_plain(d) && w.dim[0] % 8 == 0 &&
           type_count(&w) / w.dim[0] <= MAX_PRODUCTS && type_count(d->type) > 0;
}

static NodeId slice(Graph *g, NodeId a, const int64_t *low,
                    const int64_t *size) {
    Type t = *g->node[a].type;
    int64_t high[MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        high[i] = t.dim[i] - low[i] - size[i];
    return graph_slice(g, a, low, high);
}

// [K,R,S,C] as [RSC,K]: a row has the factors of one number of the window, for
// all results.
static NodeId filter_rows(Graph *g, NodeId w) {
    static const int64_t order[] = {1, 0};
    int64_t count = g->node[w].type->dim[0];
    int64_t dim[] = {count, type_count(g->node[w].type) / count};
    return graph_transpose(g, graph_reshape(g, w, 2, dim), order);
}

// Product i of the windows of convolution d: one number of each, times its row.
static NodeId add_product(Graph *g, const Node *d, Type w, NodeId x,
                          NodeId rows, int64_t i) {
    int64_t tap = i / w.dim[3];
    int64_t low[] = {0, tap / w.dim[2] * node_ints(d, ATTR_dilation, 0, 1),
                     tap % w.dim[2] * node_ints(d, ATTR_dilation, 1, 1),
                     i % w.dim[3]};
    int64_t size[] = {d->type->dim[0], d->type->dim[1], d->type->dim[2], 1};
    int64_t row[] = {i, 0}, width[] = {1, w.dim[0]};
    NodeId number = slice(g, x, low, size);
    return graph_op2(g, OP_mul, number, slice(g, rows, row, width));
}

static NodeId add_products(Graph *g, const Node *d, const NodeId *now) {
    Type w = *g->node[now[d->arg[1]]].type;
    NodeId x = now[d->arg[0]], rows = filter_rows(g, now[d->arg[1]]);
    NodeId sum = add_product(g, d, w, x, rows, 0);
    for (int64_t i = 1; i < type_count(&w) / w.dim[0]; i++)
        sum = graph_op2(g, OP_add, sum, add_product(g, d, w, x, rows, i));
    return sum;
}

static bool any_direct(const Graph *g, const bool *trained) {
    for (NodeId n = 0; n < g->count; n++)
        if (is_direct(g, trained, n))
            return true;
    return false;
}

Graph *pass_direct_conv(Graph *g, Arena *scratch, const PassOptions *o) {
    if (!(g->facts & BACKWARD) || (g->facts & TYPED))
        return g;
    bool *trained = find_trained(g, scratch);
    if (!any_direct(g, trained))
        return g;
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        out->origin = g->node[n].from;
        now[n] = is_direct(g, trained, n) && rewrite_allowed(out, o)
                     ? add_products(out, &g->node[n], now)
                     : graph_copy(out, g, n, now);
    }
    return out;
}
