// Tile pools: kernels that only pool a convolution's result, in windows that
// lie side by side within the rows of a tile.  See tile_fusion.h.

#include "passes/plan/tile_fusion.h"

static bool is_power(int64_t n) {
    return n > 0 && (n & (n - 1)) == 0;
}

// Whether d pools an image whose rows are whole in each tile, as those of its
// windows are.
static bool is_pool(const Graph *g, const Node *d, const Type *image) {
    const Node *x = &g->node[d->arg[0]];
    if ((d->op != OP_max_pool && d->op != OP_max_pool_index) ||
        !type_has_shape(x->type, image) || x->type->dtype == BOOL)
        return false;
    int64_t rows = node_ints(d, ATTR_window, 0, 1);
    bool is =
        windows_disjoint(d) && TILE_LEAST_POOLED % (rows * image->dim[2]) == 0;
    for (int i = 0; i < 2 && is; i++) {
        int64_t window = node_ints(d, ATTR_window, i, 1);
        is = is_power(window) && image->dim[1 + i] % window == 0;
    }
    return is;
}

// Indices of windows as bits, in whole bytes.
static bool is_packed(const Graph *g, const Group *group, const TilePool *p,
                      const Node *d) {
    return d->op == OP_pack && group_has(group, d->arg[0]) &&
           type_has_shape(g->node[d->arg[0]].type, &p->type) &&
           p->space.columns % 8 == 0;
}

// A value for each channel, or a number, that no kernel of the step computes.
static bool is_parameter(const Graph *g, const TileSpace *image, NodeId n) {
    const Node *d = &g->node[n];
    TileExtents e;
    if (d->op == OP_constant)
        return tile_reads(g, image, n);
    return (d->op == OP_param || d->op == OP_state) && d->type->dtype == F32 &&
           tile_extents(image, *d->type, &e) && !e.whole[1];
}

static bool is_node(const Graph *g, const Group *group, const TilePool *p,
                    NodeId n) {
    const Node *d = &g->node[n];
    const TileSpace image = tile_space(g, p->call);
    bool pools = is_pool(g, d, g->node[p->call].type) &&
                 type_has_shape(d->type, &p->type);
    if (!pools && !is_packed(g, group, p, d) && !tile_computes(g, &image, d) &&
        !tile_computes(g, &p->space, d))
        return false;
    for (int i = 0; i < d->num_args; i++)
        if (d->arg[i] != p->call && !group_has(group, d->arg[i]) &&
            !is_parameter(g, &image, d->arg[i]))
            return false;
    return true;
}

bool tile_pool(const Graph *g, const Group *group, NodeId call, TilePool *p) {
    const Type *image = g->node[call].type;
    NodeId pool = NO_NODE;
    if (g->node[call].op != OP_conv || group->kind != GROUP_GRID ||
        group->workspace != NO_NODE || space_rows(image) < TILE_LEAST_POOLED)
        return false;
    for (NodeId n = group->first; n <= group->last && pool == NO_NODE; n++)
        if (is_pool(g, &g->node[n], image))
            pool = n;
    if (pool == NO_NODE)
        return false;
    *p = (TilePool){.call = call, .type = *g->node[pool].type};
    p->space =
        (TileSpace){1, space_rows(&p->type), space_columns(&p->type), NULL};
    for (int i = 0; i < 2; i++)
        p->window[i] = node_ints(&g->node[pool], ATTR_window, i, 1);
    for (NodeId n = group->first; n <= group->last; n++)
        if (!is_node(g, group, p, n))
            return false;
    for (int i = 0; i < group->num_outputs; i++) {
        const Node *d = &g->node[group->output[i]];
        if (!is_packed(g, group, p, d) && !type_has_shape(d->type, &p->type))
            return false;
    }
    return true;
}

int tile_pool_of(const Graph *g, const Group *group, const Readers *reader,
                 NodeId call) {
    TilePool pool;
    for (int e = reader->first[call]; e >= 0; e = reader->next[e])
        if (tile_pool(g, &group[reader->group[e]], call, &pool))
            return reader->group[e];
    return -1;
}
