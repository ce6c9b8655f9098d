// Scatter kernels: rows of a matrix are added, by an index, to rows of a table.
//
// A block owns a run of the table's rows, and each of its threads some of those
// and a vector of columns.  Every thread walks over the whole index and adds
// what is meant for its rows, so that a sum is in the order of the index
// whatever the grid, and nothing is added by two.

#include "codegen/emit.h"

static void write_zeros(Text *t, const char *table) {
    text_line(t, "float zero[VW];");
    text_line(t, "LANES_DO(k, VW) zero[k] = 0.0f;");
    text_line(t, "for (int i = lo + ty; i < hi; i += TY)");
    text_line(t, "    store_f32(%s + (size_t)i * " COLUMNS " + c, zero, VW);",
              table);
}

// Adds row j of dy to the row of the table that element j of the index names.
static void write_sum(Emit *e, Scope *row, NodeId n, const char *table) {
    const Node *d = &e->g->node[n];
    Type index = *e->g->node[d->arg[1]].type;
    Place at = {.rank = 1, .dim = {index.dim[0]}, .index = {"j"}};
    const char *to = value_at(e, row, d->arg[1], at);
    Text *t = &row->before;
    text_line(t, "const int i = clamp(%s, " ROWS ");", to);
    text_line(t, "if (i < lo || i >= hi || (i - lo) %% TY != ty) continue;");
    text_line(t, "float sum[VW];");
    text_line(t, "load_f32(sum, %s + (size_t)i * " COLUMNS " + c, VW);", table);
    at = (Place){.rank = 2,
                 .dim = {index.dim[0], d->type->dim[1]},
                 .index = {"j", "c"},
                 .lanes = "VW"};
    const char *x = value_at(e, row, d->arg[0], at);
    text_line(&row->lanes, "sum[k] += %s;", x);
    text_line(&row->after,
              "store_f32(%s + (size_t)i * " COLUMNS " + c, sum, VW);", table);
}

void emit_scatter(Emit *e, Text *t) {
    NodeId n = group_first(e->g, e->group, SCATTERS);
    Type space = *e->group->space;
    const char *table = pointer_name(e, n);
    e->step = lanes_step(e, space);
    emit_tiles(e, t, space);
    text_line(t, "const int tx = threadIdx.x %% TX, ty = threadIdx.x / TX;");
    text_line(t, "CHUNK(lo, hi, " ROWS ");");
    Scope *kernel = scope_new(e, NULL, IN_KERNEL, NULL, t->indent);
    Scope *column = scope_new(e, kernel, IN_COLUMN, "VW", t->indent + 1);
    Scope *row = scope_new(e, column, IN_ROW, "VW", t->indent + 2);
    write_sum(e, row, n, table);
    write_zeros(&column->before, table);
    scope_close(kernel, t);
    text_line(t, "for (int g = tx; g < " GROUPS "; g += TX) {");
    text_line(t, "    const int c = g * VW;");
    scope_close(column, t);
    text_line(t, "    for (int j = 0; j < " SIZE "; j++) {",
              (long long)type_count(e->g->node[e->g->node[n].arg[1]].type));
    scope_close(row, t);
    text_line(t, "    }");
    text_line(t, "}");
}
