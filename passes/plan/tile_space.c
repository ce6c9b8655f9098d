// Tile spaces: the place of tensors in the result or an operand of a tile
// kernel, and the nodes that it can compute there.  See tile_fusion.h.

#include "passes/plan/tile_fusion.h"

static int64_t rows_of(Type t) {
    return t.rank > 0 ? space_rows(&t) : 1;
}

static int64_t columns_of(Type t) {
    return t.rank > 0 ? space_columns(&t) : 1;
}

TileSpace tile_space(const Graph *g, NodeId call) {
    const Node *d = &g->node[call];
    TileSpace s = {.batch = 1, .columns = space_columns(d->type)};
    s.rows = d->op == OP_matmul ? d->type->dim[d->type->rank - 2]
                                : rows_of(*d->type);
    if (d->op == OP_conv_grad_weight) {
        s.rows = d->type->dim[0];
        s.batch = d->type->dim[1] * d->type->dim[2];
    }
    for (int i = 0; d->op == OP_matmul && i < d->type->rank - 2; i++)
        s.batch *= d->type->dim[i];
    return s;
}

TileSpace tile_operand_space(const Type *t) {
    return (TileSpace){1, rows_of(*t), columns_of(*t), t};
}

TileSpace tile_positions(const Type *t) {
    return (TileSpace){t->dim[0], t->dim[1], t->dim[2], NULL};
}

static bool is_pooled(const Type *image, Type t, int64_t window[2]) {
    if (image == NULL || image->rank != 4 || t.rank != 4 ||
        t.dim[0] != image->dim[0])
        return false;
    for (int i = 0; i < 2; i++) {
        window[i] = image->dim[i + 1] / t.dim[i + 1];
        if (window[i] * t.dim[i + 1] != image->dim[i + 1])
            return false;
    }
    return true;
}

bool tile_extents(const TileSpace *s, Type t, TileExtents *out) {
    int64_t columns = columns_of(t), rows = rows_of(t);
    *out = (TileExtents){.window = {1, 1}};
    bool *whole = out->whole;
    whole[0] = rows == s->batch * s->rows ||
               (rows > 1 && is_pooled(s->image, t, out->window));
    whole[1] = whole[0] ||
               (rows == s->rows && t.rank > 1 && t.dim[t.rank - 2] == rows);
    whole[2] = columns == s->columns;
    return (whole[1] || rows == 1) && (whole[2] || columns == 1);
}

static bool same_extents(const TileExtents *a, const TileExtents *b) {
    bool same = true;
    for (int i = 0; i < 3; i++)
        same &= a->whole[i] == b->whole[i];
    for (int i = 0; i < 2; i++)
        same &= a->window[i] == b->window[i];
    return same;
}

bool tile_is_whole(const TileSpace *s, Type t) {
    TileExtents e;
    return tile_extents(s, t, &e) &&
           same_extents(&e, &(TileExtents){{true, true, true}, {1, 1}});
}

// ---- contractions ----

bool tile_is_indexed(Type t) {
    return type_count(&t) > 0 && type_count(&t) <= INT32_MAX;
}

bool tile_groups_fit(const Graph *g, NodeId n) {
    enum { LEAST = 16, ALIGNED = 8 };
    const Node *d = &g->node[n];
    int64_t groups = node_int(d, ATTR_groups, 1);
    if (groups == 1)
        return true;
    Type w = d->op == OP_conv_grad_weight ? *d->type : *g->node[d->arg[1]].type;
    int64_t outputs = w.dim[0] / groups, inputs = w.dim[3];
    return inputs >= LEAST && inputs % ALIGNED == 0 && outputs >= LEAST &&
           outputs % ALIGNED == 0;
}

// Activations of 16 bits, groups that fit, and offsets in 32 bits.
bool tile_contraction(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    if (!(op_info[d->op].traits & CONTRACTS) || !tile_groups_fit(g, n) ||
        d->type->dtype != ACT || !tile_is_indexed(*d->type))
        return false;
    for (int i = 0; i < 2; i++) {
        Type t = *g->node[d->arg[i]].type;
        if (t.dtype != ACT || !tile_is_indexed(t))
            return false;
    }
    return true;
}

// ---- nodes ----

bool tile_is_value(Type t) {
    return t.dtype == F32 || t.dtype == ACT || t.dtype == BOOL;
}

bool tile_computes(const Graph *g, const TileSpace *s, const Node *d) {
    TileExtents to, from;
    if (d->op == OP_uniform || d->op == OP_mod || !tile_is_value(*d->type) ||
        !tile_extents(s, *d->type, &to))
        return false;
    if (d->op == OP_reshape) // between broadcasts it has other elements
        return tile_extents(s, *g->node[d->arg[0]].type, &from) &&
               same_extents(&to, &from);
    return op_info[d->op].traits & POINTWISE;
}

bool tile_reads(const Graph *g, const TileSpace *s, NodeId n) {
    const Node *d = &g->node[n];
    TileExtents e;
    double value;
    if (d->op == OP_constant)
        return node_number(d, &value);
    return d->op != OP_iota && tile_is_value(*d->type) &&
           d->type->dtype != BOOL && tile_extents(s, *d->type, &e);
}

bool tile_packs(const Graph *g, const TileSpace *s, const Node *d) {
    return d->op == OP_pack && node_int(d, ATTR_bits, 0) == 1 &&
           g->node[d->arg[0]].type->dtype == BOOL &&
           tile_is_whole(s, *g->node[d->arg[0]].type) && s->columns % 8 == 0;
}

bool tile_unpacks(const TileSpace *s, const Group *group, const Node *d) {
    TileExtents e;
    return d->op == OP_unpack && !group_has(group, d->arg[0]) &&
           (d->type->dtype == BOOL || d->type->dtype == U8) &&
           tile_extents(s, *d->type, &e);
}
