// Values: the text that computes a node at a place, asked for from its users.
//
// A value is computed in the outermost scope in which it stays the same: once
// in the kernel for a scalar, once for each group of columns where it has
// columns only, else for each row.  Within a scope it is computed once.

#include "codegen/emit.h"

#include <string.h>

void emit_init(Emit *e, const Graph *g, const Graph *device, Arena *a,
               const Group *group, const bool *stored, int *names) {
    *e = (Emit){.g = g,
                .device = device,
                .a = a,
                .group = group,
                .stored = stored,
                .tables = text_new(a),
                .names = names,
                .member = NO_NODE,
                .place = workspace_offsets(g, group, a)};
}

Scope *scope_new(Emit *e, Scope *outer, int kind, const char *width,
                 int indent) {
    Scope *s = ARENA_NEW(e->a, Scope);
    s->outer = outer;
    s->kind = kind;
    s->width = width;
    s->before = s->lanes = s->after = text_new(e->a);
    s->before.indent = s->after.indent = indent;
    s->lanes.indent = indent + 1;
    return s;
}

void scope_close(Scope *s, Text *t) {
    text_bytes(t, text_string(&s->before), s->before.length);
    if (s->lanes.length > 0) {
        int indent = t->indent;
        t->indent = s->before.indent;
        text_line(t, "LANES_DO(k, %s) {", s->width);
        text_bytes(t, text_string(&s->lanes), s->lanes.length);
        text_line(t, "}");
        t->indent = indent;
    }
    text_bytes(t, text_string(&s->after), s->after.length);
}

// ---- names ----

static int local_number(Emit *e, NodeId n) {
    if (e->local[n] > 0)
        return e->local[n];
    ARENA_APPEND(e->a, e->local_node, e->num_local, n);
    return e->local[n] = e->num_local;
}

// Whether n is a scalar that is computed from the tensors of this member.
static bool is_owned(const Emit *e, NodeId n) {
    return e->member != NO_NODE && group_has(e->group, n) &&
           e->owner[n - e->group->first] == e->member;
}

void names_clear(Emit *e) {
    for (int i = 0; i < e->num_named; i++)
        e->names[e->named[i]] = 0;
    e->num_named = 0;
}

const char *value_name(Emit *e, const char *prefix, NodeId n) {
    bool local = e->local != NULL &&
                 (type_count(e->g->node[n].type) > 1 || is_owned(e, n));
    const char *name =
        local ? arena_format(e->a, "%s_%d", prefix, local_number(e, n))
              : arena_format(e->a, "%s" NODE, prefix, n);
    int taken = e->names[n]++;
    if (taken > 0)
        return arena_format(e->a, "%s_%d", name, taken);
    ARENA_APPEND(e->a, e->named, e->num_named, n);
    return name;
}

const char *pointer_name(Emit *e, NodeId n) {
    NodeId base = node_base(e->g, n);
    if (e->local == NULL || type_count(e->g->node[base].type) == 1)
        return arena_format(e->a, "p" NODE, base);
    return arena_format(e->a, "p_%d", local_number(e, base));
}

// ---- what was computed ----

bool scope_within(const Scope *s, const Scope *outer) {
    for (; s != NULL; s = s->outer)
        if (s == outer)
            return true;
    return false;
}

static const Value *value_find(const Emit *e, const Scope *s, NodeId n,
                               const char *place) {
    for (int i = e->num_values; i-- > 0;) {
        const Value *v = &e->value[i];
        if (v->node == n && strcmp(v->place, place) == 0 &&
            (v->form == HELD_LANE ? v->scope == s : scope_within(s, v->scope)))
            return v;
    }
    return NULL;
}

void value_define(Emit *e, Scope *s, NodeId n, Place p, HeldAs form,
                  const char *name) {
    ARENA_APPEND(e->a, e->value, e->num_values,
                 (Value){n, place_key(e, p), s, form, name});
}

static const char *value_text(const Emit *e, const Value *v) {
    return v->form == HELD_ARRAY ? arena_format(e->a, "%s[k]", v->name)
                                 : v->name;
}

// ---- where to compute ----

bool is_uniform(Type t, Place p) {
    if (p.flat)
        return p.rank == 0 || p.lanes == NULL;
    return p.lanes == NULL || t.rank == 0 || t.dim[t.rank - 1] == 1;
}

static Scope *enclosing(Scope *s, int kind) {
    while (s != NULL && (int)s->kind != kind)
        s = s->outer;
    return s;
}

// Whether n is computed from a reduction over a row, and so for each row even
// if there is one row.
static bool follows_row(const Emit *e, NodeId n) {
    return e->level != NULL && group_has(e->group, n) &&
           e->level[n - e->group->first] > 0;
}

// Whether an element at p is the same for the whole row: its indices are
// declared outside of the pass over the row.
static bool same_for_row(const Emit *e, const Scope *pass, Place p) {
    for (int i = 0; i < p.rank; i++) {
        if (strcmp(p.index[i], "c") == 0)
            return false;
        for (int j = 0; j < e->num_declared; j++)
            if (strcmp(p.index[i], e->index[j].name) == 0 &&
                !scope_within(pass->outer, e->index[j].scope))
                return false;
    }
    return true;
}

// The outermost scope in which node n at p stays the same.
static Scope *home(const Emit *e, Scope *s, NodeId n, Place p) {
    Type t = *e->g->node[n].type;
    Scope *kernel = enclosing(s, IN_KERNEL), *column = enclosing(s, IN_COLUMN);
    if (type_count(&t) == 1 && is_owned(e, n))
        return enclosing(s, IN_MEMBER);
    if (type_count(&t) == 1 && !has_rows(p) && !follows_row(e, n))
        return kernel;
    if (p.flat)
        return s;
    if (column != NULL && !has_rows(p) && p.lanes != NULL &&
        strcmp(p.lanes, "VW") == 0 && strcmp(p.index[p.rank - 1], "c") == 0)
        return column;
    if (s->kind == IN_PASS && is_uniform(t, p) && same_for_row(e, s, p))
        return s->outer;
    return s;
}

// ---- one node ----

const char *array_new(Emit *e, Scope *s, NodeId n, Place p) {
    const char *name = value_name(e, "v", n);
    text_line(&s->before, "%s %s[%s];", held_type(e->g->node[n].type->dtype),
              name, p.lanes);
    return name;
}

static const char *load(Emit *e, Scope *s, NodeId n, Place p) {
    DType d = e->g->node[n].type->dtype;
    const char *pointer = pointer_name(e, n), *offset = place_offset(e, p);
    if (is_uniform(*e->g->node[n].type, p)) {
        const char *name = value_name(e, "v", n);
        text_line(&s->before, "const %s %s = get_%s(%s + %s);", held_type(d),
                  name, access_suffix(d), pointer, offset);
        value_define(e, s, n, p, HELD_ONCE, name);
        return name;
    }
    const char *name = array_new(e, s, n, p);
    text_line(&s->before, "load_%s(%s, %s + %s, %s);", access_suffix(d), name,
              pointer, offset, p.lanes);
    value_define(e, s, n, p, HELD_ARRAY, name);
    return arena_format(e->a, "%s[k]", name);
}

// A mark is replaced when the case of the member is written: members that
// differ only in such numbers share their text.
const char *number_text(Emit *e, const char *text) {
    if (e->local == NULL)
        return text;
    ARENA_APPEND(e->a, e->constant, e->num_constants, text);
    return arena_format(e->a, MEMBER_NUMBER, e->num_constants - 1);
}

const char *scale_text(Emit *e, double value) {
    return arena_format(e->a, SCALE, literal(e->a, F32, value));
}

// A constant that is the same everywhere.
static const char *constant_text(Emit *e, NodeId n) {
    DType d = e->g->node[n].type->dtype;
    double value = node_attr(&e->g->node[n], ATTR_values)->floats[0];
    if (e->local != NULL)
        return literal(e->a, d, value);
    return dtype_float(d) ? scale_text(e, value)
                          : arena_format(e->a, SIZE, (long long)value);
}

static bool has_table(const Emit *e, NodeId n) {
    for (int i = 0; i < e->num_tabled; i++)
        if (e->tabled[i] == n)
            return true;
    return false;
}

// The table of a constant that is not the same everywhere.  A module has 64 KiB
// of constant memory, and it may be that of all kernels, so that each has
// little there; vectors are read from where their own size divides the address.
static const char *table_of(Emit *e, NodeId n) {
    enum { MOST_CONSTANT = 64, VECTOR = 4 };
    const Node *d = &e->g->node[n];
    const Attr *values = node_attr(d, ATTR_values);
    const char *table = arena_format(e->a, OWN_NAME "_table" NODE, n);
    if (has_table(e, n))
        return table;
    ARENA_APPEND(e->a, e->tabled, e->num_tabled, n);
    bool fits = values->count <= MOST_CONSTANT - e->tabled_numbers;
    e->tabled_numbers += fits ? values->count : 0;
    text_add(&e->tables, "%s %s %s[%d]%s = {", fits ? "TABLE" : "LARGE_TABLE",
             held_type(d->type->dtype), table, values->count,
             values->count % VECTOR == 0 ? " __attribute__((aligned(16)))"
                                         : "");
    for (int i = 0; i < values->count; i++)
        text_add(&e->tables, "%s%s", i ? ", " : "",
                 literal(e->a, d->type->dtype, values->floats[i]));
    text_add(&e->tables, "};\n");
    return table;
}

static const char *constant(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    if (node_attr(d, ATTR_values)->count == 1)
        return constant_text(e, n);
    const char *table = table_of(e, n);
    const char *offset = place_offset(e, p);
    if (is_uniform(*d->type, p))
        return arena_format(e->a, "%s[%s]", table, offset);
    const char *name = array_new(e, s, n, p);
    text_line(&s->before, "load_%s(%s, %s + %s, %s);",
              dtype_float(d->type->dtype) ? "f32" : "i32", name, table, offset,
              p.lanes);
    value_define(e, s, n, p, HELD_ARRAY, name);
    return arena_format(e->a, "%s[k]", name);
}

static const char *iota(Emit *e, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    int axis = (int)node_int(d, ATTR_axis, 0);
    long long from = (long long)node_int(d, ATTR_from, 0);
    const char *index;
    bool lanes = p.lanes != NULL;
    if (p.flat && p.rank == 0) { // of one element
        index = "0";
    } else if (p.flat) {
        int64_t stride = 1;
        for (int i = axis + 1; i < d->type->rank; i++)
            stride *= d->type->dim[i];
        index = lanes ? arena_format(e->a, "%s + k", p.index[0]) : p.index[0];
        if (d->type->rank > 1)
            index =
                arena_format(e->a, "%s / %lld %% %lld", index_operand(e, index),
                             (long long)stride, (long long)d->type->dim[axis]);
    } else {
        index = p.index[axis];
        if (lanes && axis == d->type->rank - 1)
            index = arena_format(e->a, "%s + k", index);
    }
    return from ? arena_format(e->a, "(%s + " SIZE ")", index, from)
                : index_operand(e, index);
}

int64_t vector_bytes(const Emit *e, NodeId n) {
    Type one = type_scalar(e->device->node[n].type->dtype);
    return 8 * graph_bytes(e->device, &one);
}

const char *value_set(Emit *e, Scope *s, NodeId n, Place p, const char *expr) {
    const char *type = held_type(e->g->node[n].type->dtype);
    if (is_uniform(*e->g->node[n].type, p)) {
        const char *name = value_name(e, "v", n);
        text_line(&s->before, "const %s %s = %s;", type, name, expr);
        value_define(e, s, n, p, HELD_ONCE, name);
        return name;
    }
    if (s->kind == IN_COLUMN) {
        const char *name = array_new(e, s, n, p);
        text_line(&s->before, "LANES_DO(k, %s) %s[k] = %s;", p.lanes, name,
                  expr);
        value_define(e, s, n, p, HELD_ARRAY, name);
        return arena_format(e->a, "%s[k]", name);
    }
    const char *name = value_name(e, "v", n);
    text_line(&s->lanes, "const %s %s = %s;", type, name, expr);
    value_define(e, s, n, p, HELD_LANE, name);
    return name;
}

static const char *pointwise(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    const char *operand[4] = {NULL};
    for (int i = 0; i < d->num_args; i++) {
        Type t = *e->g->node[d->arg[i]].type;
        operand[i] = value_at(e, s, d->arg[i], place_broadcast(p, t));
    }
    if (d->op == OP_variance && e->local != NULL) {
        const char *which = number_text(
            e,
            arena_format(e->a, "%lld", (long long)node_int(d, ATTR_number, 0)));
        return value_set(e, s, n, p,
                         arena_format(e->a, "variance_of(%s, %s, %s, %s)",
                                      operand[0], operand[1], operand[2],
                                      which));
    }
    return value_set(e, s, n, p, expr_text(e, n, operand));
}

Scope *block_open(Emit *e, Scope *s, const char *lanes, int depth) {
    Scope *inner = scope_new(e, s, IN_WINDOW, lanes, s->before.indent + depth);
    inner->before.indent = s->before.indent;
    return inner;
}

// A pad of the lanes' own axis: fewer lanes are computed in a block of their
// own and the rest are zero.
static const char *widen(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Type from = *e->g->node[d->arg[0]].type;
    const char *name = array_new(e, s, n, p);
    text_line(&s->before, "LANES_DO(k, %s) %s[k] = 0;", p.lanes, name);
    Scope *inner = block_open(
        e, s, arena_format(e->a, "%lld", (long long)from.dim[from.rank - 1]),
        1);
    text_line(&inner->before, "{");
    inner->before.indent++;
    const char *inside;
    Place q = p;
    q.lanes = inner->width;
    q.dim[p.rank - 1] = from.dim[from.rank - 1];
    q.index[p.rank - 1] = "0";
    q = place_moved(e, inner, n, q, &inside);
    const char *value = value_at(e, inner, d->arg[0], q);
    if (inside != NULL)
        value = arena_format(e->a, "%s ? %s : 0", inside, value);
    text_line(&inner->lanes, "%s[k] = %s;", name, value);
    scope_close(inner, &s->before);
    text_line(&s->before, "}");
    value_define(e, s, n, p, HELD_ARRAY, name);
    return arena_format(e->a, "%s[k]", name);
}

// Several elements lie in a byte, so that the place is counted in elements.
static const char *unpacked(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    const char *pointer = pointer_name(e, d->arg[0]);
    const char *offset = place_offset(e, p);
    long long bits = (long long)node_int(d, ATTR_bits, 0);
    if (p.lanes == NULL)
        return value_set(e, s, n, p,
                         arena_format(e->a, "get_bits(%s, %s, %lld)", pointer,
                                      offset, bits));
    const char *name = array_new(e, s, n, p);
    text_line(&s->before, "load_bits(%s, %s, %s, %s, %lld);", name, pointer,
              offset, p.lanes, bits);
    value_define(e, s, n, p, HELD_ARRAY, name);
    return arena_format(e->a, "%s[k]", name);
}

static bool pads_lanes(const Emit *e, NodeId n, Place p) {
    return p.lanes != NULL && e->step == space_columns(e->group->space) &&
           pad_widens(e, &e->g->node[n]);
}

static const char *moved(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    if (pads_lanes(e, n, p))
        return widen(e, s, n, p);
    const char *inside;
    Place q = place_moved(e, s, n, p, &inside);
    const char *value = value_at(e, s, d->arg[0], q);
    if (inside == NULL)
        return value;
    return value_set(e, s, n, p,
                     arena_format(e->a, "%s ? %s : 0", inside, value));
}

static const char *compute(Emit *e, Scope *at, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    unsigned facts = op_info[d->op].facts;
    if (d->op == OP_constant)
        return constant(e, at, n, p);
    if (n < e->group->first || n > e->group->last)
        return load(e, at, n, p);
    if (d->op == OP_uniform)
        return draw_value(e, at, n, p);
    if (facts & POINTWISE)
        return pointwise(e, at, n, p);
    if ((facts & REDUCES) && e->owner != NULL)
        return parts_value(e, at, n, p);
    if (d->op == OP_slice && e->owner != NULL)
        return piece_value(e, at, n, p);
    if (facts & WINDOW)
        return window_value(e, at, n, p);
    if (d->op == OP_unpack)
        return unpacked(e, at, n, p);
    return moved(e, at, n, p);
}

// The place of the only element of a tensor.
static Place only_place(Type t, bool flat) {
    Place p = {.rank = flat ? 0 : t.rank, .flat = flat};
    for (int i = 0; i < p.rank; i++) {
        p.dim[i] = 1;
        p.index[i] = "0";
    }
    return p;
}

const char *value_at(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    if (d->op == OP_constant && type_count(d->type) == 1)
        return number_text(e, constant_text(e, n));
    if (type_count(d->type) == 1) {
        p = only_place(*d->type, p.flat);
    } else if (!p.flat && d->type->dim[d->type->rank - 1] == 1) {
        p.lanes = NULL;
        p.index[p.rank - 1] = "0";
    }
    if (d->op == OP_iota)
        return iota(e, n, p);
    const Value *known = value_find(e, s, n, place_key(e, p));
    if (known != NULL)
        return value_text(e, known);
    Scope *at = home(e, s, n, p);
    // What is computed once for the kernel is not part of a member.
    int *local = e->local;
    NodeId member = e->member;
    if (at->kind == IN_KERNEL) {
        e->local = NULL;
        e->member = NO_NODE;
    }
    const char *text = compute(e, at, n, p);
    e->local = local;
    e->member = member;
    return text;
}
