// Tile epilogue: the operations after a contraction, on the block's tile of
// its result.  A value is a tile with the extents of its tensor there: BM or 1
// rows, BN or 1 columns.

#include "codegen/tile.h"

static const char *tensor_text(const TileValues *v, const bool whole[3]) {
    return arena_format(v->a, "%s, %s, %s", whole[0] ? "Z" : "1",
                        whole[1] ? "M" : "1", whole[2] ? "N" : "1");
}

static void block_of(const TileValues *v, const bool whole[3],
                     const Expr *place[3]) {
    static const char *const index[] = {"z", "mb", "nb"};
    for (int i = 0; i < 3; i++)
        place[i] = whole[i] ? x_name(v->a, index[i]) : x_number(v->a, 0);
}

static void extents_of(const TileValues *v, NodeId n, bool whole[2]) {
    tile_extents_in(v, &v->s->space, n, whole);
}

// Rows of a tensor that are apart: those of the block's pixels.
static const Expr *load_pixels(TileValues *v, NodeId n, bool columns) {
    const Expr *arg[] = {tile_parameter(v, n), x_name(v->a, "pixel"),
                         x_name(v->a, "is_pixel"),
                         columns ? x_name(v->a, "nb") : x_number(v->a, 0)};
    return tile_call(v, columns ? "load_rows<N, BN>" : "load_rows<1, 1>", 4,
                     arg);
}

static const Expr *load_tiles(TileValues *v, NodeId n, const bool whole[3]) {
    const Expr *arg[4];
    arg[0] = tile_parameter(v, n);
    block_of(v, whole, arg + 1);
    const Expr *x =
        tile_call(v,
                  arena_format(v->a, "load_tile<%s, 1, %s>",
                               tensor_text(v, whole), tile_text(v, whole + 1)),
                  4, arg);
    return tile_call_with(
        v, arena_format(v->a, "matrix<%s>", tile_text(v, whole + 1)), x);
}

static const Expr *load(TileValues *v, NodeId n) {
    TileExtents e;
    tile_extents(&v->s->space, *v->g->node[n].type, &e);
    const bool *whole = e.whole;
    const Expr *x = v->s->load == STRIDED_GRAD && whole[1]
                        ? load_pixels(v, n, whole[2])
                        : load_tiles(v, n, whole);
    return tile_declare_loaded(v, n, x);
}

// Pixels of a smaller image, with zeros between them.
static const Expr *load_dilated(TileValues *v, NodeId n) {
    const Node *d = &v->g->node[n];
    const int64_t *image = d->type->dim;
    bool apart = v->s->load == STRIDED_GRAD;
    const char *name =
        arena_format(v->a, "load_dilated<%lld, %lld, %lld, %lld, N, BN>",
                     (long long)image[1], (long long)image[2],
                     (long long)node_ints(d, ATTR_stride, 0, 1),
                     (long long)node_ints(d, ATTR_stride, 1, 1));
    const Expr *arg[] = {
        tile_parameter(v, d->arg[0]),
        x_name(v->a, apart ? "pixel" : "iota_column<BM>() + mb * BM"),
        x_name(v->a, apart ? "is_pixel" : "iota_column<BM>() + mb * BM < M"),
        x_name(v->a, "nb")};
    return tile_declare_loaded(v, d->arg[0], tile_call(v, name, 4, arg));
}

static const Expr *compute(TileValues *v, NodeId n) {
    if (v->g->node[n].op == OP_avg_pool_grad)
        return load_dilated(v, n);
    if (v->g->node[n].op != OP_unpack)
        return NULL;
    if (v->s->load == STRIDED_GRAD)
        return tile_bits(
            v, n, x_name(v->a, "pixel * N + (iota_row<BN>() + nb * BN)"),
            x_name(v->a, "is_pixel && (iota_row<BN>() + nb * BN < N)"));
    return tile_bits(v, n, x_name(v->a, "offsets_of<N, BM, BN>(mb, nb)"),
                     x_name(v->a, "within<M, N, BM, BN>(mb, nb)"));
}

// Stores x, of a number of elements to a column of the result, at p.
static void store(TileValues *v, NodeId n, const char *columns, const Expr *p,
                  const Expr *x) {
    const Expr *arg[5] = {p, x};
    const bool whole[3] = {true, true, true};
    const char *name = "store_rows<N%s, BN%s>";
    if (v->s->load == STRIDED_GRAD) {
        arg[2] = x_name(v->a, "pixel");
        arg[3] = x_name(v->a, "is_pixel");
        arg[4] = x_name(v->a, "nb");
    } else {
        name = "store_tile<Z, M, N%s, 1, BM, BN%s>";
        block_of(v, whole, arg + 2);
    }
    tile_statement(
        v, (Stmt){.kind = S_CALL,
                  .node = n,
                  .value = tile_call(
                      v, arena_format(v->a, name, columns, columns), 5, arg)});
}

// The value of n in the type that memory has for it.
static const Expr *stored_value(TileValues *v, NodeId n) {
    DType type = v->g->node[n].type->dtype;
    const Expr *x = tile_value(v, n);
    return type == F32
               ? x
               : tile_call_with(v, type == ACT ? "to_act" : "to_byte", x);
}

static void store_output(TileValues *v, NodeId n) {
    const Node *d = &v->g->node[n];
    const Expr *p = tile_parameter(v, n);
    if (op_info[d->op].traits & REDUCES)
        tile_reduction(v, n);
    else if (d->op == OP_pack)
        store(v, n, " / 8", p,
              tile_call_with(v, "pack<BM, BN, 1>", tile_value(v, d->arg[0])));
    else
        store(v, n, "", p, stored_value(v, n));
}

// The gradient of weights is [M][R * S][N], of each group.
static void store_result(TileValues *v, const Expr *x) {
    const Expr *out = x_name(v->a, "out");
    const Expr *arg[5] = {out, x, x_name(v->a, "mb"), x_name(v->a, "z"),
                          x_name(v->a, "nb")};
    const char *name = "store_tile<M, Z, N, BM, 1, BN>";
    if (v->s->load == WEIGHT_GRAD && v->s->groups > 1) {
        name = "store_rows<N, BN>";
        arg[0] = x_name(v->a, "out + tap * N");
        arg[2] = x_name(v->a, "(group * M + m) * Z");
        arg[3] = x_name(v->a, "m < M");
    }
    if (v->s->load == WEIGHT_GRAD)
        tile_statement(v, (Stmt){.kind = S_CALL,
                                 .node = v->call,
                                 .value = tile_call(v, name, 5, arg)});
    else
        store(v, v->call, "", out, x);
}

// The input gradient that is added to a tensor in memory has its result there.
static const Expr *load_result(TileValues *v) {
    const Expr *arg[4] = {x_name(v->a, "out"), x_name(v->a, "z"),
                          x_name(v->a, "mb"), x_name(v->a, "nb")};
    if (v->s->load == STRIDED_GRAD) {
        arg[1] = x_name(v->a, "pixel");
        arg[2] = x_name(v->a, "is_pixel");
        return tile_call(v, "load_rows<N, BN>", 4, arg);
    }
    return tile_call_with(
        v, "matrix<BM, BN>",
        tile_call(v, "load_tile<Z, M, N, 1, BM, BN>", 4, arg));
}

static const Expr *add_to_result(TileValues *v, const Expr *acc) {
    const Expr *before = tile_call_with(v, "to_float", load_result(v));
    return tile_declare(
        v, v->call, expr_of(v->a, "$0 + $1", (const Expr *[]){acc, before}));
}

// ---- pools ----

static void pooled_extents(const TileValues *v, NodeId n, bool whole[2]) {
    tile_extents_in(v, &v->s->pool_windows.space, n, whole);
}

// A value for each column is that of the image.
static const Expr *column_value(TileValues *v, NodeId n) {
    return tile_value(v->image, n);
}

static const Expr *pooled_value(TileValues *v, NodeId n) {
    const Node *d = &v->g->node[n];
    const TilePool *p = &v->s->pool_windows;
    bool whole[2];
    pooled_extents(v, n, whole);
    if (!whole[0])
        return column_value(v, n);
    if (d->op != OP_max_pool && d->op != OP_max_pool_index)
        return NULL;
    const char *name =
        arena_format(v->a, "%s<%lld, %lld, %lld, BM, BN>",
                     d->op == OP_max_pool ? "max_pool" : "pool_index",
                     (long long)v->g->node[p->call].type->dim[2],
                     (long long)p->window[0], (long long)p->window[1]);
    return tile_declare(
        v, n, tile_call_with(v, name, tile_value(v->image, d->arg[0])));
}

static int64_t pooled_pixels(const TileSchedule *s) {
    return s->pool_windows.window[0] * s->pool_windows.window[1];
}

static void store_pooled(TileValues *v, NodeId n) {
    const Node *d = &v->g->node[n];
    const bool whole[3] = {true, true, true};
    const char *rows = v->extent[0], *columns = "";
    const Expr *arg[5] = {tile_parameter(v, n)};
    if (d->op == OP_pack) {
        int bits = (int)node_int(d, ATTR_bits, 0);
        columns = arena_format(v->a, " * %d / 8", bits);
        arg[1] = tile_call_with(
            v, arena_format(v->a, "pack<%s, BN, %d>", rows, bits),
            tile_value(v, d->arg[0]));
    } else {
        arg[1] = stored_value(v, n);
    }
    block_of(v, whole, arg + 2);
    const char *name =
        arena_format(v->a, "store_tile<Z, M / %lld, N%s, 1, %s, BN%s>",
                     (long long)pooled_pixels(v->s), columns, rows, columns);
    tile_statement(
        v,
        (Stmt){.kind = S_CALL, .node = n, .value = tile_call(v, name, 5, arg)});
}

// The kernel that pools the result, as others read it.
static void build_pool(const TileValues *of, const Launches *l,
                       const TileFusion *f) {
    TileSchedule *s = of->s;
    const Kernel *k = &l->kernel[f->pool];
    const Group *group = k->group;
    TileValues image = tile_values(s, l, k, group, of->a), v;
    tile_pool(of->g, group, of->call, &s->pool_windows);
    s->pool_kernel = (TileFusedKernel){
        .kernel = k, .used = ARENA_ARRAY(of->a, (size_t)k->num_args + 1, bool)};
    image.parameter = "q";
    image.fused = &s->pool_kernel;
    image.extent[0] = "BM";
    image.extent[1] = "BN";
    image.extents = extents_of;
    image.load = load;
    image.to = of->to;
    image.call = of->call;
    image.value[of->call] = of->value[of->call];
    v = image;
    v.value = ARENA_ARRAY(of->a, of->g->count, const Expr *);
    v.call = NO_NODE;
    v.image = &image;
    v.extent[0] = arena_format(of->a, "BM / %lld", (long long)pooled_pixels(s));
    v.extents = pooled_extents;
    v.load = column_value;
    v.compute = pooled_value;
    for (int i = 0; i < group->num_outputs; i++)
        store_pooled(&v, group->output[i]);
}

// Others read the result rounded, so that the epilogue does, too.
static void build_statements(TileValues *v, const Launches *l,
                             const TileFusion *f) {
    const Expr *acc = x_name(v->a, "acc");
    if (call_adds_to(&v->g->node[v->call]) != NO_NODE)
        acc = add_to_result(v, acc);
    v->value[v->call] = acc;
    if (f->stores) {
        const Expr *stored =
            tile_declare(v, v->call, tile_call_with(v, "to_act", acc));
        store_result(v, stored);
        if (f->epilogue >= 0 || f->pool >= 0)
            v->value[v->call] =
                tile_declare(v, v->call, tile_call_with(v, "to_float", stored));
    }
    const Group *group = f->epilogue >= 0 ? v->kernel->group : NULL;
    for (int i = 0; group != NULL && i < group->num_outputs; i++)
        store_output(v, group->output[i]);
    if (f->pool >= 0) // last: it takes most registers
        build_pool(v, l, f);
}

void tile_epilogue(TileSchedule *s, const Launches *l, const TileFusion *f,
                   Arena *a) {
    const Group *call = l->kernel[f->call].group;
    TileValues v = tile_values(s, l, s->epilogue, call, a);
    v.parameter = "p";
    v.extent[0] = "BM";
    v.extent[1] = "BN";
    v.extents = extents_of;
    v.load = load;
    v.compute = compute;
    v.to = &s->statements;
    v.call = group_first(v.g, call, CALLS);
    build_statements(&v, l, f);
}
