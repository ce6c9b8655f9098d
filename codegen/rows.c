// Row kernels: reductions over each row, as in softmax.  A gang of threads
// shares a row, each with a vector of lanes at a time; it passes over the row
// once for each reduction that needs the one before, and a last time for what
// is stored.  Gangs exchange what they have through their warp, so those of one
// take their turns together: where there is no row left, a gang takes the last
// row again and stores nothing.

#include "codegen/emit.h"

#include <string.h>

// Of the 512 bytes of registers that a thread has where two blocks are on a
// multiprocessor, those that vectors may take without others being spilled.
enum { MOST_BYTES = 448 };

bool reduces_row(const Emit *e, NodeId n) {
    return (op_info[e->g->node[n].op].facts & REDUCES) && !sums_blocks(e->g, n);
}

static int *find_levels(const Emit *e, int *most) {
    const Group *group = e->group;
    int *level = ARENA_ARRAY(e->a, group->last - group->first + 1, int);
    *most = 0;
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = &e->g->node[n];
        int *own = &level[n - group->first];
        for (int i = 0; i < d->num_args; i++)
            if (group_has(group, d->arg[i]) &&
                level[d->arg[i] - group->first] > *own)
                *own = level[d->arg[i] - group->first];
        *own += reduces_row(e, n);
        *most = *own > *most ? *own : *most;
    }
    return level;
}

static void declare_lanes(Text *t, const char *name, NodeId n,
                          const char *first) {
    node_line(t, n, "float %s#[VW];", name);
    node_line(t, n, "LANES_DO(k, VW) %s#[k] = %s;", name, first);
}

static void declare_row(Emit *e, Text *t, NodeId n) {
    Op op = e->g->node[n].op;
    bool largest = op == OP_max || op == OP_argmax;
    declare_lanes(t, "s", n, largest ? "-INF" : "0.0f");
    if (op == OP_argmax) {
        node_line(t, n, "int at#[VW];");
        node_line(t, n, "LANES_DO(k, VW) at#[k] = lane * VW + k;");
    }
    if (op == OP_var)
        declare_lanes(t, "q", n, "0.0f");
}

static bool has_margin(const Emit *e) {
    return e->columns > space_columns(e->group->space);
}

// x, or behind a row what stands there for nothing.
static const char *in_row(const Emit *e, const char *x, const char *nothing) {
    return has_margin(e) ? arena_format(e->a, "c + k < C ? %s : %s", x, nothing)
                         : x;
}

// Adds x, a lane of the row, to what its thread has of it so far.
static void add_element(Emit *e, Scope *pass, NodeId n, const char *x) {
    Text *t = &pass->lanes;
    Op op = e->g->node[n].op;
    if (has_margin(e)) {
        bool largest = op == OP_max || op == OP_argmax;
        node_line(t, n, "const float x# = %s;",
                  in_row(e, x, largest ? "-INF" : "0.0f"));
        x = arena_format(e->a, "x" NODE, n);
    }
    switch (op) {
    case OP_max:
        node_line(t, n, "s#[k] = larger(s#[k], %s);", x);
        break;
    case OP_argmax:
        node_line(t, n, "const int more# = beats(%s, s#[k]);", x);
        node_line(t, n, "at#[k] = more# ? c + k : at#[k];");
        node_line(t, n, "s#[k] = more# ? %s : s#[k];", x);
        break;
    case OP_var:
        node_line(t, n, "const float d# = %s - pivot#;", x);
        node_line(t, n, "s#[k] += d#;");
        node_line(t, n, "q#[k] += d# * d#;");
        break;
    default:
        node_line(t, n, "s#[k] += %s;", x);
    }
}

// The gang's result, as the value of n from here on.
static void join_row(Emit *e, Scope *row, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Text *t = &row->before;
    const char *name = value_name(e, "v", n);
    switch (d->op) {
    case OP_max:
        node_line(t, n,
                  "const float %s = gang_max(lanes_max(s#, VW), GANG, shared);",
                  name);
        break;
    case OP_argmax:
        node_line(t, n,
                  "const int %s = gang_argmax(lanes_max(s#, VW), "
                  "lanes_argmax(s#, at#, VW), GANG, shared);",
                  name);
        break;
    case OP_var:
        node_line(
            t, n,
            "const float sum# = gang_sum(lanes_sum(s#, VW), GANG, shared);");
        node_line(t, n,
                  "const float squares# = gang_sum(lanes_sum(q#, VW), GANG, "
                  "shared);");
        node_line(t, n, "const float b# = (squares# - sum# * sum# / C) / C;");
        node_line(t, n, "const float %s = b# < 0.0f ? 0.0f : b#;", name);
        break;
    default:
        node_line(t, n,
                  "const float %s = gang_sum(lanes_sum(s#, VW), GANG, shared);",
                  name);
    }
    value_define(e, row, n, place_broadcast(p, *d->type), HELD_ONCE, name);
}

static bool sums_columns(const Emit *e, NodeId n) {
    return sums_blocks(e->g, n) && reduce_extent(e->g, n) == OVER_COLUMN;
}

static bool any_columns(const Emit *e) {
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (sums_columns(e, n))
            return true;
    return false;
}

static Scope *pass_open(Emit *e, Scope *row) {
    return scope_new(e, row, IN_PASS, "VW", row->before.indent + 1);
}

// A pass over the columns up to C, or for what is stored up to `end`, which is
// 0 for a gang without a row.
static void loop_close(Emit *e, Scope *row, const Text *body, const char *end) {
    text_line(&row->before, "for (%s c = lane * VW; c < %s; c += GANG * VW) {",
              column_type(*e->group->space), end);
    text_bytes(&row->before, text_string(body), body->length);
    text_line(&row->before, "}");
}

// The same with a number for each of the thread's columns: loops of known
// length keep what is indexed by it in registers.
static void columns_close(Scope *row, const Text *body, const char *end) {
    text_line(&row->before, "UNROLLED(j, PER) {");
    text_line(&row->before, "    const int c = (lane + j * GANG) * VW;");
    text_line(&row->before, "    if (c >= %s) break;", end);
    text_bytes(&row->before, text_string(body), body->length);
    text_line(&row->before, "}");
}

static void pass_close(Emit *e, Scope *row, Scope *pass, const char *end,
                       bool numbered) {
    Text body = text_new(e->a);
    scope_close(pass, &body);
    if (body.length == 0)
        return;
    if (numbered)
        columns_close(row, &body, end);
    else
        loop_close(e, row, &body, end);
}

// Bytes of the vectors that a thread reads in a pass, as they are in memory.
static int64_t bytes_read(const Emit *e, const Scope *pass) {
    int64_t bytes = 0;
    for (int i = 0; i < e->num_values; i++)
        if (e->value[i].scope == pass && e->value[i].form == HELD_ARRAY &&
            e->g->node[e->value[i].node].op != OP_uniform)
            bytes += vector_bytes(e, e->value[i].node);
    return bytes;
}

// Returns the bytes of the vectors that a thread has at once: what it reads,
// and sums.
static int64_t emit_level(Emit *e, Scope *row, Place p, int which) {
    Scope *pass = pass_open(e, row);
    int64_t bytes = 0;
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (!reduces_row(e, n) || e->level[n - e->group->first] != which)
            continue;
        NodeId arg = e->g->node[n].arg[0];
        if (e->g->node[n].op == OP_var) {
            Place first = p;
            first.whole = false;
            first.lanes = NULL;
            first.index[p.rank - 1] = "0";
            const char *x = value_at(e, row, arg, first);
            node_line(&row->before, n, "const float pivot# = %s;", x);
        }
        declare_row(e, &row->before, n);
        add_element(e, pass, n, value_at(e, pass, arg, p));
        bytes += e->g->node[n].op == OP_var ? 2 * SUM_BYTES : SUM_BYTES;
    }
    keep_write(e, row, pass, p, which);
    bytes += bytes_read(e, pass);
    pass_close(e, row, pass, "C", e->num_kept > 0);
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (reduces_row(e, n) && e->level[n - e->group->first] == which)
            join_row(e, row, n, p);
    return bytes;
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
    if (has_margin(e)) {
        emit_place(e, s, n, p, in_row(e, x, "0"));
        return;
    }
    emit_store(e, s, n, p, x);
    p.lanes = NULL;
    p.index[p.rank - 1] = "c"; // 0 before where rows have one column
    Scope *added = pass_open(e, row);
    emit_store(e, added, n, p, dtype_float(type.dtype) ? "0.0f" : "0");
    text_line(&row->before,
              "for (int c = C + lane; c < end + " SIZE "; c += GANG) {",
              (long long)(p.dim[p.rank - 1] - space_columns(e->group->space)));
    scope_close(added, &row->before);
    text_line(&row->before, "}");
}

// The element of an output, or of what is summed up: that may be the rows of
// the space as a matrix.
static Place output_place(Emit *e, Place p, Type type) {
    Type space = *e->group->space;
    if (type.rank != 2 || p.rank == 2 || type.dim[0] != space_rows(&space) ||
        type.dim[1] != space_columns(&space) ||
        type.dim[0] == space.dim[space.rank - 2])
        return place_broadcast(p, type);
    return (Place){
        .rank = 2,
        .lanes = type.dim[1] == 1 ? NULL : p.lanes,
        .dim = {type.dim[0], type.dim[1]},
        .index = {"i", type.dim[1] == 1 ? "0" : p.index[p.rank - 1]}};
}

// A value for each row is added as the first lane of a vector.
static Place in_lanes(Place p) {
    if (p.lanes == NULL)
        p.lanes = "1";
    return p;
}

// Whether a gang has a row of its own, which `end` does not tell where rows
// have no columns.
static const char *has_row(const Emit *e) {
    return space_columns(e->group->space) > 0 ? "end == C" : "own < hi";
}

// What is stored for each row, by the first of the gang, and for each element.
// Returns the bytes of the vectors that a thread has at once: what it reads and
// stores.
static int64_t emit_outputs(Emit *e, Scope *row, Place p) {
    Scope *pass = pass_open(e, row);
    int64_t bytes = 0;
    Scope *first = scope_new(e, row, IN_WINDOW, "1", row->before.indent + 1);
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        const Node *d = &e->g->node[n];
        bool sum = sums_blocks(e->g, n);
        if (!sum && (!e->stored[n] || d->op == OP_workspace))
            continue;
        NodeId of = sum || pads_columns(e->g, n) ? d->arg[0] : n;
        Place q = output_place(e, p, *e->g->node[of].type);
        Scope *s = has_lanes(e, of) ? pass : first;
        bytes += s == pass && !sum ? vector_bytes(e, n) : 0;
        const char *x = value_at(e, s == pass ? pass : row, of, q);
        if (sums_columns(e, n))
            node_line(&pass->lanes, n, "s#[j * VW + k] += %s;", x);
        else if (sum)
            sums_add(e, s, n, in_lanes(q),
                     s == pass ? in_row(e, x, "0.0f") : x);
        else
            emit_output(e, s, row, n, q, x);
    }
    bytes += bytes_read(e, pass);
    pass_close(e, row, pass, "end", any_columns(e) || e->num_kept > 0);
    Text body = text_new(e->a);
    scope_close(first, &body);
    if (body.length > 0) {
        text_line(&row->before, "if (lane == 0 && %s) {", has_row(e));
        text_bytes(&row->before, text_string(&body), body.length);
        text_line(&row->before, "}");
    }
    return bytes;
}

// Bytes of sums over columns, which a thread has for all of its rows.
static int64_t column_bytes(const Emit *e) {
    int64_t columns = space_columns(e->group->space);
    int64_t gang = columns > 1024 ? BLOCK_THREADS : 32;
    int sums = 0;
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        sums += sums_columns(e, n);
    return sums * SUM_BYTES * ((columns + 8 * gang - 1) / (8 * gang));
}

static void emit_totals_out(Emit *e, Text *t) {
    for (NodeId n = e->group->first; n <= e->group->last; n++) {
        if (sums_columns(e, n))
            node_line(
                t, n,
                "UNROLLED(j, PER) columns_sum(part + (size_t)block * " WIDTH
                " + " SIZE " + j * GANG * VW, &s#[j * VW], VW, "
                "C - j * GANG * VW, shared, GANG, NT);",
                sums_place(e, n));
        else if (sums_blocks(e->g, n))
            sums_total(e, t, n);
    }
}

void emit_rows(Emit *e, Text *t) {
    Type space = *e->group->space;
    int most;
    e->level = find_levels(e, &most);
    e->columns = e->group->columns;
    e->step = has_margin(e) ? e->columns : lanes_step(e, space);
    emit_space(t, space, false,
               arena_format(e->a, ", VW = %s", lanes_text(e, space)));
    text_line(t, "enum { NT = THREADS(256), GANG = GANG_OF(%s, VW, NT) };",
              has_margin(e) ? arena_format(e->a, "%lld", (long long)e->columns)
                            : "C");
    if (e->group->workspace != NO_NODE)
        text_line(t, "enum { " DEFINED("WIDTH") " };",
                  (long long)e->g->node[e->group->workspace].type->dim[1]);
    keep_find(e, most);
    if (any_columns(e) || e->num_kept > 0)
        text_line(t, "enum { PER = ((C + VW - 1) / VW + GANG - 1) / GANG };");
    text_line(t, "SHARED float shared[%sNT];",
              any_columns(e) ? "AT_ONCE * " : "");
    text_line(t, "const int lane = threadIdx.x %% GANG;");
    emit_chunk(t, space);
    Scope *kernel = scope_new(e, NULL, IN_KERNEL, NULL, t->indent);
    Scope *row = scope_new(e, kernel, IN_ROW, NULL, t->indent + 1);
    sums_declare(e, kernel, true, "VW");
    // No array is empty, and rows may have no columns.
    sums_declare(e, kernel, false,
                 space_columns(&space) > 0 ? "PER * VW" : "1");
    Place p = space_place(space, "c", "VW");
    int64_t bytes = 0;
    for (int i = 1; i <= most; i++) {
        int64_t level = emit_level(e, row, p, i);
        bytes = level > bytes ? level : bytes;
    }
    int64_t stored = emit_outputs(e, row, p);
    bytes = (stored > bytes ? stored : bytes) + column_bytes(e) +
            e->num_kept * SUM_BYTES;
    e->resident = bytes <= MOST_BYTES ? 2 : 1;
    Text rows = text_new(e->a);
    rows.indent = t->indent + 1;
    scope_close(row, &rows);
    scope_close(kernel, t);
    const char *type = row_type(space);
    text_line(t, "for (%s first = lo; first < hi; first += NT / GANG) {", type);
    t->indent++;
    text_line(t, "const %s own = first + threadIdx.x / GANG;", type);
    text_line(t, "const %s i = own < hi ? own : hi - 1;", type);
    text_line(t, "const int end = own < hi ? C : 0;");
    emit_row_indices(t, space, text_string(&rows));
    t->indent--;
    text_bytes(t, text_string(&rows), rows.length);
    text_line(t, "}");
    emit_totals_out(e, t);
    sums_finish(e, t);
}
