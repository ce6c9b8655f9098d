// Tile prologues: the operations that compute an operand, on the part of it
// that a block loads in a step of its loop.  Rows are pixels, columns channels.
// tile_print.c declares, for operand a,
//
//   a_row          the number of each row
//   a_column       of each column
//   a_n, a_y, a_x  of each row's image and its place there, for pooled tensors
//   a_ok           whether the operand has the element
//   a_in           whether it has the row, for tensors of one column
//
// Elements outside of the operand are 0 after the prologue, as padding is.

#include "codegen/tile.h"

static TileExtents place_of(const TileValues *v, NodeId n) {
    const TileSpace space = tile_operand_space(&v->fused->type);
    TileExtents e;
    tile_extents(&space, *v->g->node[n].type, &e);
    return e;
}

static void extents_of(const TileValues *v, NodeId n, bool whole[2]) {
    const TileSpace space = tile_operand_space(&v->fused->type);
    tile_extents_in(v, &space, n, whole);
}

static const Expr *own(const TileValues *v, const char *name) {
    return x_name(v->a, arena_format(v->a, "%s%s", v->parameter, name));
}

static bool is_pooled(TileExtents place) {
    return place.window[0] > 1 || place.window[1] > 1;
}

// A row or a column of the pixels that a tensor has for the operand's.
static const Expr *pixel_of(const TileValues *v, int axis, int64_t window) {
    const Expr *x = own(v, axis == 0 ? "_y" : "_x");
    if (v->pixel[axis] != NULL)
        return v->pixel[axis];
    return window == 1 ? x
                       : expr_of(v->a, "$0 / $1",
                                 (const Expr *[]){x, x_number(v->a, window)});
}

// The offset of the element of a tensor that each row and column of the operand
// has.
static const Expr *offset_of(TileValues *v, NodeId n) {
    Type t = *v->g->node[n].type;
    TileExtents place = place_of(v, n);
    const Expr *column = own(v, "_column"), *columns;
    if (!place.whole[0])
        return column;
    columns = x_number(v->a, space_columns(&t));
    v->fused->reads_rows |= !is_pooled(place);
    v->fused->by_row |= !place.whole[2];
    if (!place.whole[2])
        return own(v, "_row");
    if (!is_pooled(place))
        return expr_of(v->a, "$0 * $1 + $2",
                       (const Expr *[]){own(v, "_row"), columns, column});
    v->fused->reads_pooled = true;
    const Expr *row = own(v, "_n");
    for (int i = 0; i < 2; i++)
        row = expr_of(v->a, "($0 * $1 + $2)",
                      (const Expr *[]){row, x_number(v->a, t.dim[i + 1]),
                                       pixel_of(v, i, place.window[i])});
    return expr_of(v->a, "$0 * $1 + $2",
                   (const Expr *[]){row, columns, column});
}

static const Expr *mask_of(const TileValues *v, NodeId n) {
    TileExtents place = place_of(v, n);
    if (place.whole[0])
        return v->pixel[2] != NULL ? v->pixel[2]
               : place.whole[2]    ? own(v, "_ok")
                                   : own(v, "_in");
    return expr_of(
        v->a, "$0 < $1",
        (const Expr *[]){own(v, "_column"),
                         x_number(v->a, space_columns(v->g->node[n].type))});
}

static const Expr *load(TileValues *v, NodeId n) {
    Type t = *v->g->node[n].type;
    const Expr *arg[3] = {tile_parameter(v, n)}, *x;
    if (type_count(&t) == 1) {
        x = tile_call_with(v, "load_number", arg[0]);
    } else {
        arg[1] = offset_of(v, n);
        arg[2] = mask_of(v, n);
        x = tile_call(v, t.dtype == ACT ? "load_at<act>" : "load_at<float>", 3,
                      arg);
    }
    return tile_declare_loaded(v, n, x);
}

static const Expr *unpacked(TileValues *v, NodeId n) {
    return tile_bits(v, n, offset_of(v, n), mask_of(v, n));
}

// A value of each column is the same for all pixels.
static void share_columns(const TileValues *v, const Expr **from,
                          const Expr **to) {
    const Group *group = v->kernel->group;
    for (NodeId n = 0; n <= group->last; n++)
        if (from[n] != NULL && !place_of(v, n).whole[0])
            to[n] = from[n];
}

// The part of a pixel's gradient that is of one of the windows that contain it:
// back windows before the last.
static const Expr *window_grad(TileValues *v, NodeId n, const int back[2]) {
    const Node *d = &v->g->node[n];
    const Type *pooled = v->g->node[d->arg[1]].type;
    const Expr *inside = own(v, "_ok"), *tap[2], **before = v->value;
    for (int i = 0; i < 2; i++) {
        const Expr *arg[] = {own(v, i == 0 ? "_y" : "_x"),
                             x_number(v->a, node_ints(d, ATTR_pad, 2 * i, 0)),
                             x_number(v->a, node_ints(d, ATTR_stride, i, 1)),
                             x_number(v->a, back[i])};
        v->pixel[i] = tile_declare(
            v, n,
            expr_of(v->a,
                    back[i] > 0 ? "($0 + $1) / $2 - $3" : "($0 + $1) / $2",
                    arg));
        arg[3] = v->pixel[i];
        tap[i] = tile_declare(v, n, expr_of(v->a, "$0 + $1 - $3 * $2", arg));
        inside = expr_of(
            v->a, "$0 && ($1 >= 0) && ($1 < $2) && ($3 < $4)",
            (const Expr *[]){inside, v->pixel[i],
                             x_number(v->a, pooled->dim[i + 1]), tap[i],
                             x_number(v->a, node_ints(d, ATTR_window, i, 1))});
    }
    v->pixel[2] = tile_declare(v, n, inside);
    v->value = ARENA_ARRAY(v->a, v->g->count, const Expr *);
    share_columns(v, before, v->value);
    const Expr *arg[] = {tile_value(v, d->arg[0]),
                         tap[0],
                         x_number(v->a, node_ints(d, ATTR_window, 1, 1)),
                         tap[1],
                         tile_value(v, d->arg[1]),
                         v->pixel[2]};
    share_columns(v, v->value, before);
    v->value = before;
    v->pixel[0] = v->pixel[1] = v->pixel[2] = NULL;
    return tile_declare(
        v, n, expr_of(v->a, "($0 == $1 * $2 + $3) && $5 ? $4 : 0.0f", arg));
}

// A pixel has the gradients of those windows of which it is the largest.
static const Expr *overlapping(TileValues *v, NodeId n) {
    const Node *d = &v->g->node[n];
    const Expr *sum = NULL;
    int windows[2], back[2];
    for (int i = 0; i < 2; i++)
        windows[i] =
            node_ints(d, ATTR_window, i, 1) > node_ints(d, ATTR_stride, i, 1)
                ? 2
                : 1;
    for (back[0] = 0; back[0] < windows[0]; back[0]++)
        for (back[1] = 0; back[1] < windows[1]; back[1]++) {
            const Expr *x = window_grad(v, n, back);
            sum = sum == NULL ? x
                              : tile_declare(v, n,
                                             expr_of(v->a, "$0 + $1",
                                                     (const Expr *[]){sum, x}));
        }
    v->fused->reads_pooled = true;
    return sum;
}

// A pixel has the gradient of its window if it is the one with the index.
static const Expr *unpooled(TileValues *v, NodeId n) {
    if (!windows_disjoint(&v->g->node[n]))
        return overlapping(v, n);
    const Node *d = &v->g->node[n];
    TileExtents from = place_of(v, d->arg[1]), to = place_of(v, n);
    const Expr *at =
        expr_of(v->a, "$0 % $1 * $2 + $3 % $2",
                (const Expr *[]){pixel_of(v, 0, to.window[0]),
                                 x_number(v->a, from.window[0] / to.window[0]),
                                 x_number(v->a, from.window[1] / to.window[1]),
                                 pixel_of(v, 1, to.window[1])});
    v->fused->reads_pooled = true;
    return tile_declare(v, n,
                        expr_of(v->a, "$0 == $1 ? $2 : 0.0f",
                                (const Expr *[]){tile_value(v, d->arg[0]), at,
                                                 tile_value(v, d->arg[1])}));
}

static const Expr *compute(TileValues *v, NodeId n) {
    switch (v->g->node[n].op) {
    case OP_unpack:
        return unpacked(v, n);
    case OP_max_pool_grad:
        return unpooled(v, n);
    default:
        return NULL;
    }
}

// The part of a result that the block has loaded; a number fills it.
static const Expr *part_of(TileValues *v, NodeId n) {
    const Expr *x = tile_value(v, n);
    if (x->kind == X_NAME)
        return x;
    const char *extents = tile_text(v, (const bool[]){true, true});
    return tile_declare(
        v, n, tile_call_with(v, arena_format(v->a, "full<%s>", extents), x));
}

static void store_output(TileValues *v, NodeId n) {
    const Node *d = &v->g->node[n];
    const bool packs = d->op == OP_pack, transposed = v->s->ta;
    const char *extents = tile_text(v, (const bool[]){true, true});
    const char *part = packs ? " / 8" : "";
    const Expr *x = packs ? tile_value(v, d->arg[0]) : part_of(v, n);
    x = tile_call_with(
        v, packs ? arena_format(v->a, "pack<%s, 1>", extents) : "to_act", x);
    const char *name =
        arena_format(v->a, "store_tile<1, %s%s, 1, %s%s>",
                     transposed ? "K, M" : "M, K", part, extents, part);
    const Expr *rows = x_name(v->a, "mb"), *depth = x_name(v->a, "i");
    Stmts *before = v->to;
    v->to = &v->fused->stores;
    tile_statement(v, (Stmt){.kind = S_CALL,
                             .node = n,
                             .value = tile_call(
                                 v, name, 5,
                                 (const Expr *[]){tile_parameter(v, n), x,
                                                  x_number(v->a, 0),
                                                  transposed ? depth : rows,
                                                  transposed ? rows : depth})});
    v->to = before;
}

// Names of extents of the operand's tile, as it is in memory.
static void name_extents(TileValues *v, const TileSchedule *s, int operand) {
    bool transposed = operand == 0 ? s->ta : s->tb;
    const char *own = operand == 0 ? "BM" : "BN";
    v->extent[0] = (operand == 0) != transposed ? own : "BK";
    v->extent[1] = (operand == 0) != transposed ? "BK" : own;
}

void tile_prologue(TileSchedule *s, const Launches *l, int kernel, int operand,
                   NodeId n, Arena *a) {
    TileFusedKernel *to = &s->operand[operand];
    const Kernel *k = &l->kernel[kernel];
    TileValues v = tile_values(s, l, k, k->group, a);
    *to = (TileFusedKernel){.kernel = k,
                            .type = *v.g->node[n].type,
                            .used =
                                ARENA_ARRAY(a, (size_t)k->num_args + 1, bool)};
    v.parameter = operand == 0 ? "a" : "b";
    v.fused = to;
    v.extents = extents_of;
    v.load = load;
    v.compute = compute;
    v.to = &to->statements;
    name_extents(&v, s, operand);
    to->value = part_of(&v, n);
    if (tile_prologue_of(&l->plan->tiles, kernel)->stored_by >= 0)
        for (int i = 0; i < k->group->num_outputs; i++)
            store_output(&v, k->group->output[i]);
}
