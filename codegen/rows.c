// Row kernels: reductions over each row, as in softmax.  A gang of threads
// shares a row; it passes over the row once for each reduction that needs the
// one before, and a last time for what is stored.

#include "codegen/emit.h"

#include <string.h>

static bool reduces_row(const Emit *e, NodeId n) {
    return (op_info[e->g->node[n].op].facts & REDUCES) && !sums_blocks(e, n);
}

static int *find_levels(const Emit *e, int *most) {
    const Group *group = e->group;
    int *level = ARENA_ARRAY(e->a, group->last - group->first + 1, int);
    *most = 0;
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = &e->g->node[n];
        int *own = &level[n - group->first];
        for (int i = 0; i < d->num_args; i++)
            if (d->arg[i] >= group->first && d->arg[i] <= group->last &&
                level[d->arg[i] - group->first] > *own)
                *own = level[d->arg[i] - group->first];
        *own += reduces_row(e, n);
        *most = *own > *most ? *own : *most;
    }
    return level;
}

static void declare_row(Emit *e, Text *t, NodeId n) {
    switch (e->g->node[n].op) {
    case OP_max:
        text_line(t, "float s%u = -INF;", n);
        break;
    case OP_argmax:
        text_line(t, "float s%u = -INF;", n);
        text_line(t, "int at%u = lane;", n);
        break;
    case OP_var:
        text_line(t, "float s%u = 0.0f, q%u = 0.0f;", n, n);
        break;
    default:
        text_line(t, "float s%u = 0.0f;", n);
    }
}

static void add_element(Emit *e, Scope *pass, NodeId n, const char *x) {
    Text *t = &pass->before;
    switch (e->g->node[n].op) {
    case OP_max:
        text_line(t, "s%u = (%s > s%u) | (%s != %s) ? %s : s%u;", n, x, n, x, x,
                  x, n);
        break;
    case OP_argmax:
        text_line(t, "at%u = %s > s%u ? c : at%u;", n, x, n, n);
        text_line(t, "s%u = %s > s%u ? %s : s%u;", n, x, n, x, n);
        break;
    case OP_var:
        text_line(t, "const float d%u = %s - pivot%u;", n, x, n);
        text_line(t, "s%u += d%u;", n, n);
        text_line(t, "q%u += d%u * d%u;", n, n, n);
        break;
    default:
        text_line(t, "s%u += %s;", n, x);
    }
}

// The gang's result, as the value of n from here on.
static void join_row(Emit *e, Scope *row, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Text *t = &row->before;
    const char *name = value_name(e, "v", n);
    switch (d->op) {
    case OP_max:
        text_line(t, "const float %s = gang_max(s%u, GANG, shared);", name, n);
        break;
    case OP_argmax:
        text_line(t, "const int %s = gang_argmax(s%u, at%u, GANG, shared);",
                  name, n, n);
        break;
    case OP_var:
        text_line(t, "s%u = gang_sum(s%u, GANG, shared);", n, n);
        text_line(t, "q%u = gang_sum(q%u, GANG, shared);", n, n);
        text_line(t, "const float b%u = (q%u - s%u * s%u / C) / C;", n, n, n,
                  n);
        text_line(t, "const float %s = b%u < 0.0f ? 0.0f : b%u;", name, n, n);
        break;
    default:
        text_line(t, "const float %s = gang_sum(s%u, GANG, shared);", name, n);
    }
    value_define(e, row, n, place_broadcast(e, p, *d->type), HELD_ONCE, name);
}

static bool sums_columns(const Emit *e, NodeId n) {
    return sums_blocks(e, n) && reduce_extent(e->g, n) == OVER_COLUMN;
}

static bool any_columns(const Emit *e) {
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (sums_columns(e, n))
            return true;
    return false;
}

static Scope *pass_open(Emit *e, Scope *row) {
    return scope_new(e, row, IN_PASS, NULL, row->before.indent + 1);
}

static void pass_close(Emit *e, Scope *row, Scope *pass) {
    Text body = text_new(e->a);
    scope_close(e, pass, &body);
    if (body.length == 0)
        return;
    text_line(&row->before, "for (int c = lane; c < C; c += GANG) {");
    text_bytes(&row->before, text_string(&body), body.length);
    text_line(&row->before, "}");
}

// As pass_close, with a number for each of the thread's columns: loops of known
// length keep what is indexed by it in registers.
static void columns_close(Emit *e, Scope *row, Scope *pass) {
    text_line(&row->before, "UNROLLED(j, PER) {");
    text_line(&row->before, "    const int c = lane + j * GANG;");
    text_line(&row->before, "    if (c >= C) break;");
    scope_close(e, pass, &row->before);
    text_line(&row->before, "}");
}

static void emit_level(Emit *e, Scope *row, Place p, int which) {
    Scope *pass = pass_open(e, row);
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (!reduces_row(e, n) || e->level[n - e->group->first] != which)
            continue;
        NodeId arg = e->g->node[n].arg[0];
        if (e->g->node[n].op == OP_var) {
            Place first = p;
            first.whole = false;
            first.index[p.rank - 1] = "0";
            const char *x = value_at(e, row, arg, first);
            text_line(&row->before, "const float pivot%u = %s;", n, x);
        }
        declare_row(e, &row->before, n);
        add_element(e, pass, n, value_at(e, pass, arg, p));
    }
    pass_close(e, row, pass);
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (reduces_row(e, n) && e->level[n - e->group->first] == which)
            join_row(e, row, n, p);
}

static bool has_lanes(const Emit *e, NodeId n) {
    Type t = *e->g->node[n].type;
    return t.rank > 0 && t.dim[t.rank - 1] != 1;
}

// Stores x, the value of n at p or of what n pads, in the statements of s, and
// zeros in the columns that are added.
static void emit_output(Emit *e, Scope *s, Scope *row, NodeId n, Place p,
                        const char *x) {
    Type type = *e->g->node[n].type;
    if (!pads_columns(e->g, n)) {
        emit_store(e, s, n, p, x);
        return;
    }
    p.whole = false;
    p.dim[p.rank - 1] = type.dim[p.rank - 1];
    emit_store(e, s, n, p, x);
    p.index[p.rank - 1] = "c";
    Scope *added = pass_open(e, row);
    emit_store(e, added, n, p, dtype_float(type.dtype) ? "0.0f" : "0");
    text_line(&row->before, "for (int c = C + lane; c < %lld; c += GANG) {",
              (long long)p.dim[p.rank - 1]);
    scope_close(e, added, &row->before);
    text_line(&row->before, "}");
}

// The element of an output, or of what is summed up: that may be the rows of
// the space as a matrix.
static Place output_place(Emit *e, Place p, Type type) {
    Type space = *e->group->space;
    if (type.rank != 2 || p.rank == 2 || type.dim[0] != space_rows(&space) ||
        type.dim[1] != space_columns(&space) ||
        type.dim[0] == space.dim[space.rank - 2])
        return place_broadcast(e, p, type);
    return (Place){
        .rank = 2,
        .dim = {type.dim[0], type.dim[1]},
        .index = {"i", type.dim[1] == 1 ? "0" : p.index[p.rank - 1]}};
}

// What is stored for each row, by the first of the gang, and for each element.
static void emit_outputs(Emit *e, Scope *row, Place p) {
    Scope *pass = pass_open(e, row);
    Scope *first = scope_new(e, row, IN_WINDOW, NULL, row->before.indent + 1);
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        bool sum = sums_blocks(e, n);
        if (!sum && (!e->stored[n] || d->op == OP_scratch))
            continue;
        NodeId of = sum || pads_columns(e->g, n) ? d->arg[0] : n;
        Place q = output_place(e, p, *e->g->node[of].type);
        Scope *s = has_lanes(e, of) ? pass : first;
        const char *x = value_at(e, s == pass ? pass : row, of, q);
        if (sums_columns(e, n))
            text_line(&pass->before, "s%u[j] += %s;", n, x);
        else if (sum)
            sums_add(e, s, n, q, x);
        else
            emit_output(e, s, row, n, q, x);
    }
    if (any_columns(e))
        columns_close(e, row, pass);
    else
        pass_close(e, row, pass);
    Text body = text_new(e->a);
    scope_close(e, first, &body);
    if (body.length > 0) {
        text_line(&row->before, "if (lane == 0) {");
        text_bytes(&row->before, text_string(&body), body.length);
        text_line(&row->before, "}");
    }
}

static void emit_totals_out(Emit *e, Text *t) {
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (sums_columns(e, n))
            text_line(
                t,
                "UNROLLED(j, PER) columns_sum(part + (size_t)block * WIDTH "
                "+ %lld + lane + j * GANG, &s%u[j], 1, lane + j * GANG "
                "< C, shared, GANG, NT);",
                (long long)scratch_place(e, n), n);
        else if (sums_blocks(e, n))
            text_line(t,
                      "total_%s(part + (size_t)block * WIDTH + %lld, "
                      "&s%u, 1, shared, NT);",
                      e->g->node[n].op == OP_max ? "max" : "sum",
                      (long long)scratch_place(e, n), n);
    }
}

void emit_rows(Emit *e, Text *t) {
    Type space = *e->group->space;
    int most;
    e->level = find_levels(e, &most);
    emit_space(t, space, "");
    text_line(t, "enum { NT = THREADS(256), GANG = GANG_OF(C, NT) };");
    if (e->group->scratch != NO_NODE)
        text_line(t, "enum { WIDTH = %lld };",
                  (long long)e->g->node[e->group->scratch].type->dim[1]);
    if (any_columns(e))
        text_line(t, "enum { PER = (C + GANG - 1) / GANG };");
    text_line(t, "SHARED float shared[NT];");
    text_line(t, "const int lane = threadIdx.x %% GANG;");
    emit_chunk(t, space);
    Scope *kernel = scope_new(e, NULL, IN_KERNEL, NULL, t->indent);
    Scope *row = scope_new(e, kernel, IN_ROW, NULL, t->indent + 1);
    sums_declare(e, kernel, true, NULL);
    sums_declare(e, kernel, false, "PER");
    Place p = space_place(e, space, "c", NULL);
    for (int i = 1; i <= most; i++)
        emit_level(e, row, p, i);
    emit_outputs(e, row, p);
    Text rows = text_new(e->a);
    rows.indent = t->indent + 1;
    scope_close(e, row, &rows);
    scope_close(e, kernel, t);
    text_line(t,
              "for (%s i = lo + threadIdx.x / GANG; i < hi; i += NT / GANG) {",
              row_type(space));
    t->indent++;
    emit_row_indices(e, t, space, text_string(&rows));
    t->indent--;
    text_bytes(t, text_string(&rows), rows.length);
    text_line(t, "}");
    emit_totals_out(e, t);
    sums_finish(e, t);
}
