// Scatter kernels: rows of a matrix are added, by an index, to rows of a table.
//
// A block owns a run of the table's rows, and each of its threads some of those
// and a vector of columns.  A block looks at the whole index, a piece at a time
// and all threads side by side, and notes in its order what names its rows.  Of
// that every thread has some rows on their way before it adds the first, those
// that are meant for its own.  So a sum is in the order of the index whatever
// the grid, and nothing is added by two.

#include "codegen/emit.h"

static const char *table_row(Emit *e, const char *table, const char *row) {
    return arena_format(e->a, "%s + (size_t)%s * " COLUMNS " + c", table, row);
}

static void write_zeros(Emit *e, Text *t, const char *table) {
    text_line(t, "for (int g = tx; g < " GROUPS "; g += TX) {");
    text_line(t, "    const int c = g * VW;");
    text_line(t, "    float zero[VW];");
    text_line(t, "    LANES_DO(k, VW) zero[k] = 0.0f;");
    text_line(t, "    for (int i = lo + ty; i < hi; i += TY)");
    text_line(t, "        store_f32(%s, zero, VW);", table_row(e, table, "i"));
    text_line(t, "}");
}

// Notes which rows of the block a piece of the index names.
static void write_notes(Emit *e, Scope *piece, NodeId n) {
    const Node *d = &e->g->node[n];
    long long size = (long long)type_count(e->g->node[d->arg[1]].type);
    Place p = {.rank = 1, .dim = {size}, .index = {"j"}};
    Text *t = &piece->before;
    text_line(t, "int named[PER];");
    Scope *own = block_open(e, piece, NULL, 1);
    text_line(&own->before, "UNROLLED(m, PER) {");
    own->before.indent++;
    text_line(&own->before, "const int at = from + threadIdx.x * PER + m;");
    text_line(&own->before, "const int j = at < " SIZE " ? at : " SIZE " - 1;",
              size, size);
    const char *to = value_at(e, own, d->arg[1], p);
    text_line(&own->before,
              "named[m] = at < " SIZE " ? clamp(%s, " ROWS ") : -1;", size, to);
    scope_close(own, t);
    text_line(t, "}");
    text_line(t, "const int count = note_rows(noted, named, PER, from, lo, hi, "
                 "NT);");
}

// Reads what is to be added to the rows that are noted.
static void write_ahead(Emit *e, Scope *some, NodeId n) {
    const Node *d = &e->g->node[n];
    Place p = {.rank = 2,
               .dim = {type_count(e->g->node[d->arg[1]].type), d->type->dim[1]},
               .index = {"j", "c"},
               .lanes = "VW"};
    Text *t = &some->before;
    text_line(t, "float ahead[AHEAD][VW];");
    Scope *row = block_open(e, some, "VW", 1);
    text_line(&row->before, "UNROLLED(m, AHEAD) {");
    row->before.indent++;
    text_line(&row->before, "if (at + m >= count) break;");
    text_line(&row->before, "const int j = noted[2 * (at + m)];");
    text_line(&row->lanes, "ahead[m][k] = %s;", value_at(e, row, d->arg[0], p));
    scope_close(row, t);
    text_line(t, "}");
}

// Adds it, each thread to its own rows.  The sum of the row that came last is
// kept: as long as the next is for the same one, nothing is waited for.
static void write_sums(Emit *e, Text *t, const char *table) {
    text_line(t, "UNROLLED(m, AHEAD) {");
    t->indent++;
    text_line(t, "if (at + m >= count) continue;");
    text_line(t, "const int i = noted[2 * (at + m) + 1];");
    text_line(t, "if ((i - lo) %% TY != ty) continue;");
    text_line(t, "if (i != held) {");
    text_line(t, "    if (held >= 0) store_f32(%s, sum, VW);",
              table_row(e, table, "held"));
    text_line(t, "    load_f32(sum, %s, VW);", table_row(e, table, "i"));
    text_line(t, "    held = i;");
    text_line(t, "}");
    text_line(t, "LANES_DO(k, VW) sum[k] += ahead[m][k];");
    t->indent--;
    text_line(t, "}");
}

// What is noted of a piece of the index, for each group of columns.
static void write_columns(Emit *e, Scope *column, NodeId n, const char *table) {
    Scope *some = block_open(e, column, NULL, 1);
    text_line(&some->before, "float sum[VW];");
    text_line(&some->before, "int held = -1;");
    text_line(&some->before, "for (int at = 0; at < count; at += AHEAD) {");
    some->before.indent++;
    write_ahead(e, some, n);
    write_sums(e, &some->before, table);
    some->before.indent--;
    text_line(&some->before, "}");
    text_line(&some->before, "if (held >= 0) store_f32(%s, sum, VW);",
              table_row(e, table, "held"));
    scope_close(some, &column->before);
}

void emit_scatter(Emit *e, Text *t) {
    NodeId n = group_first(e->g, e->group, SCATTERS);
    Type space = *e->group->space;
    const char *table = pointer_name(e, n);
    e->step = lanes_step(e, space);
    emit_tiles(e, t, space);
    text_line(t, "enum { PER = AT(1, 4), AHEAD = AT(1, 8) };");
    text_line(t, "SHARED int noted[2 * PER * NT];");
    text_line(t, "const int tx = threadIdx.x %% TX, ty = threadIdx.x / TX;");
    text_line(t, "CHUNK(lo, hi, " ROWS ");");
    write_zeros(e, t, table);
    Scope *kernel = scope_new(e, NULL, IN_KERNEL, NULL, t->indent);
    Scope *piece = scope_new(e, kernel, IN_ROW, NULL, t->indent + 1);
    Scope *column = scope_new(e, piece, IN_COLUMN, "VW", t->indent + 2);
    write_notes(e, piece, n);
    write_columns(e, column, n, table);
    scope_close(kernel, t);
    text_line(t, "for (int from = 0; from < " SIZE "; from += PER * NT) {",
              (long long)type_count(e->g->node[e->g->node[n].arg[1]].type));
    scope_close(piece, t);
    text_line(t, "    for (int g = tx; g < " GROUPS "; g += TX) {");
    text_line(t, "        const int c = g * VW;");
    scope_close(column, t);
    text_line(t, "    }");
    text_line(t, "}");
}
