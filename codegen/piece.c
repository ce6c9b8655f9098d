// Pieces: tensors that are parts of larger ones, as a slice of what a library
// left, in kernels that walk over the elements of the piece.

#include "codegen/member.h"

enum { MOST_LANES = 64 }; // on any device

// Elements before the first of a slice.
static int64_t start_of(const Emit *e, NodeId n) {
    const Node *d = &e->g->node[n];
    Type outer = *e->g->node[d->arg[0]].type;
    int64_t start = 0, stride = 1;
    for (int i = outer.rank - 1; i >= 0; i--) {
        start += stride * node_ints(d, ATTR_low, i, 0);
        stride *= outer.dim[i];
    }
    return start;
}

// A slice lies together where all axes before the last that is cut have one
// element; vectors must begin where they may.
bool piece_is_awkward(const Emit *e, NodeId n) {
    const Node *d = &e->g->node[n];
    Type inner = *d->type, outer = *e->g->node[d->arg[0]].type;
    int64_t before = 1;
    int cut = inner.rank - 1;
    while (cut > 0 && inner.dim[cut] == outer.dim[cut])
        cut--;
    for (int i = 0; i < cut; i++)
        before *= inner.dim[i];
    return before != 1 || start_of(e, n) % MOST_LANES != 0;
}

// The index on axis i, from `low` on, of the element of that number; behind one
// of the axis are `stride` elements.
static const char *index_of(Emit *e, Type inner, int i, int64_t stride,
                            int64_t low, const char *number) {
    if (inner.dim[i] == 1)
        return arena_format(e->a, "%lld", (long long)low);
    if (stride > 1)
        number = arena_format(e->a, "%s / %lld", number, (long long)stride);
    if (stride * inner.dim[i] < type_count(&inner))
        number =
            arena_format(e->a, "%s %% %lld", number, (long long)inner.dim[i]);
    return low == 0 ? number
                    : arena_format(e->a, "%s + %lld", number, (long long)low);
}

const char *piece_offset(Emit *e, Scope *s, Type inner, Type outer,
                         const Node *low, const char *number) {
    Place p = {.rank = inner.rank};
    int64_t stride = 1;
    for (int i = inner.rank - 1; i >= 0; i--) {
        const char *index = index_of(e, inner, i, stride,
                                     node_ints(low, ATTR_low, i, 0), number);
        p.dim[i] = outer.dim[i];
        p.index[i] = is_name(index) ? index : index_new(e, s, "x", index);
        stride *= inner.dim[i];
    }
    return place_offset(e, p);
}

const char *piece_value(Emit *e, Scope *s, NodeId n, Place p) {
    const Node *d = &e->g->node[n];
    const char *pointer = pointer_name(e, d->arg[0]);
    const char *suffix = access_suffix(d->type->dtype);
    if (p.lanes == NULL) {
        const char *offset = piece_offset(
            e, s, *d->type, *e->g->node[d->arg[0]].type, d, p.index[0]);
        return value_set(
            e, s, n, p,
            arena_format(e->a, "get_%s(%s + %s)", suffix, pointer, offset));
    }
    const char *start =
        number_text(e, arena_format(e->a, "%lld", (long long)start_of(e, n)));
    const char *name = value_name(e, "v", n);
    text_line(&s->before, "%s %s[VW];", held_type(d->type->dtype), name);
    text_line(&s->before, "load_%s(%s, %s + %s + %s, VW);", suffix, name,
              pointer, start, p.index[0]);
    value_define(e, s, n, p, HELD_ARRAY, name);
    return arena_format(e->a, "%s[k]", name);
}
