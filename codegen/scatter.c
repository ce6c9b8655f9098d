// Scatter emitter: adds rows of a matrix, by an index, to rows of a table.
//
// A block owns a run of the table's rows.  Each thread owns some of these rows
// and a vector of columns.  The block scans the whole index in pieces, with all
// threads in parallel, and lists the positions that name its rows, in order.
// Each thread then loads several matrix rows before it adds the first one, and
// adds those for its own table rows.  So a sum follows the order of the index
// for any grid, without atomics.

#include "codegen/emit.h"

// The address of a row of the table, at this thread's columns.
static const Expr *table_row(Emit *e, const Expr *table, const char *row) {
    return EXPR(e, "$ + (size_t)$ * C + c", table, x_name(e->a, row));
}

static void emit_zeros(Emit *e, Stmts *b, const Expr *table) {
    CODE(e, b, NO_NODE,
         "for (int g = tx; g < CG; g += TX) {"
         "    const int c = g * VW;"
         "    float zero[VW];"
         "    LANES_DO(k, VW) zero[k] = 0.0f;"
         "    for (int i = lo + ty; i < hi; i += TY) store_f32($, zero, VW);"
         "}",
         table_row(e, table, "i"));
}

// Lists the positions in a piece of the index that name the block's rows.
static void emit_list(Emit *e, Scope *piece, NodeId n) {
    const Node *d = &e->g->node[n];
    int64_t count = type_count(e->g->node[d->arg[1]].type);
    Index p = {.rank = 1, .dim = {count}, .index = {x_name(e->a, "j")}};
    const Expr *size = x_size(e->a, count);
    CODE(e, &piece->before, NO_NODE, "int named[INDICES_PER_THREAD];");
    Scope *own = scope_open(e, piece, NULL);
    CODE(e, &own->before, NO_NODE,
         "const int at = from + threadIdx.x * INDICES_PER_THREAD + m;"
         "const int j = at < $ ? at : $ - 1;",
         size, size);
    const Expr *to = value_at(e, own, d->arg[1], p);
    CODE(e, &own->before, NO_NODE,
         "named[m] = at < $ ? clamp_index($, ROWS) : -1;", size, to);
    CODE(e, &piece->before, NO_NODE,
         "UNROLLED(m, INDICES_PER_THREAD) { ~ }"
         "const int count ="
         "    list_rows(listed, named, INDICES_PER_THREAD, from, lo, hi, NT);",
         scope_close(e, own));
}

// Loads the matrix rows of listed positions.
static void emit_ahead(Emit *e, Scope *some, NodeId n) {
    const Node *d = &e->g->node[n];
    Index p = {.rank = 2,
               .dim = {type_count(e->g->node[d->arg[1]].type), d->type->dim[1]},
               .index = {x_name(e->a, "j"), x_name(e->a, "c")},
               .lanes = e->vw};
    CODE(e, &some->before, NO_NODE, "float ahead[PREFETCH][VW];");
    Scope *row = scope_open(e, some, e->vw);
    CODE(e, &row->before, NO_NODE,
         "if (at + m >= count) break;"
         "const int j = listed[2 * (at + m)];");
    const Expr *x = value_at(e, row, d->arg[0], p);
    CODE(e, &row->lanes, n, "ahead[m][k] = $;", x);
    CODE(e, &some->before, NO_NODE, "UNROLLED(m, PREFETCH) { ~ }",
         scope_close(e, row));
}

// Adds them, each thread to its own rows.  The running sum stays in a register
// while consecutive positions name one row.
static void emit_sums(Emit *e, Stmts *b, NodeId n, const Expr *table) {
    CODE(e, b, n,
         "UNROLLED(m, PREFETCH) {"
         "    if (at + m >= count) continue;"
         "    const int i = listed[2 * (at + m) + 1];"
         "    if ((i - lo) % TY != ty) continue;"
         "    if (i != held) {"
         "        if (held >= 0) store_f32($, sum, VW);"
         "        load_f32(sum, $, VW);"
         "        held = i;"
         "    }"
         "    LANES_DO(k, VW) sum[k] += ahead[m][k];"
         "}",
         table_row(e, table, "held"), table_row(e, table, "i"));
}

// Adds the rows of an index piece, for each group of columns.
static void emit_columns(Emit *e, Scope *column, NodeId n, const Expr *table) {
    Scope *some = scope_open(e, column, NULL);
    emit_ahead(e, some, n);
    emit_sums(e, &some->before, n, table);
    CODE(e, &column->before, NO_NODE,
         "float sum[VW];"
         "int held = -1;"
         "for (int at = 0; at < count; at += PREFETCH) { ~ }"
         "if (held >= 0) store_f32($, sum, VW);",
         scope_close(e, some), table_row(e, table, "held"));
}

void emit_scatter(Emit *e, Stmts *b) {
    NodeId n = group_first(e->g, e->group, SCATTERS);
    Type space = *e->group->iteration_space;
    const Expr *table = pointer_name(e, n);
    emit_tiles(e, b, space, "THREADS_ALONG");
    CODE(e, b, NO_NODE,
         "enum { INDICES_PER_THREAD = HOST_GPU(1, 4), PREFETCH = HOST_GPU(1, "
         "8) };"
         "SHARED int listed[2 * INDICES_PER_THREAD * NT];"
         "const int tx = threadIdx.x % TX, ty = threadIdx.x / TX;"
         "BLOCK_RANGE(lo, hi, ROWS);");
    emit_zeros(e, b, table);
    Scope *kernel = scope_new(e, NULL, IN_KERNEL, NULL);
    Scope *piece = scope_new(e, kernel, IN_LOOP, NULL);
    Scope *column = scope_new(e, piece, IN_LOOP, e->vw);
    emit_list(e, piece, n);
    emit_columns(e, column, n, table);
    stmts_append(b, scope_close(e, kernel));
    CODE(e, b, NO_NODE,
         "for (int from = 0; from < $; from += INDICES_PER_THREAD * NT) {"
         "    ~"
         "    for (int g = tx; g < CG; g += TX) { const int c = g * VW; ~ }"
         "}",
         x_size(e->a, type_count(e->g->node[e->g->node[n].arg[1]].type)),
         scope_close(e, piece), scope_close(e, column));
}
