// Places: which element of an operand an element needs, as C expressions.

#include "codegen/emit.h"

#include <ctype.h>
#include <string.h>

static bool is_zero(const char *index) {
    return strcmp(index, "0") == 0;
}

Place place_broadcast(Place p, Type operand) {
    if (p.flat) {
        if (type_count(&operand) == 1)
            return (Place){.flat = true, .rank = 0};
        return p;
    }
    Place q = {.rank = operand.rank, .lanes = p.lanes};
    for (int i = 0; i < operand.rank; i++) {
        int from = i + p.rank - operand.rank;
        q.dim[i] = operand.dim[i];
        q.index[i] = operand.dim[i] == 1 || from < 0 ? "0" : p.index[from];
    }
    q.whole = p.whole && operand.rank == p.rank;
    for (int i = 0; i < operand.rank && q.whole; i++)
        q.whole = operand.dim[i] == p.dim[i];
    if (operand.rank == 0 || operand.dim[operand.rank - 1] == 1)
        q.lanes = NULL;
    return q;
}

bool is_name(const char *index) {
    for (const char *s = index; *s != '\0'; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    return true;
}

const char *index_operand(Emit *e, const char *index) {
    return is_name(index) ? index : arena_format(e->a, "(%s)", index);
}

bool has_rows(Place p) {
    for (int i = 0; i + 1 < p.rank; i++)
        if (!is_zero(p.index[i]))
            return true;
    return false;
}

const char *place_offset(Emit *e, Place p) {
    const char *text = NULL;
    bool sum = false;   // whether text must be put in parentheses to multiply
    int64_t stride = 1; // that it still has to be multiplied by
    if (p.flat)
        return p.rank == 0 ? "0" : p.index[0];
    if (p.whole && p.rank > 2 && has_rows(p))
        return arena_format(e->a, "(size_t)i * " COLUMNS " + %s",
                            p.index[p.rank - 1]);
    for (int i = 0; i < p.rank; i++) {
        stride *= p.dim[i];
        if (is_zero(p.index[i]))
            continue;
        const char *index = index_operand(e, p.index[i]);
        if (text == NULL) {
            text = i + 1 < p.rank ? arena_format(e->a, "(size_t)%s", index)
                                  : p.index[i];
        } else {
            text = arena_format(
                e->a, sum ? "(%s) * " SIZE " + %s" : "%s * " SIZE " + %s", text,
                (long long)stride, index);
            sum = true;
        }
        stride = 1;
    }
    if (text == NULL)
        return "0";
    return stride == 1 ? text
                       : arena_format(e->a, sum ? "(%s) * " SIZE : "%s * " SIZE,
                                      text, (long long)stride);
}

const char *place_key(Emit *e, Place p) {
    Text t = text_new(e->a);
    for (int i = 0; i < p.rank; i++)
        if (!is_zero(p.index[i]))
            text_add(&t, "%d:%s,", i - p.rank, p.index[i]);
    if (p.lanes != NULL)
        text_add(&t, "*%s", p.lanes);
    return text_string(&t);
}

static const char *declared(Emit *e, Scope *s, const char *type,
                            const char *stem, const char *value) {
    const char *name = arena_format(e->a, "%s%d", stem, ++e->num_indices);
    text_line(&s->before, "const %s %s = %s;", type, name, value);
    ARENA_APPEND(e->a, e->index, e->num_declared, (Index){name, s});
    return name;
}

const char *index_new(Emit *e, Scope *s, const char *stem, const char *value) {
    return declared(e, s, "int", stem, value);
}

static void require(Emit *e, const char **inside, const char *condition) {
    *inside = *inside == NULL
                  ? condition
                  : arena_format(e->a, "%s && %s", *inside, condition);
}

// Narrows an index to 0 .. count-1, where it is outside to the nearest end; a
// vector of lanes is inside as a whole or not at all.
static const char *index_bounded(Emit *e, Scope *s, const char *index,
                                 int64_t count, const char *lanes,
                                 const char **inside) {
    require(e, inside,
            arena_format(e->a, "%s >= 0 && %s < " SIZE, index, index,
                         (long long)count));
    const char *starts = arena_format(e->a, "%lld", (long long)count);
    if (lanes != NULL && e->step > 1)
        starts = arena_format(e->a, "%s - %s + 1", starts, lanes);
    return index_new(e, s, "i",
                     arena_format(e->a, "clamp(%s, %s)", index, starts));
}

static Place move_pad(Emit *e, Scope *s, NodeId n, Place p, Type from,
                      const char **inside, int sign) {
    const Node *d = &e->g->node[n];
    Place q = p;
    q.whole = false;
    for (int i = 0; i < from.rank; i++) {
        int64_t low = node_ints(d, ATTR_low, i, 0) * sign;
        q.dim[i] = from.dim[i];
        if (low != 0)
            q.index[i] = index_new(
                e, s, "i",
                arena_format(e->a, "%s + " SIZE, p.index[i], (long long)low));
        if (sign < 0 && from.dim[i] != p.dim[i])
            q.index[i] =
                index_bounded(e, s, q.index[i], from.dim[i],
                              i == from.rank - 1 ? p.lanes : NULL, inside);
    }
    return q;
}

// Images [N,H,W,C] moved by an offset for each sample.
static Place move_shift(Emit *e, Scope *s, NodeId n, Place p,
                        const char **inside) {
    const Node *d = &e->g->node[n];
    const char *mode = node_text(d, ATTR_mode);
    Place sample = {.rank = 1, .dim = {p.dim[0]}, .index = {p.index[0]}};
    Place q = p;
    q.whole = false;
    for (int i = 1; i <= 2; i++) {
        const char *by = value_at(e, s, d->arg[i], sample);
        const char *index =
            index_new(e, s, i == 1 ? "h" : "w",
                      arena_format(e->a, "%s + %s", p.index[i], by));
        if (strcmp(mode, "zero") == 0)
            q.index[i] = index_bounded(e, s, index, p.dim[i], NULL, inside);
        else
            q.index[i] = index_new(
                e, s, i == 1 ? "h" : "w",
                arena_format(e->a, "%s(%s, %lld)",
                             strcmp(mode, "edge") == 0 ? "clamp" : "reflect",
                             index, (long long)p.dim[i]));
    }
    return q;
}

static Place move_flip(Emit *e, Scope *s, NodeId n, Place p) {
    Place sample = {.rank = 1, .dim = {p.dim[0]}, .index = {p.index[0]}};
    const char *mirrored = value_at(e, s, e->g->node[n].arg[1], sample);
    Place q = p;
    q.whole = false;
    q.index[2] = index_new(e, s, "w",
                           arena_format(e->a, "%s ? %lld - %s : %s", mirrored,
                                        (long long)p.dim[2] - 1, p.index[2],
                                        p.index[2]));
    return q;
}

static Place move_transpose(Emit *e, NodeId n, Place p, Type from) {
    const Attr *order = node_attr(&e->g->node[n], ATTR_order);
    Place q = {.rank = p.rank, .lanes = p.lanes};
    for (int i = 0; i < p.rank; i++) {
        q.dim[order->ints[i]] = from.dim[order->ints[i]];
        q.index[order->ints[i]] = p.index[i];
    }
    return q;
}

// Operand i of node n at p, as an index in 0 .. count-1.
static const char *index_from(Emit *e, Scope *s, NodeId n, int i, Place p,
                              int64_t count) {
    const char *index = value_at(e, s, e->g->node[n].arg[i], p);
    return index_new(
        e, s, "i",
        arena_format(e->a, "clamp(%s, %lld)", index, (long long)count));
}

// The first axes of p name an element of the index, the others one of a row.
static Place move_gather(Emit *e, Scope *s, NodeId n, Place p, Type table) {
    Type index = *e->g->node[e->g->node[n].arg[1]].type;
    Place at = {.rank = index.rank}, q = {.rank = table.rank};
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

// Images [N,H,W,C] at rows and columns that each image has its own of.
static Place move_take(Emit *e, Scope *s, NodeId n, Place p, Type from) {
    Place q = p;
    q.whole = false;
    for (int i = 1; i <= 2; i++) {
        Place at = {.rank = 2,
                    .dim = {p.dim[0], p.dim[i]},
                    .index = {p.index[0], p.index[i]}};
        q.dim[i] = from.dim[i];
        q.index[i] = index_from(e, s, n, i, at, from.dim[i]);
    }
    return q;
}

// The same element under another shape.  Axes of size 1 come and go freely, and
// the last axes stay as they are where both shapes end in them; anything else
// goes through the number of the element.
static Place move_view(Emit *e, Scope *s, Place p, Type from) {
    Place q = {.rank = from.rank}, rest = p;
    int i = from.rank;
    int64_t stride = 1, left = 1;
    if (from.rank > 0 && from.dim[from.rank - 1] != 1)
        q.lanes = p.lanes;
    for (int k = 0; k < from.rank; k++) {
        q.dim[k] = from.dim[k];
        q.index[k] = "0";
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
    rest.whole = false;
    const char *number = type_count(&from) > INT32_MAX ? "size_t" : "int";
    const char *element = place_offset(e, rest);
    if (!is_name(element))
        element = declared(e, s, number, "i", element);
    for (int k = 0; k < i; k++)
        left *= from.dim[k];
    while (i-- > 0) {
        if (from.dim[i] <= 1)
            continue;
        const char *index = element;
        left /= from.dim[i];
        if (stride > 1)
            index = arena_format(e->a, "%s / %lld", index, (long long)stride);
        if (left > 1)
            index =
                arena_format(e->a, "%s %% %lld", index, (long long)from.dim[i]);
        q.index[i] = index == element ? element : index_new(e, s, "i", index);
        stride *= from.dim[i];
    }
    return q;
}

Place place_moved(Emit *e, Scope *s, NodeId n, Place p, const char **inside) {
    const Node *d = &e->g->node[n];
    Type from = *e->g->node[d->arg[0]].type;
    *inside = NULL;
    if (p.flat) // views only: the number of an element stays the same
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
