// Values: the text that computes a node at a place, asked for from its users.
//
// A value is computed in the outermost scope in which it stays the same: once
// in the kernel for a scalar, once for each group of columns where it has
// columns only, else for each row.  Within a scope it is computed once.

#include "codegen/emit.h"

#include <string.h>

void emit_init(Emit *e, const Graph *g, const Graph *device, Arena *a,
               const Group *group, const bool *stored) {
    *e = (Emit){.g = g,
                .device = device,
                .a = a,
                .group = group,
                .stored = stored,
                .tables = text_new(a),
                .names = ARENA_ARRAY(a, g->count, int)};
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

void scope_close(Emit *e, Scope *s, Text *t) {
    (void)e;
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

const char *value_name(Emit *e, const char *prefix, NodeId n) {
    int number = (int)n;
    const char *mark = "";
    if (e->local != NULL && type_count(e->g->node[n].type) > 1) {
        if (e->local[n] == 0)
            e->local[n] = ++e->num_local;
        number = e->local[n];
        mark = "_";
    }
    int taken = e->names[n]++;
    return taken == 0
               ? arena_format(e->a, "%s%s%d", prefix, mark, number)
               : arena_format(e->a, "%s%s%d_%d", prefix, mark, number, taken);
}

const char *pointer_name(Emit *e, NodeId n) {
    NodeId base = node_base(e->g, n);
    if (e->local == NULL || type_count(e->g->node[base].type) == 1)
        return arena_format(e->a, "p%u", base);
    if (e->local[base] == 0)
        e->local[base] = ++e->num_local;
    return arena_format(e->a, "p_%d", e->local[base]);
}

// ---- what was computed ----

static bool encloses(const Scope *outer, const Scope *s) {
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
            (v->form == HELD_LANE ? v->scope == s : encloses(v->scope, s)))
            return v;
    }
    return NULL;
}

void value_define(Emit *e, Scope *s, NodeId n, Place p, HeldAs form,
                  const char *name) {
    if (e->num_values == e->max_values) {
        int most = e->max_values ? 2 * e->max_values : 64;
        Value *grown = ARENA_ARRAY(e->a, (size_t)most, Value);
        if (e->num_values)
            memcpy(grown, e->value, (size_t)e->num_values * sizeof *grown);
        e->value = grown;
        e->max_values = most;
    }
    e->value[e->num_values++] = (Value){n, place_key(e, p), s, form, name};
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
    return e->level != NULL && n >= e->group->first && n <= e->group->last &&
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
                !encloses(e->index[j].scope, pass->outer))
                return false;
    }
    return true;
}

// The outermost scope in which node n at p stays the same.
static Scope *home(const Emit *e, Scope *s, NodeId n, Place p) {
    Type t = e->g->node[n].type;
    Scope *kernel = enclosing(s, IN_KERNEL), *column = enclosing(s, IN_COLUMN);
    if (type_count(t) == 1 && !has_rows(p) && !follows_row(e, n))
        return kernel;
    if (p.flat)
        return s;
    if (column != NULL && !has_rows(p) && p.lanes != NULL &&
        strcmp(p.lanes, "VW") == 0 && strcmp(p.index[p.rank - 1], "c") == 0)
        return column;
    if (s->kind == IN_PASS && same_for_row(e, s, p))
        return s->outer;
    return s;
}

// ---- one node ----

// Declares the array that lanes of node n are kept in.
static const char *array_new(Emit *e, Scope *s, NodeId n, Place p) {
    const char *name = value_name(e, "v", n);
    text_line(&s->before, "%s %s[%s];", held_type(e->g->node[n].type.dtype),
              name, p.lanes);
    return name;
}

static const char *load(Emit *e, Scope *s, NodeId n, Place p) {
    DType d = e->g->node[n].type.dtype;
    const char *pointer = pointer_name(e, n), *offset = place_offset(e, p);
    if (is_uniform(e->g->node[n].type, p)) {
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

// A literal, or with local numbering a mark that emit_update replaces: members
// that differ only in such numbers share their text.
static const char *number(Emit *e, const char *text) {
    if (e->local == NULL)
        return text;
    if (e->num_constants == e->max_constants) {
        int most = e->max_constants ? 2 * e->max_constants : 8;
        const char **grown = ARENA_ARRAY(e->a, (size_t)most, const char *);
        if (e->num_constants)
            memcpy(grown, e->constant,
                   (size_t)e->num_constants * sizeof *grown);
        e->constant = grown;
        e->max_constants = most;
    }
    e->constant[e->num_constants] = text;
    return arena_format(e->a, "\x01%d\x02", e->num_constants++);
}

static const char *constant(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    const Attr *values = node_attr(d, ATTR_values);
    if (values->count == 1)
        return literal(e->a, d->type.dtype, values->floats[0]);
    const char *table = arena_format(e->a, OWN_NAME "_table%u", n);
    if (strstr(text_string(&e->tables), arena_format(e->a, " %s[", table)) ==
        NULL) {
        text_add(&e->tables, "TABLE %s %s[%d] = {", held_type(d->type.dtype),
                 table, values->count);
        for (int i = 0; i < values->count; i++)
            text_add(&e->tables, "%s%s", i ? ", " : "",
                     literal(e->a, d->type.dtype, values->floats[i]));
        text_add(&e->tables, "};\n");
    }
    const char *offset = place_offset(e, p);
    if (is_uniform(d->type, p))
        return arena_format(e->a, "%s[%s]", table, offset);
    const char *name = array_new(e, s, n, p);
    text_line(&s->before, "load_%s(%s, %s + %s, %s);",
              dtype_float(d->type.dtype) ? "f32" : "i32", name, table, offset,
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
        for (int i = axis + 1; i < d->type.rank; i++)
            stride *= d->type.dim[i];
        index = lanes ? arena_format(e->a, "(%s + k)", p.index[0]) : p.index[0];
        if (d->type.rank > 1)
            index =
                arena_format(e->a, "%s / %lld %% %lld", index,
                             (long long)stride, (long long)d->type.dim[axis]);
    } else {
        index = p.index[axis];
        if (lanes && axis == d->type.rank - 1)
            index = arena_format(e->a, "%s + k", index);
    }
    return from ? arena_format(e->a, "(%s + %lld)", index, from)
                : arena_format(e->a, "(%s)", index);
}

// Places v as the value of n at p: a variable of the lane loop, an array if
// inner scopes will use it, or a plain variable.
static const char *statement(Emit *e, Scope *s, NodeId n, Place p,
                             const char *expr) {
    const char *type = held_type(e->g->node[n].type.dtype);
    if (is_uniform(e->g->node[n].type, p)) {
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
        Type t = e->g->node[d->arg[i]].type;
        operand[i] = value_at(e, s, d->arg[i], place_broadcast(e, p, t));
    }
    if (d->op == OP_uniform && e->local != NULL) {
        const char *stream =
            number(e, arena_format(e->a, "%lld",
                                   (long long)node_int(d, ATTR_stream, 0)));
        return statement(e, s, n, p,
                         arena_format(e->a, "uniform(%s, %s, %s, %s)",
                                      operand[0], stream, operand[1],
                                      operand[2]));
    }
    return statement(e, s, n, p, expr_text(e, n, operand));
}

// A block among the statements of s.  The lines that open it are its own, so
// that what it asks of s comes before all of it.
static Scope *block_open(Emit *e, Scope *s, const char *lanes, int depth) {
    Scope *inner = scope_new(e, s, IN_WINDOW, lanes, s->before.indent + depth);
    inner->before.indent = s->before.indent;
    return inner;
}

// A pad of the lanes' own axis: fewer lanes are computed in a block of their
// own and the rest are zero.
static const char *widen(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Type from = e->g->node[d->arg[0]].type;
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
    scope_close(e, inner, &s->before);
    text_line(&s->before, "}");
    value_define(e, s, n, p, HELD_ARRAY, name);
    return arena_format(e->a, "%s[k]", name);
}

static bool pads_lanes(const Emit *e, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Type from = e->g->node[d->arg[0]].type;
    return d->op == OP_pad && p.lanes != NULL && !e->narrow &&
           from.dim[from.rank - 1] != p.dim[p.rank - 1];
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
    return statement(e, s, n, p,
                     arena_format(e->a, "%s ? %s : 0", inside, value));
}

// ---- windows ----

typedef struct {
    int64_t rows, columns, stride[2], pad[2];
    bool disjoint; // windows do not overlap and cover the image
} Pool;

// `image` is the larger tensor, `pooled` has an element for each window.
static Pool pool_of(const Node *d, Type image, Type pooled) {
    Pool w = {
        node_ints(d, ATTR_window, 0, 1),
        node_ints(d, ATTR_window, 1, 1),
        {node_ints(d, ATTR_stride, 0, 1), node_ints(d, ATTR_stride, 1, 1)},
        {node_ints(d, ATTR_pad, 0, 0), node_ints(d, ATTR_pad, 2, 0)},
        false};
    w.disjoint = w.rows == w.stride[0] && w.columns == w.stride[1] &&
                 w.pad[0] == 0 && w.pad[1] == 0 &&
                 pooled.dim[1] * w.rows == image.dim[1] &&
                 pooled.dim[2] * w.columns == image.dim[2];
    return w;
}

static const char *axis_in_window(Emit *e, Scope *s, const char *stem,
                                  const char *index, int64_t stride,
                                  const char *offset, int64_t pad) {
    const char *value =
        arena_format(e->a, "%s * %lld + %s", index, (long long)stride, offset);
    if (pad)
        value = arena_format(e->a, "%s - %lld", value, (long long)pad);
    return index_new(e, s, stem, value);
}

// The other pool over the same windows, computed in the same loop, or NO_NODE.
static NodeId pool_twin(const Emit *e, NodeId n) {
    const Node *d = &e->g->node[n];
    Op want = d->op == OP_max_pool ? OP_max_pool_index : OP_max_pool;
    for (NodeId m = e->group->first; m <= e->group->last; m++) {
        const Node *other = &e->g->node[m];
        if (other->op != want || other->arg[0] != d->arg[0])
            continue;
        bool same = true;
        for (int i = 0; i < 4; i++)
            same &= node_ints(d, ATTR_window, i & 1, 0) ==
                        node_ints(other, ATTR_window, i & 1, 0) &&
                    node_ints(d, ATTR_stride, i & 1, 0) ==
                        node_ints(other, ATTR_stride, i & 1, 0) &&
                    node_ints(d, ATTR_pad, i, 0) ==
                        node_ints(other, ATTR_pad, i, 0);
        if (same)
            return m;
    }
    return NO_NODE;
}

// Opens loops over the rows and columns of a window, r1 and q1 for number 1.
static Scope *loops_open(Emit *e, Scope *s, Pool w, const char *lanes,
                         int number) {
    Scope *inner = block_open(e, s, lanes, 2);
    text_line(&inner->before, "for (int r%d = 0; r%d < %lld; r%d++)", number,
              number, (long long)w.rows, number);
    inner->before.indent++;
    text_line(&inner->before, "for (int q%d = 0; q%d < %lld; q%d++) {", number,
              number, (long long)w.columns, number);
    inner->before.indent++;
    return inner;
}

// Opens the loops over a window of `image` for the window at p.
static Scope *window_open(Emit *e, Scope *s, Pool w, Place p, Type image,
                          Place *inner_place) {
    const char *r = arena_format(e->a, "r%d", ++e->num_indices);
    const char *q = arena_format(e->a, "q%d", e->num_indices);
    Scope *inner = loops_open(e, s, w, p.lanes, e->num_indices);
    Place at = p;
    at.whole = false;
    at.index[1] =
        axis_in_window(e, inner, "h", p.index[1], w.stride[0], r, w.pad[0]);
    at.index[2] =
        axis_in_window(e, inner, "w", p.index[2], w.stride[1], q, w.pad[1]);
    at.dim[1] = image.dim[1];
    at.dim[2] = image.dim[2];
    int64_t reach[2] = {(p.dim[1] - 1) * w.stride[0] + w.rows - w.pad[0],
                        (p.dim[2] - 1) * w.stride[1] + w.columns - w.pad[1]};
    if (w.pad[0] || w.pad[1] || reach[0] > image.dim[1] ||
        reach[1] > image.dim[2])
        text_line(&inner->before,
                  "if (%s < 0 || %s >= %lld || %s < 0 || %s >= %lld) continue;",
                  at.index[1], at.index[1], (long long)image.dim[1],
                  at.index[2], at.index[2], (long long)image.dim[2]);
    *inner_place = at;
    return inner;
}

static void window_close(Emit *e, Scope *s, Scope *inner) {
    scope_close(e, inner, &s->before);
    s->before.indent++;
    text_line(&s->before, "}");
    s->before.indent--;
}

// Statements over lanes, or over the only element.
static Text *lane_text(Scope *s, Place p) {
    return p.lanes != NULL ? &s->lanes : &s->before;
}

static const char *element(Emit *e, const char *name, Place p) {
    return p.lanes != NULL ? arena_format(e->a, "%s[k]", name) : name;
}

// A variable or array with a starting value.
static const char *running(Emit *e, Scope *s, NodeId n, Place p,
                           const char *first) {
    const char *type = held_type(e->g->node[n].type.dtype);
    const char *name = value_name(e, "v", n);
    if (p.lanes == NULL) {
        text_line(&s->before, "%s %s = %s;", type, name, first);
    } else {
        text_line(&s->before, "%s %s[%s];", type, name, p.lanes);
        text_line(&s->before, "LANES_DO(k, %s) %s[k] = %s;", p.lanes, name,
                  first);
    }
    value_define(e, s, n, p, p.lanes ? HELD_ARRAY : HELD_ONCE, name);
    return element(e, name, p);
}

static void max_pool(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Type image = e->g->node[d->arg[0]].type;
    Pool w = pool_of(d, image, d->type);
    NodeId twin = pool_twin(e, n);
    NodeId value = d->op == OP_max_pool ? n : twin;
    NodeId index = d->op == OP_max_pool ? twin : n;
    bool real = dtype_float(image.dtype);
    const char *most, *where = NULL;
    if (value != NO_NODE) {
        most = running(e, s, value, p, real ? "-INF" : "INT_LEAST");
    } else { // the index alone: the largest value is kept all the same
        const char *name = arena_format(e->a, "m%d", ++e->num_indices);
        text_line(&s->before, "%s %s%s%s%s;", held_type(image.dtype), name,
                  p.lanes ? "[" : "", p.lanes ? p.lanes : "",
                  p.lanes ? "]" : "");
        most = element(e, name, p);
        if (p.lanes)
            text_line(&s->before, "LANES_DO(k, %s) %s = %s;", p.lanes, most,
                      real ? "-INF" : "INT_LEAST");
        else
            text_line(&s->before, "%s = %s;", most,
                      real ? "-INF" : "INT_LEAST");
    }
    if (index != NO_NODE)
        where = running(e, s, index, p, "0");
    Place at;
    Scope *inner = window_open(e, s, w, p, image, &at);
    int loop = e->num_indices - 2; // r and q of window_open
    const char *x = value_at(e, inner, d->arg[0], at);
    Text *t = lane_text(inner, p);
    // A value that is not a number wins, so that divergence shows.  Each
    // choice has one comparison, or gcc would not vectorise it.
    const char *here = arena_format(e->a, "r%d * %lld + q%d", loop,
                                    (long long)w.columns, loop);
    for (int i = 0; i < 2; i++) {
        const char *wins = i == 0 ? arena_format(e->a, "%s > %s", x, most)
                                  : arena_format(e->a, "%s != %s", x, x);
        if (where != NULL)
            text_line(t, "%s = %s ? %s : %s;", where, wins, here, where);
        text_line(t, "%s = %s ? %s : %s;", most, wins, x, most);
    }
    window_close(e, s, inner);
}

static void avg_pool(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Type image = e->g->node[d->arg[0]].type;
    Pool w = pool_of(d, image, d->type);
    const char *sum = running(e, s, n, p, "0.0f");
    Place at;
    Scope *inner = window_open(e, s, w, p, image, &at);
    const char *x = value_at(e, inner, d->arg[0], at);
    text_line(lane_text(inner, p), "%s += %s * %s;", sum, x,
              literal(e->a, F32, 1.0 / (double)(w.rows * w.columns)));
    window_close(e, s, inner);
}

// The gradient of a pool, gathered: an element of the image collects from each
// window that contains it.
static const char *pool_grad_term(Emit *e, Scope *s, const Node *d, Pool w,
                                  Place at, const char *place) {
    NodeId dy = d->arg[d->num_args - 1];
    const char *gradient = value_at(e, s, dy, at);
    if (d->op == OP_avg_pool_grad)
        return arena_format(
            e->a, "%s * %s", gradient,
            literal(e->a, F32, 1.0 / (double)(w.rows * w.columns)));
    const char *index = value_at(e, s, d->arg[0], at);
    return arena_format(e->a, "%s == %s ? %s : 0", index, place, gradient);
}

static const char *pool_grad(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    Type pooled = e->g->node[d->arg[0]].type;
    Pool w = pool_of(d, d->type, pooled);
    Place at = p;
    at.whole = false;
    at.dim[1] = pooled.dim[1];
    at.dim[2] = pooled.dim[2];
    if (w.disjoint) {
        int i = ++e->num_indices;
        text_line(&s->before, "const int h%d = %s / %lld, w%d = %s / %lld;", i,
                  p.index[1], (long long)w.rows, i, p.index[2],
                  (long long)w.columns);
        at.index[1] = arena_format(e->a, "h%d", i);
        at.index[2] = arena_format(e->a, "w%d", i);
        const char *place = arena_format(e->a, "place%d", i);
        if (d->op == OP_max_pool_grad)
            text_line(&s->before,
                      "const int %s = (%s - h%d * %lld) * %lld + %s - w%d * "
                      "%lld;",
                      place, p.index[1], i, (long long)w.rows,
                      (long long)w.columns, p.index[2], i,
                      (long long)w.columns);
        return statement(e, s, n, p, pool_grad_term(e, s, d, w, at, place));
    }
    const char *sum = running(e, s, n, p, "0.0f");
    int i = ++e->num_indices;
    Scope *inner = loops_open(e, s, w, p.lanes, i);
    text_line(&inner->before,
              "const int a%d = %s + %lld - r%d, b%d = %s + %lld - q%d;", i,
              p.index[1], (long long)w.pad[0], i, i, p.index[2],
              (long long)w.pad[1], i);
    text_line(&inner->before,
              "if (a%d < 0 || a%d %% %lld || a%d / %lld >= %lld || b%d < 0 || "
              "b%d %% %lld || b%d / %lld >= %lld) continue;",
              i, i, (long long)w.stride[0], i, (long long)w.stride[0],
              (long long)pooled.dim[1], i, i, (long long)w.stride[1], i,
              (long long)w.stride[1], (long long)pooled.dim[2]);
    text_line(&inner->before, "const int h%d = a%d / %lld, w%d = b%d / %lld;",
              i, i, (long long)w.stride[0], i, i, (long long)w.stride[1]);
    at.index[1] = arena_format(e->a, "h%d", i);
    at.index[2] = arena_format(e->a, "w%d", i);
    const char *place =
        arena_format(e->a, "r%d * %lld + q%d", i, (long long)w.columns, i);
    const char *term = pool_grad_term(e, inner, d, w, at, place);
    text_line(lane_text(inner, p), "%s += %s;", sum, term);
    window_close(e, s, inner);
    return sum;
}

static const char *windowed(Emit *e, Scope *s, NodeId n, Place p) {
    switch (e->g->node[n].op) {
    case OP_max_pool:
    case OP_max_pool_index:
        max_pool(e, s, n, p);
        break;
    case OP_avg_pool:
        avg_pool(e, s, n, p);
        break;
    default:
        return pool_grad(e, s, n, p);
    }
    return value_at(e, s, n, p); // defined now
}

static const char *compute(Emit *e, Scope *at, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    unsigned facts = op_info[d->op].facts;
    if (d->op == OP_constant)
        return constant(e, at, n, p);
    if (n < e->group->first || n > e->group->last)
        return load(e, at, n, p);
    if (facts & POINTWISE)
        return pointwise(e, at, n, p);
    if (facts & WINDOW)
        return windowed(e, at, n, p);
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
        return number(e, literal(e->a, d->type.dtype,
                                 node_attr(d, ATTR_values)->floats[0]));
    if (type_count(d->type) == 1) {
        p = only_place(d->type, p.flat);
    } else if (!p.flat && d->type.dim[d->type.rank - 1] == 1) {
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
    if (at->kind == IN_KERNEL)
        e->local = NULL;
    const char *text = compute(e, at, n, p);
    e->local = local;
    return text;
}
