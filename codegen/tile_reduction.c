// Tile reduction: sums and variances of the columns of a result.  Each block
// stores the partial sums of its rows, [slot][block of rows][column]; another
// kernel adds them in the order of blocks, so that no result depends on
// scheduling.
//
// A variance is that of T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating
// formulae and a pairwise algorithm for computing sample variances" (1979): the
// squared distances from a block's mean, and those of the blocks' means from
// the mean of all.

#include "codegen/tile.h"

// Blocks of rows are those of each residue of pixels, which have other rows.
static bool has_residues(const TileValues *v) {
    return v->s->load == STRIDED_GRAD;
}

static void store_partial(TileValues *v, NodeId n, const Expr *x, int slot) {
    const Expr *arg[] = {x_name(v->a, "partial"), x, x_number(v->a, slot),
                         x_name(v->a, has_residues(v) ? "z * MB + mb" : "mb"),
                         x_name(v->a, "nb")};
    const char *name = has_residues(v)
                           ? "store_tile<SLOTS, Z * MB, N, 1, 1, BN>"
                           : "store_tile<SLOTS, MB, N, 1, 1, BN>";
    tile_statement(
        v,
        (Stmt){.kind = S_CALL, .node = n, .value = tile_call(v, name, 5, arg)});
}

// x, with 0 in rows that the result lacks.
static const Expr *rows_within(TileValues *v, const Expr *x) {
    if (has_residues(v))
        return tile_call(v, "pixels_within<BM, BN>", 2,
                         (const Expr *[]){x, x_name(v->a, "is_pixel")});
    return tile_call(v, "rows_within<M, BM, BN>", 2,
                     (const Expr *[]){x, x_name(v->a, "mb")});
}

static void leave_partials(TileValues *v, NodeId n, TileSlots slots) {
    const Node *d = &v->g->node[n];
    TileColumns *columns = &v->columns[slots.sum];
    if (columns->sum == NULL) {
        columns->rows = tile_declare(v, d->arg[0],
                                     rows_within(v, tile_value(v, d->arg[0])));
        columns->sum = tile_declare(
            v, n, tile_call_with(v, "column_sums<BM, BN>", columns->rows));
        store_partial(v, n, columns->sum, slots.sum);
    }
    if (d->op == OP_var)
        store_partial(v, n,
                      tile_call(v, "column_squares<M, BM, BN>", 3,
                                (const Expr *[]){columns->rows, columns->sum,
                                                 x_name(v->a, "mb")}),
                      slots.squares);
}

static void add_partials(TileValues *v, NodeId n, TileSlots slots) {
    const Node *d = &v->g->node[n];
    const Expr *partial = x_name(v->a, "partial"), *nb = x_name(v->a, "nb");
    const Expr *sum = x_number(v->a, slots.sum), *zero = x_number(v->a, 0);
    TileColumns *columns = &v->columns[slots.sum];
    Stmts *before = v->to;
    v->to = &v->s->sums;
    if (columns->total == NULL)
        columns->total = tile_declare(
            v, n,
            tile_call(v,
                      has_residues(v)
                          ? "sums_of_columns<SLOTS, Z * MB, N, BR, BN>"
                          : "sums_of_columns<SLOTS, MB, N, BR, BN>",
                      3, (const Expr *[]){partial, sum, nb}));
    const Expr *x = columns->total;
    if (d->op == OP_var)
        x = tile_declare(
            v, n,
            tile_call(v, "variance_of_columns<SLOTS, MB, N, M, BM, BR, BN>", 5,
                      (const Expr *[]){partial, columns->total, sum,
                                       x_number(v->a, slots.squares), nb}));
    tile_statement(
        v, (Stmt){.kind = S_CALL,
                  .node = n,
                  .value = tile_call(v, "store_tile<1, 1, N, 1, 1, BN>", 5,
                                     (const Expr *[]){tile_parameter(v, n), x,
                                                      zero, zero, nb})});
    v->to = before;
}

void tile_reduction(TileValues *v, NodeId n) {
    TileSlots slots = tile_slots(v->g, v->kernel->group, n);
    v->s->slots = tile_slots(v->g, v->kernel->group, NO_NODE).count;
    if (v->columns == NULL)
        v->columns = ARENA_ARRAY(v->a, (size_t)v->s->slots, TileColumns);
    leave_partials(v, n, slots);
    add_partials(v, n, slots);
}
