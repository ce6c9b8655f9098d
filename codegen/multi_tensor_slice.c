// Slices in multi-tensor kernels: the kernel iterates over the elements of a
// slice of a larger tensor, such as a library call's result.

#include "codegen/multi_tensor.h"

// A slice is contiguous if axes before the last cut one have one element.
// Vectors must be aligned.
bool slice_is_scalarized(const Emit *e, NodeId n) {
    const Node *d = &e->g->node[n];
    Type inner = *d->type, outer = *e->g->node[d->arg[0]].type;
    int64_t before = 1;
    int cut = inner.rank - 1;
    while (cut > 0 && inner.dim[cut] == outer.dim[cut])
        cut--;
    for (int i = 0; i < cut; i++)
        before *= inner.dim[i];
    return before != 1 || slice_start(e->g, n) % MAX_LANES != 0;
}

// The index on axis i, from `low` on, of the element of that number; the axis
// has stride `stride`.
static const Expr *index_of(Emit *e, Type inner, int i, int64_t stride,
                            int64_t low, const Expr *number) {
    if (inner.dim[i] == 1)
        return x_number(e->a, low);
    if (stride > 1)
        number = EXPR(e, "$ / $", number, x_number(e->a, stride));
    if (stride * inner.dim[i] < type_count(&inner))
        number = EXPR(e, "$ % $", number, x_number(e->a, inner.dim[i]));
    return low == 0 ? number : EXPR(e, "$ + $", number, x_number(e->a, low));
}

const Expr *slice_offset(Emit *e, Scope *s, Type inner, Type outer,
                         const Node *low, const Expr *number) {
    Index p = {.rank = inner.rank};
    int64_t stride = 1;
    for (int i = inner.rank - 1; i >= 0; i--) {
        const Expr *index = index_of(e, inner, i, stride,
                                     node_ints(low, ATTR_low, i, 0), number);
        bool simple = index->kind == X_NAME || index->kind == X_NUMBER;
        p.dim[i] = outer.dim[i];
        p.index[i] = simple ? index : index_new(e, s, "x", index);
        stride *= inner.dim[i];
    }
    return index_offset(e, p);
}

const Expr *slice_value(Emit *e, Scope *s, NodeId n, Index p) {
    const Node *d = &e->g->node[n];
    const Expr *pointer = pointer_name(e, d->arg[0]);
    const char *suffix = access_suffix(d->type->dtype);
    if (p.lanes == NULL) {
        const Expr *offset = slice_offset(
            e, s, *d->type, *e->g->node[d->arg[0]].type, d, p.index[0]);
        return value_set(e, s, n, p,
                         EXPR(e, arena_format(e->a, "get_%s($)", suffix),
                              x_address(e->a, pointer, offset)));
    }
    const Expr *start = integer_of(e, slice_start(e->g, n));
    const Expr *name = array_new(e, s, n, p);
    CODE(e, &s->before, n,
         arena_format(e->a, "load_%s($, $ + $ + $, VW);", suffix), name,
         pointer, start, p.index[0]);
    return array_define(e, s, n, p, name);
}
