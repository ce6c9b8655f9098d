// Index expressions: which element of an operand an element needs.

#include "codegen/emit.h"

#include <string.h>

static bool is_zero(const Expr *index) {
    return is_number(index, 0);
}

// Index 0 needs no allocation.
static const Expr zero = {.kind = X_NUMBER, .node = NO_NODE};

Index index_broadcast(Index p, Type operand) {
    if (p.flat) {
        if (type_count(&operand) == 1)
            return (Index){.flat = true, .rank = 0};
        return p;
    }
    Index q = {.rank = operand.rank, .lanes = p.lanes};
    for (int i = 0; i < operand.rank; i++) {
        int from = i + p.rank - operand.rank;
        q.dim[i] = operand.dim[i];
        q.index[i] = operand.dim[i] == 1 || from < 0 ? &zero : p.index[from];
    }
    q.is_identity = p.is_identity && operand.rank == p.rank;
    for (int i = 0; i < operand.rank && q.is_identity; i++)
        q.is_identity = operand.dim[i] == p.dim[i];
    if (operand.rank == 0 || operand.dim[operand.rank - 1] == 1)
        q.lanes = NULL;
    return q;
}

bool has_rows(Index p) {
    for (int i = 0; i + 1 < p.rank; i++)
        if (!is_zero(p.index[i]))
            return true;
    return false;
}

const Expr *index_offset(Emit *e, Index p) {
    const Expr *x = NULL;
    int64_t stride = 1; // factor of its next index
    if (p.flat)
        return p.rank == 0 ? &zero : p.index[0];
    if (p.is_identity && p.rank > 2 && has_rows(p))
        return EXPR(e, "(size_t)i * C + $", p.index[p.rank - 1]);
    for (int i = 0; i < p.rank; i++) {
        stride *= p.dim[i];
        if (is_zero(p.index[i]))
            continue;
        if (x == NULL)
            x = i + 1 < p.rank ? EXPR(e, "(size_t)$", p.index[i]) : p.index[i];
        else
            x = EXPR(e, "$ * $ + $", x, x_size(e->a, stride), p.index[i]);
        stride = 1;
    }
    if (x == NULL)
        return &zero;
    return stride == 1 ? x : EXPR(e, "$ * $", x, x_size(e->a, stride));
}

static const Expr *index_at(const Index *p, int from_end) {
    return from_end < p->rank ? p->index[p->rank - 1 - from_end] : &zero;
}

bool index_equal(const Index *p, const Index *q) {
    int most = p->rank > q->rank ? p->rank : q->rank;
    for (int i = 0; i < most; i++)
        if (!expr_equal(index_at(p, i), index_at(q, i)))
            return false;
    return expr_equal(p->lanes, q->lanes);
}

const Expr *index_name(Emit *e, const char *stem) {
    return x_name(e->a, arena_format(e->a, "%s%d", stem, ++e->num_indices));
}

// The name of an index, which is declared once in a scope.
static const Expr *declared(Emit *e, Scope *s, const char *type,
                            const char *stem, const Expr *value) {
    for (const Stmt *d = s->before.first; d != NULL; d = d->next)
        if (d->kind == S_DECLARE && d->value != NULL &&
            strcmp(d->type, type) == 0 && expr_equal(d->value, value))
            return d->name;
    const Expr *name = index_name(e, stem);
    CODE(e, &s->before, NO_NODE, arena_format(e->a, "%s $ = $;", type), name,
         value);
    return name;
}

const Expr *index_new(Emit *e, Scope *s, const char *stem, const Expr *value) {
    return declared(e, s, "const int", stem, value);
}

static void require(Emit *e, const Expr **inside, const Expr *condition) {
    *inside =
        *inside == NULL ? condition : EXPR(e, "$ && $", *inside, condition);
}

// Clamps an index to 0 .. count-1.  A vector of lanes is inside as a whole or
// outside as a whole.
static const Expr *index_bounded(Emit *e, Scope *s, const Expr *index,
                                 int64_t count, const Expr *lanes,
                                 const Expr **inside) {
    require(e, inside,
            EXPR(e, "$ >= 0 && $ < $", index, index, x_size(e->a, count)));
    const Expr *starts = x_number(e->a, count);
    if (lanes != NULL && e->step > 1)
        starts = EXPR(e, "$ - $ + 1", starts, lanes);
    return index_new(e, s, "i", EXPR(e, "clamp_index($, $)", index, starts));
}

static Index move_pad(Emit *e, Scope *s, NodeId n, Index p, Type from,
                      const Expr **inside, int sign) {
    const Node *d = &e->g->node[n];
    Index q = p;
    q.is_identity = false;
    for (int i = 0; i < from.rank; i++) {
        int64_t low = node_ints(d, ATTR_low, i, 0) * sign;
        q.dim[i] = from.dim[i];
        if (low != 0)
            q.index[i] = index_new(
                e, s, "i", EXPR(e, "$ + $", p.index[i], x_size(e->a, low)));
        if (sign < 0 && from.dim[i] != p.dim[i])
            q.index[i] =
                index_bounded(e, s, q.index[i], from.dim[i],
                              i == from.rank - 1 ? p.lanes : NULL, inside);
    }
    return q;
}

// Images [N,H,W,C] shifted by an offset for each sample.
static Index move_shift(Emit *e, Scope *s, NodeId n, Index p,
                        const Expr **inside) {
    const Node *d = &e->g->node[n];
    const char *mode = node_text(d, ATTR_mode);
    Index sample = {.rank = 1, .dim = {p.dim[0]}, .index = {p.index[0]}};
    Index q = p;
    q.is_identity = false;
    for (int i = 1; i <= 2; i++) {
        const Expr *by = value_at(e, s, d->arg[i], sample);
        const Expr *index = index_new(e, s, i == 1 ? "h" : "w",
                                      EXPR(e, "$ + $", p.index[i], by));
        if (strcmp(mode, "zero") == 0)
            q.index[i] = index_bounded(e, s, index, p.dim[i], NULL, inside);
        else
            q.index[i] =
                index_new(e, s, i == 1 ? "h" : "w",
                          EXPR(e,
                               strcmp(mode, "edge") == 0 ? "clamp_index($, $)"
                                                         : "reflect($, $)",
                               index, x_number(e->a, p.dim[i])));
    }
    return q;
}

static Index move_flip(Emit *e, Scope *s, NodeId n, Index p) {
    Index sample = {.rank = 1, .dim = {p.dim[0]}, .index = {p.index[0]}};
    const Expr *mirrored = value_at(e, s, e->g->node[n].arg[1], sample);
    Index q = p;
    q.is_identity = false;
    q.index[2] =
        index_new(e, s, "w",
                  EXPR(e, "$ ? $ - $ : $", mirrored,
                       x_number(e->a, p.dim[2] - 1), p.index[2], p.index[2]));
    return q;
}

static Index move_transpose(Emit *e, NodeId n, Index p, Type from) {
    const Attr *order = node_attr(&e->g->node[n], ATTR_order);
    Index q = {.rank = p.rank, .lanes = p.lanes};
    for (int i = 0; i < p.rank; i++) {
        q.dim[order->ints[i]] = from.dim[order->ints[i]];
        q.index[order->ints[i]] = p.index[i];
    }
    return q;
}

// Operand i of node n at p, as an index in 0 .. count-1.
static const Expr *index_from(Emit *e, Scope *s, NodeId n, int i, Index p,
                              int64_t count) {
    const Expr *index = value_at(e, s, e->g->node[n].arg[i], p);
    return index_new(
        e, s, "i", EXPR(e, "clamp_index($, $)", index, x_number(e->a, count)));
}

// The first axes of p name an element of the index, the others one of a row.
static Index move_gather(Emit *e, Scope *s, NodeId n, Index p, Type table) {
    Type index = *e->g->node[e->g->node[n].arg[1]].type;
    Index at = {.rank = index.rank}, q = {.rank = table.rank};
    for (int i = 0; i < index.rank; i++) {
        at.dim[i] = index.dim[i];
        at.index[i] = p.index[i];
    }
    for (int i = 0; i < table.rank; i++) {
        q.dim[i] = table.dim[i];
        q.index[i] = i > 0 ? p.index[index.rank + i - 1] : NULL;
    }
    q.index[0] = index_from(e, s, n, 1, at, table.dim[0]);
    q.lanes = table.rank > 1 ? p.lanes : NULL;
    return q;
}

// Images [N,H,W,C] at rows and columns given for each image, or for each pixel.
static Index move_take(Emit *e, Scope *s, NodeId n, Index p, Type from) {
    Index q = p;
    q.is_identity = false;
    for (int i = 1; i <= 2; i++) {
        Index at = {.rank = 2,
                    .dim = {p.dim[0], p.dim[i]},
                    .index = {p.index[0], p.index[i]}};
        if (e->g->node[e->g->node[n].arg[i]].type->rank == 3)
            at = (Index){.rank = 3,
                         .dim = {p.dim[0], p.dim[1], p.dim[2]},
                         .index = {p.index[0], p.index[1], p.index[2]}};
        q.dim[i] = from.dim[i];
        q.index[i] = index_from(e, s, n, i, at, from.dim[i]);
    }
    return q;
}

// The same element under another shape.  Axes of size 1 come and go freely.
// Trailing axes stay if both shapes end in them; otherwise the linear index is
// split anew.
static Index move_view(Emit *e, Scope *s, Index p, Type from) {
    Index q = {.rank = from.rank}, rest = p;
    int i = from.rank;
    int64_t stride = 1, left = 1;
    if (from.rank > 0 && from.dim[from.rank - 1] != 1)
        q.lanes = p.lanes;
    for (int k = 0; k < from.rank; k++) {
        q.dim[k] = from.dim[k];
        q.index[k] = &zero;
    }
    while (true) {
        while (i > 0 && from.dim[i - 1] == 1)
            i--;
        while (rest.rank > 0 && rest.dim[rest.rank - 1] == 1)
            rest.rank--;
        if (i == 0 || rest.rank == 0 ||
            from.dim[i - 1] != rest.dim[rest.rank - 1])
            break;
        q.index[--i] = rest.index[--rest.rank];
    }
    if (i == 0)
        return q;
    rest.is_identity = false;
    const char *number =
        type_count(&from) > INT32_MAX ? "const size_t" : "const int";
    const Expr *element = index_offset(e, rest);
    if (element->kind != X_NAME && element->kind != X_NUMBER)
        element = declared(e, s, number, "i", element);
    for (int k = 0; k < i; k++)
        left *= from.dim[k];
    while (i-- > 0) {
        if (from.dim[i] <= 1)
            continue;
        const Expr *index = element;
        left /= from.dim[i];
        if (stride > 1)
            index = EXPR(e, "$ / $", index, x_number(e->a, stride));
        if (left > 1)
            index = EXPR(e, "$ % $", index, x_number(e->a, from.dim[i]));
        q.index[i] = index == element ? element : index_new(e, s, "i", index);
        stride *= from.dim[i];
    }
    return q;
}

static Index move(Emit *e, Scope *s, NodeId n, Index p, const Expr **inside) {
    const Node *d = &e->g->node[n];
    Type from = *e->g->node[d->arg[0]].type;
    *inside = NULL;
    if (p.flat) // views only: the linear index stays the same
        return p;
    switch (d->op) {
    case OP_pad:
        return move_pad(e, s, n, p, from, inside, -1);
    case OP_slice:
        return move_pad(e, s, n, p, from, inside, 1);
    case OP_shift:
        return move_shift(e, s, n, p, inside);
    case OP_flip:
        return move_flip(e, s, n, p);
    case OP_transpose:
        return move_transpose(e, n, p, from);
    case OP_gather:
        return move_gather(e, s, n, p, from);
    case OP_take:
        return move_take(e, s, n, p, from);
    default:
        return move_view(e, s, p, from);
    }
}

// A divisor of the number of neighbours along the lanes that d and its operand
// have in common; 0 if both have the same columns.
static int64_t step_of(const Emit *e, const Node *d) {
    int last = d->type->rank - 1;
    if (last < 0 || d->type->dim[last] == 1)
        return 0;
    Type from = *e->g->node[d->arg[0]].type;
    int64_t inner = from.rank ? from.dim[from.rank - 1] : 1;
    if (d->op == OP_transpose)
        return node_ints(d, ATTR_order, last, 0) != last;
    if (d->op == OP_gather)
        return from.rank == 1;
    if (inner == d->type->dim[last])
        return 0;
    return gcd(inner, node_ints(d, ATTR_low, last, 0));
}

Index index_moved(Emit *e, Scope *s, NodeId n, Index p, const Expr **inside) {
    const Node *d = &e->g->node[n];
    if (p.lanes != NULL && !(pad_widens(e, d) && !is_named(p.lanes, "VW")))
        e->step = gcd(e->step, step_of(e, d));
    return move(e, s, n, p, inside);
}
