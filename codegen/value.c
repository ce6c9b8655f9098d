// Values: the expression of a node at an index, requested by its users.
//
// A value is computed in the scope that requests it, once in a scope.  The
// kernel's passes move it out of loops.

#include "codegen/emit.h"

#include <string.h>

void emit_init(Emit *e, const Graph *g, const Graph *gpu, Arena *a,
               const Group *group, const bool *stored, int *names) {
    *e = (Emit){.g = g,
                .gpu = gpu,
                .a = a,
                .group = group,
                .stored = stored,
                .names = names,
                .entry = NO_NODE,
                .k = x_name(a, "k"),
                .vw = x_name(a, "VW"),
                .zero = x_number(a, 0),
                .one = x_number(a, 1),
                .workspace = workspace_offsets(g, group, a)};
    memcpy(e->grid, group->grid, sizeof e->grid);
}

Scope *scope_new(Emit *e, Scope *outer, ScopeKind kind, const Expr *width) {
    Scope *s = ARENA_NEW(e->a, Scope);
    *s = (Scope){.outer = outer, .kind = kind, .width = width};
    return s;
}

const Stmts *scope_close(Emit *e, Scope *s) {
    Stmts *all = ARENA_NEW(e->a, Stmts);
    *all = s->before;
    if (s->lanes.first != NULL)
        CODE(e, all, NO_NODE, "LANES_DO(k, $) { ~ }", s->width, &s->lanes);
    stmts_append(all, &s->after);
    return all;
}

// ---- names ----

static int local_number(Emit *e, NodeId n) {
    if (e->local[n] > 0)
        return e->local[n];
    ARENA_APPEND(e->a, e->local_node, e->num_local, n);
    return e->local[n] = e->num_local;
}

// Whether n is a scalar computed from this entry's tensors.
static bool is_owned(const Emit *e, NodeId n) {
    return e->entry != NO_NODE && group_has(e->group, n) &&
           e->owner[n - e->group->first] == e->entry;
}

void names_clear(Emit *e) {
    for (int i = 0; i < e->num_named; i++)
        e->names[e->named[i]] = 0;
    e->num_named = 0;
}

const Expr *value_name(Emit *e, const char *prefix, NodeId n) {
    bool local = e->local != NULL && (!is_scalar(e, n) || is_owned(e, n));
    Expr name = {.kind = X_NAME, .name = prefix, .node = n};
    if (local) {
        name.name = arena_format(e->a, "%s_%d", prefix, local_number(e, n));
        name.node = NO_NODE;
    }
    name.again = e->names[n]++;
    if (name.again == 0)
        ARENA_APPEND(e->a, e->named, e->num_named, n);
    return x_new(e->a, name);
}

const Expr *pointer_name(Emit *e, NodeId n) {
    NodeId base = node_base(e->g, n);
    if (e->local == NULL || is_scalar(e, base))
        return x_of_node(e->a, "p", base);
    return x_name(e->a, arena_format(e->a, "p_%d", local_number(e, base)));
}

// ---- computed values ----

// Whether the statements of s belong to outer or to one of its scopes.
static bool scope_within(const Scope *s, const Scope *outer) {
    for (; s != NULL; s = s->outer)
        if (s == outer)
            return true;
    return false;
}

static const Value *value_find(const Emit *e, const Scope *s, NodeId n,
                               const Index *at) {
    for (int i = e->num_values; i-- > 0;) {
        const Value *v = &e->value[i];
        if (v->node == n && index_equal(&v->at, at) &&
            (v->form == HELD_LANE ? v->scope == s : scope_within(s, v->scope)))
            return v;
    }
    return NULL;
}

void value_define(Emit *e, Scope *s, NodeId n, Index p, HeldAs form,
                  const Expr *name) {
    ARENA_APPEND(e->a, e->value, e->num_values, (Value){n, p, s, form, name});
}

const Expr *lane_of(Emit *e, const Expr *array) {
    return x_element(e->a, array, e->k);
}

// ---- where to compute ----

bool is_scalar(const Emit *e, NodeId n) {
    return type_count(e->g->node[n].type) == 1;
}

bool group_any(const Emit *e, bool has(const Emit *e, NodeId n)) {
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (has(e, n))
            return true;
    return false;
}

bool is_uniform(Type t, Index p) {
    if (p.flat)
        return p.rank == 0 || p.lanes == NULL;
    return p.lanes == NULL || t.rank == 0 || t.dim[t.rank - 1] == 1;
}

// A multi-tensor kernel computes a scalar before its entries, or before the
// elements of the entry that it belongs to.  A function that the branch at its
// end alone needs is computed there: one warp of the launch executes it.  Its
// loads stay in front, where their latency is hidden, and reductions too, as
// they have barriers.
static Scope *scalar_scope(const Emit *e, Scope *s, NodeId n) {
    ScopeKind kind = is_owned(e, n) ? IN_ENTRY : IN_KERNEL;
    if (s->kind == IN_END && group_has(e->group, n) &&
        (op_info[e->g->node[n].op].traits & POINTWISE))
        return s;
    while (s->kind != kind)
        s = s->outer;
    return s;
}

// ---- one node ----

const Expr *array_new(Emit *e, Scope *s, NodeId n, Index p) {
    const Expr *name = value_name(e, "v", n);
    CODE(e, &s->before, n,
         arena_format(e->a, "%s $[$];", held_type(e->g->node[n].type->dtype)),
         name, p.lanes);
    return name;
}

const Expr *array_define(Emit *e, Scope *s, NodeId n, Index p,
                         const Expr *name) {
    value_define(e, s, n, p, HELD_ARRAY, name);
    return lane_of(e, name);
}

// Declares a variable of s, or of its lane loop, with the value x of n at p.
static const Expr *declare_value(Emit *e, Scope *s, NodeId n, Index p,
                                 HeldAs held, const Expr *x) {
    const Expr *name = value_name(e, "v", n);
    CODE(e, held == HELD_ONCE ? &s->before : &s->lanes, n,
         arena_format(e->a, "const %s $ = $;",
                      held_type(e->g->node[n].type->dtype)),
         name, x);
    value_define(e, s, n, p, held, name);
    return name;
}

static const Expr *once(Emit *e, Scope *s, NodeId n, Index p, const Expr *x) {
    return declare_value(e, s, n, p, HELD_ONCE, x);
}

// Reads the lanes of an array from an address.
static void load_lanes(Emit *e, Scope *s, NodeId n, DType d, const Expr *array,
                       const Expr *from, const Expr *lanes) {
    CODE(e, &s->before, n,
         arena_format(e->a, "load_%s($, $, $);", access_suffix(d)), array, from,
         lanes);
}

// Reads n at p from an address.
static const Expr *load_from(Emit *e, Scope *s, NodeId n, Index p,
                             const Expr *from) {
    DType d = e->g->node[n].type->dtype;
    if (is_uniform(*e->g->node[n].type, p))
        return once(
            e, s, n, p,
            EXPR(e, arena_format(e->a, "get_%s($)", access_suffix(d)), from));
    const Expr *name = array_new(e, s, n, p);
    load_lanes(e, s, n, d, name, from, p.lanes);
    return array_define(e, s, n, p, name);
}

static const Expr *load(Emit *e, Scope *s, NodeId n, Index p) {
    return load_from(e, s, n, p,
                     x_address(e->a, pointer_name(e, n), index_offset(e, p)));
}

static const Expr *load_slice(Emit *e, Scope *s, NodeId n, Index p) {
    Index q = slice_index(e, n, p);
    return load_from(
        e, s, n, p,
        x_address(e->a, x_of_node(e->a, "s", n), index_offset(e, q)));
}

// An entry's number is a placeholder until its case is written, so entries that
// differ only in such numbers share statements.
const Expr *number_of(Emit *e, const Expr *x) {
    if (e->local == NULL)
        return x;
    ARENA_APPEND(e->a, e->number, e->num_numbers, x);
    return x_kind(e->a, X_ENTRY, e->num_numbers - 1);
}

const Expr *integer_of(Emit *e, int64_t value) {
    return number_of(e, x_number(e->a, value));
}

// A constant with one value for all elements.
static const Expr *constant_number(Emit *e, NodeId n) {
    DType d = e->g->node[n].type->dtype;
    double value = node_attr(&e->g->node[n], ATTR_values)->floats[0];
    if (e->local != NULL)
        return literal(e->a, d, value);
    return dtype_float(d) ? x_constant(e->a, value)
                          : x_size(e->a, (int64_t)value);
}

Stmt *table_add(Emit *e, Stmt table) {
    Stmt *own = ARENA_NEW(e->a, Stmt);
    *own = table;
    stmts_add(&e->tables, own);
    return own;
}

static bool has_table(const Emit *e, NodeId n) {
    for (int i = 0; i < e->num_tabled; i++)
        if (e->tabled[i] == n)
            return true;
    return false;
}

// The table of a constant whose elements differ.  All kernels may share a
// module's 64 KiB of constant memory, so each gets little there.  Vectors are
// read if their size divides the address.
static const Expr *table_of(Emit *e, NodeId n) {
    enum { MAX_CONSTANT = 64, VECTOR = 4 };
    const Node *d = &e->g->node[n];
    const Attr *values = node_attr(d, ATTR_values);
    const Expr *table = x_of_node(e->a, "OWN_table", n);
    if (has_table(e, n))
        return table;
    ARENA_APPEND(e->a, e->tabled, e->num_tabled, n);
    bool fits = values->count <= MAX_CONSTANT - e->tabled_numbers;
    e->tabled_numbers += fits ? values->count : 0;
    Stmt *s = table_add(e, (Stmt){.kind = S_TABLE,
                                  .node = n,
                                  .word = fits ? "TABLE" : "LARGE_TABLE",
                                  .type = held_type(d->type->dtype),
                                  .name = table,
                                  .aligned = values->count % VECTOR == 0});
    for (int i = 0; i < values->count; i++)
        ARENA_APPEND(
            e->a, s->row, s->num_rows,
            ((TableRow){literal(e->a, d->type->dtype, values->floats[i]),
                        NULL}));
    return table;
}

static const Expr *constant(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    if (node_attr(d, ATTR_values)->count == 1)
        return constant_number(e, n);
    const Expr *table = table_of(e, n), *offset = index_offset(e, p);
    if (is_uniform(*d->type, p))
        return x_element(e->a, table, offset);
    const Expr *name = array_new(e, s, n, p);
    load_lanes(e, s, n, dtype_float(d->type->dtype) ? F32 : I32, name,
               x_address(e->a, table, offset), p.lanes);
    return array_define(e, s, n, p, name);
}

static const Expr *iota(Emit *e, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    int axis = (int)node_int(d, ATTR_axis, 0);
    int64_t from = node_int(d, ATTR_from, 0);
    const Expr *index;
    if (p.flat && p.rank == 0) { // one element
        index = e->zero;
    } else if (p.flat) {
        int64_t stride = 1;
        for (int i = axis + 1; i < d->type->rank; i++)
            stride *= d->type->dim[i];
        index = p.lanes != NULL ? EXPR(e, "$ + k", p.index[0]) : p.index[0];
        if (d->type->rank > 1)
            index = EXPR(e, "$ / $ % $", index, x_number(e->a, stride),
                         x_number(e->a, d->type->dim[axis]));
    } else {
        index = p.index[axis];
        if (p.lanes != NULL && axis == d->type->rank - 1)
            index = EXPR(e, "$ + k", index);
    }
    return from ? EXPR(e, "$ + $", index, x_size(e->a, from)) : index;
}

const Expr *value_set(Emit *e, Scope *s, NodeId n, Index p, const Expr *x) {
    return declare_value(
        e, s, n, p, is_uniform(*e->g->node[n].type, p) ? HELD_ONCE : HELD_LANE,
        x);
}

static const Expr *pointwise(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    const Expr *operand[4] = {NULL};
    for (int i = 0; i < d->num_args; i++) {
        Type t = *e->g->node[d->arg[i]].type;
        operand[i] = value_at(e, s, d->arg[i], index_broadcast(p, t));
    }
    return value_set(e, s, n, p, pointwise_expr(e, n, operand));
}

Scope *scope_open(Emit *e, Scope *s, const Expr *lanes) {
    return scope_new(e, s, IN_LOOP, lanes);
}

// A pad of the lanes' axis: a block of its own computes fewer lanes, and the
// rest are zero.
static const Expr *widen(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    Type from = *e->g->node[d->arg[0]].type;
    const Expr *name = array_new(e, s, n, p), *inside;
    CODE(e, &s->before, n, "LANES_DO(k, $) $[k] = 0;", p.lanes, name);
    Scope *inner = scope_open(e, s, x_number(e->a, from.dim[from.rank - 1]));
    Index q = p;
    q.lanes = inner->width;
    q.dim[p.rank - 1] = from.dim[from.rank - 1];
    q.index[p.rank - 1] = e->zero;
    q = index_moved(e, inner, n, q, &inside);
    const Expr *value = value_at(e, inner, d->arg[0], q);
    if (inside != NULL)
        value = EXPR(e, "$ ? $ : 0", inside, value);
    CODE(e, &inner->lanes, n, "$[k] = $;", name, value);
    CODE(e, &s->before, NO_NODE, "{ ~ }", scope_close(e, inner));
    return array_define(e, s, n, p, name);
}

// Several elements share a byte, so the offset counts elements.
static const Expr *unpacked(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    const Expr *pointer = pointer_name(e, d->arg[0]);
    const Expr *offset = index_offset(e, p);
    const Expr *bits = x_number(e->a, node_int(d, ATTR_bits, 0));
    if (p.lanes == NULL)
        return value_set(e, s, n, p,
                         EXPR(e, "get_bits($, $, $)", pointer, offset, bits));
    const Expr *name = array_new(e, s, n, p);
    CODE(e, &s->before, n, "load_bits($, $, $, $, $);", name, pointer, offset,
         p.lanes, bits);
    return array_define(e, s, n, p, name);
}

static bool pads_lanes(const Emit *e, NodeId n, Index p) {
    return p.lanes != NULL &&
           e->step == space_columns(e->group->iteration_space) &&
           pad_widens(e, &e->g->node[n]);
}

static const Expr *moved(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    if (pads_lanes(e, n, p))
        return widen(e, s, n, p);
    const Expr *inside;
    Index q = index_moved(e, s, n, p, &inside);
    const Expr *value = value_at(e, s, d->arg[0], q);
    if (inside == NULL)
        return value;
    return value_set(e, s, n, p, EXPR(e, "$ ? $ : 0", inside, value));
}

static const Expr *compute(Emit *e, Scope *at, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    unsigned traits = op_info[d->op].traits;
    if (d->op == OP_constant)
        return constant(e, at, n, p);
    if (n < e->group->first || n > e->group->last)
        return load(e, at, n, p);
    if (d->op == OP_uniform)
        return draw_value(e, at, n, p);
    if (traits & POINTWISE)
        return pointwise(e, at, n, p);
    if ((traits & REDUCES) && e->owner != NULL)
        return partials_value(e, at, n, p);
    if (d->op == OP_slice && e->owner != NULL)
        return slice_value(e, at, n, p);
    if (d->op == OP_slice &&
        slice_pointed(e->g, e->group, node_base(e->g, d->arg[0])) == n)
        return load_slice(e, at, n, p);
    if (traits & WINDOW)
        return window_value(e, at, n, p);
    if (d->op == OP_unpack)
        return unpacked(e, at, n, p);
    return moved(e, at, n, p);
}

// The index expression of a tensor's only element.
static Index only_index(const Emit *e, Type t, bool flat) {
    Index p = {.rank = flat ? 0 : t.rank, .flat = flat};
    for (int i = 0; i < p.rank; i++) {
        p.dim[i] = 1;
        p.index[i] = e->zero;
    }
    return p;
}

const Expr *value_at(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    if (d->op == OP_constant && type_count(d->type) == 1)
        return number_of(e, constant_number(e, n));
    if (type_count(d->type) == 1) {
        p = only_index(e, *d->type, p.flat);
    } else if (!p.flat && d->type->dim[d->type->rank - 1] == 1) {
        p.lanes = NULL;
        p.index[p.rank - 1] = e->zero;
    }
    if (d->op == OP_iota)
        return iota(e, n, p);
    const Value *known = value_find(e, s, n, &p);
    if (known != NULL)
        return known->form == HELD_ARRAY ? lane_of(e, known->name)
                                         : known->name;
    bool shared = e->owner != NULL && is_scalar(e, n);
    Scope *at = shared ? scalar_scope(e, s, n) : s;
    // A value computed once for the kernel does not depend on an entry.
    int *local = e->local;
    NodeId entry = e->entry;
    if (at->kind == IN_KERNEL) {
        e->local = NULL;
        e->entry = NO_NODE;
    }
    const Expr *x = compute(e, at, n, p);
    e->local = local;
    e->entry = entry;
    return x;
}
