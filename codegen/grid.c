// Grid emitter: rows by columns.  A block takes a contiguous run of rows.  Its
// threads stand side by side along the columns, each with a vector of lanes,
// and one above the other along the rows.

#include "codegen/emit.h"

#include <string.h>

static const char *const axis_name[] = {"n",     "h",     "w",    "axis3",
                                        "axis4", "axis5", "axis6"};

Index space_index(Emit *e, Type space, const Expr *column, const Expr *lanes) {
    Index p = {.rank = space.rank, .lanes = lanes, .is_identity = true};
    for (int i = 0; i < space.rank; i++) {
        p.dim[i] = space.dim[i];
        bool last = i == space.rank - 1;
        p.index[i] = last                ? column
                     : space.dim[i] == 1 ? e->zero
                     : space.rank == 2   ? x_name(e->a, "i")
                                         : x_name(e->a, axis_name[i]);
    }
    return p;
}

// Whether a counter overflows an int; it runs up to a block past the end.
static bool has_many_rows(Type space) {
    return space_rows(&space) > INT32_MAX - BLOCK_THREADS;
}

const char *row_type(Type space) {
    return has_many_rows(space) ? "long long" : "int";
}

const char *column_type(Type space) {
    enum { MAX_STEP = 16 * BLOCK_THREADS }; // a vector a thread
    return space_columns(&space) > INT32_MAX - MAX_STEP ? "long long" : "int";
}

void emit_space(Emit *e, Stmts *b, Type space, bool spec, const char *more) {
    enum { WHOLE = 64 }; // columns that are whole vectors, at any width
    int64_t columns = space_columns(&space);
    const char *own = spec && columns % WHOLE == 0 ? "spec " : "";
    const Expr *rows = x_number(e->a, space_rows(&space));
    const Expr *c = x_number(e->a, columns);
    if (has_many_rows(space))
        CODE(e, b, NO_NODE,
             arena_format(e->a, "const long long ROWS = $; enum { %sC = $%s };",
                          own, more),
             rows, c);
    else
        CODE(
            e, b, NO_NODE,
            arena_format(e->a, "enum { spec ROWS = $, %sC = $%s };", own, more),
            rows, c);
}

bool has_tiles(const Emit *e) {
    return e->group->division.tiles > 1;
}

void emit_block_range(Emit *e, Stmts *b, Type space) {
    if (has_tiles(e))
        CODE(e, b, NO_NODE,
             "const int chunk = block / COLUMN_TILES,"
             "    chunks = blocks / COLUMN_TILES,"
             "    first = block % COLUMN_TILES * TILE_COLUMNS;"
             "TILE_CHUNK(lo, hi, ROWS);");
    else if (has_many_rows(space))
        CODE(e, b, NO_NODE, "BLOCK_RANGE_OF($, lo, hi, ROWS);",
             x_name(e->a, row_type(space)));
    else
        CODE(e, b, NO_NODE, "BLOCK_RANGE(lo, hi, ROWS);");
}

// The indices of axes up to `last` for row number `row`.
static void emit_indices_of(Emit *e, Stmts *b, Type space, int last,
                            const char *row, const Stmts *body) {
    int64_t stride = 1;
    if (space.rank < 3)
        return;
    for (int i = last; i >= 0; i--) {
        const Expr *name = x_name(e->a, axis_name[i]), *x = x_name(e->a, row);
        if (space.dim[i] != 1 && stmts_mentions(body, name)) {
            if (stride != 1)
                x = EXPR(e, "$ / $", x, x_number(e->a, stride));
            if (i > 0)
                x = EXPR(e, "$ % $", x, x_number(e->a, space.dim[i]));
            CODE(e, b, NO_NODE, "const int $ = $;", name, x);
        }
        stride *= space.dim[i];
    }
}

void emit_row_indices(Emit *e, Stmts *b, Type space, const Stmts *body) {
    emit_indices_of(e, b, space, space.rank - 2, "i", body);
}

static void store_by(Emit *e, Scope *s, NodeId n, Index p, const Expr *value,
                     const char *word) {
    DType d = e->g->node[n].type->dtype;
    const Expr *to = x_address(e->a, pointer_name(e, n), index_offset(e, p));
    if (p.lanes == NULL) {
        CODE(e, &s->before, n,
             arena_format(e->a, "put_%s($, $);", access_suffix(d)), to, value);
        return;
    }
    CODE(e, &s->before, n, arena_format(e->a, "%s out@[$];", held_type(d)),
         p.lanes);
    CODE(e, &s->lanes, n, "out@[k] = $;", value);
    CODE(e, &s->after, n,
         arena_format(e->a, "%s_%s($, out@, $);", word, access_suffix(d)), to,
         p.lanes);
}

void emit_store(Emit *e, Scope *s, NodeId n, Index p, const Expr *value) {
    store_by(e, s, n, p, value, "store");
}

void emit_place(Emit *e, Scope *s, NodeId n, Index p, const Expr *value) {
    DType d = e->g->node[n].type->dtype;
    store_by(e, s, n, p, value, d == ACT || d == F32 ? "place" : "store");
}

// Stores n, which bit-packs the values computed at p.
static void store_packed(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    const Expr *value = value_at(e, s, d->arg[0], p);
    CODE(e, &s->before, n, "int out@[$];", p.lanes);
    CODE(e, &s->lanes, n, "out@[k] = $;", value);
    CODE(e, &s->after, n, "store_bits($, $, out@, $, $);", pointer_name(e, n),
         index_offset(e, p), p.lanes,
         x_number(e->a, node_int(d, ATTR_bits, 0)));
}

bool pad_widens(const Emit *e, const Node *d) {
    int last = d->type->rank - 1;
    if (d->op != OP_pad || last < 0)
        return false;
    Type from = *e->g->node[d->arg[0]].type;
    return d->type->dim[last] == 8 && from.dim[last] < 8 &&
           space_columns(e->group->iteration_space) == 8 &&
           node_ints(d, ATTR_low, last, 0) == 0;
}

const Expr *lanes_of(const Emit *e, Type space) {
    return e->narrow                          ? EXPR(e, "HOST_GPU(LANES(C), 4)")
           : e->step == space_columns(&space) ? EXPR(e, "LANES(C)")
           : e->step <= 1                     ? e->one
                          : EXPR(e, "LANES($)", x_number(e->a, e->step));
}

static bool sums(const Emit *e, NodeId n) {
    return sums_blocks(e->g, n);
}

static bool has_sums(const Emit *e) {
    return group_any(e, sums);
}

// The columns of a block: those of the space, or of a tile.
static const char *tile_constants(const Emit *e, Type space) {
    long long tiles = e->group->division.tiles;
    return tiles > 1
               ? arena_format(e->a,
                              ", COLUMN_TILES = HOST_GPU(1, gpu_only(%lld)),"
                              "TILE_COLUMNS = HOST_GPU(C, gpu_only(%lld)),"
                              "CG = TILE_COLUMNS / VW",
                              tiles, (long long)space_columns(&space) / tiles)
               : ", spec CG = C / VW";
}

void emit_tiles(Emit *e, Stmts *b, Type space, const char *tile) {
    emit_space(e, b, space, !has_tiles(e),
               arena_format(e->a, ", VW = %s%s",
                            expr_print(e->a, lanes_of(e, space), NULL),
                            tile_constants(e, space)));
    CODE(e, b, NO_NODE,
         arena_format(
             e->a, "enum { NT = THREADS(256), TX = %s(CG, NT), TY = NT / TX };",
             tile));
}

static bool is_column_pivot(const Emit *e, NodeId n) {
    return has_pivot(e, n) && reduction_kind(e->g, n) != FULL_REDUCTION;
}

// The block's part of the workspace, and shared memory for reductions.
static void emit_sums(Emit *e, Stmts *b) {
    if (!has_sums(e))
        return;
    CODE(e, b, NO_NODE, "enum { spec WIDTH = $ };",
         x_number(e->a, e->g->node[e->group->workspace].type->dim[1]));
    CODE(e, b, NO_NODE,
         group_any(e, is_column_reduction)
             ? "SHARED float shared[REDUCE_LANES * NT];"
             : "SHARED float shared[NT];");
    if (group_any(e, is_column_pivot))
        CODE(e, b, NO_NODE, "SHARED float samples[3 * VW * TX];");
}

// The index expression of row r and, if it stands alone, column m.  Declared in
// s.
static Index row_index(Emit *e, Scope *s, Type space, bool all) {
    Index p = space_index(e, space, x_name(e->a, all ? "m" : "c"),
                          all ? NULL : e->vw);
    int64_t stride = 1;
    p.is_identity = false;
    for (int i = space.rank - 2; i >= 0; i--) {
        const Expr *index = x_name(e->a, "r");
        if (stride > 1)
            index = EXPR(e, "$ / $", index, x_number(e->a, stride));
        if (i > 0)
            index = EXPR(e, "$ % $", index, x_number(e->a, space.dim[i]));
        if (space.dim[i] != 1)
            p.index[i] = index_new(e, s, "i", index);
        stride *= space.dim[i];
    }
    return p;
}

// The variance's operand in three rows: the first, middle and last.  Their
// columns are the first, middle and last too, as there may be one row only.
static Scope *open_sample(Emit *e, Scope *s, Type space, bool all, Index *p) {
    Scope *row = scope_open(e, s, e->vw);
    CODE(e, &row->before, NO_NODE,
         arena_format(e->a,
                      "const %s r = j == 0 ? 0 : j == 1 ? ROWS / 2 "
                      ": ROWS - 1;",
                      row_type(space)));
    if (all)
        CODE(e, &row->before, NO_NODE,
             "const int m = j == 0 ? 0 : j == 1 ? C / 2 : C - 1;");
    *p = row_index(e, row, space, all);
    return row;
}

// The pivot of variance n over all elements: the median of the samples, which
// is robust to outliers.
static void emit_pivot_of_all(Emit *e, Scope *s, Type space, NodeId n) {
    Index p;
    CODE(e, &s->before, n, "float sample@[3];");
    Scope *row = open_sample(e, s, space, true, &p);
    CODE(e, &row->before, n, "sample@[j] = $;",
         value_at(e, row, e->g->node[n].arg[0], p));
    CODE(e, &s->before, NO_NODE, "for (int j = 0; j < 3; j++) { ~ }",
         scope_close(e, row));
    CODE(e, &s->before, n,
         "const float pivot@ = median(sample@[0], sample@[1], sample@[2]);");
    if (pivot_index(e, n) != NULL)
        CODE(e, &s->before, n,
             "if (threadIdx.x == 0)"
             "    put_f32(partials + (size_t)block * WIDTH + $, pivot@);",
             pivot_index(e, n));
}

// The pivots of columns.  Three threads of a block in each column compute a
// sample each, and all of them read the samples.
static void emit_pivot_of_columns(Emit *e, Scope *kernel, Stmts *b, Type space,
                                  NodeId n) {
    Index p;
    if (b->first != NULL) // others have read `samples`
        CODE(e, b, n, "BARRIER();");
    Scope *column = scope_open(e, kernel, e->vw);
    Scope *row = open_sample(e, column, space, false, &p);
    CODE(e, &row->lanes, n, "samples[(j * VW + k) * TX + tx] = $;",
         value_at(e, row, e->g->node[n].arg[0], p));
    CODE(e, &column->before, NO_NODE, "for (int j = ty; j < 3; j += TY) { ~ }",
         scope_close(e, row));
    CODE(e, b, n,
         "if (g < CG && ty < 3) { ~ }"
         "BARRIER();"
         "float pivot@[VW];"
         "LANES_DO(k, VW)"
         "    pivot@[k] = median(samples[k * TX + tx], samples[(VW + k) * TX + tx],"
         "                       samples[(2 * VW + k) * TX + tx]);",
         scope_close(e, column));
    if (pivot_index(e, n) != NULL)
        CODE(e, b, n,
             arena_format(
                 e->a,
                 "if (g < CG && ty == 0) LANES_DO(k, VW)"
                 "    put_f32(partials + (size_t)%s * WIDTH + $ + c + k,"
                 "            pivot@[k]);",
                 has_tiles(e) ? "chunk" : "block"),
             pivot_index(e, n));
}

static void emit_pivots(Emit *e, Scope *kernel, Scope *column, Stmts *b,
                        Type space) {
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (is_column_pivot(e, n))
            emit_pivot_of_columns(e, kernel, b, space, n);
        else if (has_pivot(e, n))
            emit_pivot_of_all(e, column, space, n);
}

// Whether a kernel over windows stores n window by window.
static bool stores_windows(const Emit *e, NodeId n) {
    return e->stored[n] && disjoint_pool_grad(e->g, n) != NO_NODE &&
           !type_has_shape(e->g->node[n].type, e->group->iteration_space);
}

// The work for one row and one vector of columns.
static void emit_row(Emit *e, Scope *row, Index p) {
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        if (sums_blocks(e->g, n)) {
            Index q = index_broadcast(p, *e->g->node[d->arg[0]].type);
            q.lanes = p.lanes;
            sums_add(e, row, n, q, value_at(e, row, d->arg[0], q));
        } else if (stores_windows(e, n)) {
            emit_window_grads(e, row, n, p);
        } else if (e->stored[n] && d->op == OP_pack) {
            store_packed(e, row, n, p);
        } else if (e->stored[n] && d->op != OP_workspace) {
            emit_store(e, row, n, p, value_at(e, row, n, p));
        }
    }
}

// Whether rows are pairs, one value of which is stored.  A thread with both
// rows of a pair computes their common operands once.
static bool has_pairs(const Emit *e) {
    Type space = *e->group->iteration_space;
    int last = space.rank - 2;
    if (last < 1 || space.dim[last] != 2 || has_many_rows(space) || has_sums(e))
        return false;
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        if (d->op != OP_select || !type_has_shape(d->type, &space))
            continue;
        const Type *which = e->g->node[d->arg[0]].type;
        if (which->rank == 2 && which->dim[0] == 2 && which->dim[1] == 1)
            return true;
    }
    return false;
}

// The work for each group of columns, with all threads before, and in each of
// its rows.
typedef struct {
    const Stmts *pivots, *columns, *rows;
    bool pairs;
} Walk;

// The loop over the rows of the block, or over its pairs of rows.
static void emit_loop(Emit *e, Stmts *b, Type space, const Walk *w) {
    const char *i = w->pairs ? "pair" : "i";
    int last = space.rank - 2;
    const Expr *axis = x_name(e->a, w->pairs ? axis_name[last] : "");
    Stmts rows = {NULL, NULL};
    if (w->pairs)
        emit_indices_of(e, &rows, space, last - 1, i, w->rows);
    else
        emit_row_indices(e, &rows, space, w->rows);
    if (w->pairs)
        CODE(e, &rows, NO_NODE,
             "UNROLLED($, 2) { const int i = 2 * pair + $; ~ }", axis, axis,
             w->rows);
    else
        stmts_append(&rows, w->rows);
    CODE(e, b, NO_NODE,
         arena_format(e->a, "for (%s %s = lo + ty; %s < hi; %s += TY) { ~ }",
                      row_type(space), i, i, i),
         &rows);
}

// The loop over groups of columns.  All threads of a block take equally many
// iterations if sums follow.
static void emit_walk(Emit *e, Stmts *b, Type space, const Walk *w) {
    const char *type = column_type(space);
    const char *column =
        has_tiles(e) ? ", c = nonnegative(first + g * VW)" : ", c = g * VW";
    const Expr *c = x_name(e->a, "c");
    bool used = stmts_mentions(w->pivots, c) || stmts_mentions(w->columns, c) ||
                stmts_mentions(w->rows, c);
    Stmts columns = *w->columns, arrays = {NULL, NULL}, out = arrays;
    emit_loop(e, &columns, space, w);
    if (!has_sums(e)) {
        CODE(e, b, NO_NODE,
             arena_format(e->a, "for (%s g = tx; g < CG; g += TX) { %s ~ }",
                          type, used ? "const int c = g * VW;" : ""),
             &columns);
        return;
    }
    sums_declare(e, &arrays, false, e->vw);
    stmts_append(&arrays, w->pivots);
    sums_store(
        e, &out,
        has_tiles(e)
            ? "columns_%s(partials + (size_t)chunk * WIDTH + first + $ +"
              "    g0 * VW, %s, VW, TILE_COLUMNS - g0 * VW, shared, TX,"
              "    NT);"
            : "columns_%s(partials + (size_t)block * WIDTH + $ + g0 * VW,"
              "    %s, VW, C - g0 * VW, shared, TX, NT);",
        false);
    CODE(e, b, NO_NODE,
         arena_format(e->a,
                      "for (%s g0 = 0; g0 < CG; g0 += TX) {"
                      "    const %s g = g0 + tx%s;"
                      "    ~ if (g < CG) { ~ } ~ }",
                      type, type, used ? column : ""),
         &arrays, &columns, &out);
}

void emit_grid(Emit *e, Stmts *b) {
    Type space = *e->group->iteration_space;
    if (space.rank == 0)
        space = type_of(space.dtype, 1, (int64_t[]){1});
    emit_tiles(e, b, *e->group->iteration_space,
               has_sums(e) ? "THREADS_ALONG" : "THREADS_ALONG_ROW");
    emit_sums(e, b);
    CODE(e, b, NO_NODE,
         has_sums(e) ? "const int tx = threadIdx.x % TX, ty = threadIdx.x / TX;"
                     : "const int ty = threadIdx.x / TX,"
                       "    tx = ty < TY ? threadIdx.x % TX : CG;");
    bool pairs = has_pairs(e);
    if (pairs)
        CODE(e, b, NO_NODE, "BLOCK_RANGE(lo, hi, ROWS / 2);");
    else
        emit_block_range(e, b, space);

    Scope *kernel = scope_new(e, NULL, IN_KERNEL, NULL);
    Scope *column = scope_new(e, kernel, IN_LOOP, e->vw);
    Scope *row = scope_new(e, column, IN_LOOP, e->vw);
    sums_begin(e, b);
    sums_declare(e, &kernel->before, true, e->vw);
    Stmts pivots = {NULL, NULL};
    emit_pivots(e, kernel, column, &pivots, space);
    emit_row(e, row, space_index(e, space, x_name(e->a, "c"), e->vw));

    Walk w = {.pivots = &pivots,
              .columns = scope_close(e, column),
              .rows = scope_close(e, row),
              .pairs = pairs};
    stmts_append(b, scope_close(e, kernel));
    emit_walk(e, b, space, &w);
    sums_store(e, b, NULL, true);
    sums_finish(e, b);
}
