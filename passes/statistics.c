// Statistics: lets a library leave sums of squares in place of a variance.
//
//   requires   The graph is typed and has no groups.
//   preserves  Every value stays the same.
//   result     All readers of the variance over a convolution's channels read a
//              node `var_finalize` of it, the sum and the count.
//
// A library's convolution can take the statistics of its result, but as a sum
// of squares (passes/plan/library_fusion.h).  Readers accept either, so
// that no further launch is needed.
#include "passes/passes.h"

// Whether node n is over all axes of a convolution but the channels.
static bool over_channels(const Graph *g, const Node *n, Op op) {
    if (n->op != op)
        return false;
    const Node *x = &g->node[n->arg[0]];
    const Attr *axes = node_attr(n, ATTR_axes);
    if (x->op != OP_conv || x->type->dtype != ACT ||
        x->type->dim[x->type->rank - 1] % 8 != 0 ||
        axes->count != x->type->rank - 1)
        return false;
    for (int i = 0; i < axes->count; i++)
        if (axes->ints[i] != i)
            return false;
    return true;
}

// For each convolution the sum over its channels, or NO_NODE.
static NodeId *find_sums(const Graph *g, Arena *scratch) {
    NodeId *sum = graph_map_new(g, scratch);
    for (NodeId n = 0; n < g->count; n++)
        if (over_channels(g, &g->node[n], OP_sum))
            sum[g->node[n].arg[0]] = n;
    return sum;
}

// The variances that a library may leave squares for: those with a sum beside
// them that nothing reads by way of `var_finalize` yet.  NULL where there are none.
static bool *find_variances(const Graph *g, const NodeId *sum, Arena *scratch) {
    bool *found = ARENA_ARRAY(scratch, g->count, bool);
    int count = 0;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        found[n] = over_channels(g, d, OP_var) && sum[d->arg[0]] != NO_NODE;
        count += found[n];
        if (d->op == OP_var_finalize && found[d->arg[0]]) {
            found[d->arg[0]] = false;
            count--;
        }
    }
    return count > 0 ? found : NULL;
}

static NodeId variance_add(Graph *g, NodeId var, NodeId sum, int64_t count,
                           int number) {
    NodeId share = graph_number(g, 1.0 / (double)count);
    Attr attr = attr_int(ATTR_number, number);
    return graph_add(g, (Node){.op = OP_var_finalize,
                               .num_args = 3,
                               .arg = (NodeId[]){var, sum, share},
                               .num_attrs = 1,
                               .attr = &attr,
                               .group = -1});
}

Graph *pass_statistics(Graph *g, Arena *scratch, const PassOptions *o) {
    if (o->act != F16 || o->level == 0)
        return g;
    NodeId *sum = find_sums(g, scratch);
    bool *found = find_variances(g, sum, scratch);
    if (found == NULL)
        return g;
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    int number = 0;
    for (NodeId n = 0; n < g->count; n++) {
        now[n] = graph_copy(out, g, n, now);
        if (!found[n])
            continue;
        NodeId x = g->node[n].arg[0];
        NodeId beside = graph_copy(out, g, sum[x], now);
        int64_t count =
            type_count(g->node[x].type) / type_count(g->node[n].type);
        out->origin = g->node[n].from;
        now[n] = variance_add(out, now[n], beside, count, number++);
    }
    return out;
}
