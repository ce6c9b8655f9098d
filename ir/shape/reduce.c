// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shape rules of reductions, which keep a reduced axis as 1 and drop leading
// ones.

#include "ir/shape/rule.h"

// t with the marked axes reduced: 1 each, and none where they lead.
static Type reduced_type(Type t, unsigned reduced) {
    Type r = {.dtype = t.dtype};
    int axis = 0;
    while (axis < t.rank && reduced >> axis & 1)
        axis++;
    for (; axis < t.rank; axis++)
        r.dim[r.rank++] = reduced >> axis & 1 ? 1 : t.dim[axis];
    return r;
}

static const char *check_axes(const Graph *g, const Attr *axes, Type t) {
    if (axes == NULL)
        return "it has no axes";
    for (int i = 0; i < axes->count; i++) {
        if (axes->ints[i] < 0 || axes->ints[i] >= t.rank)
            return arena_format(g->arena, "%s has no axis %lld", spell(g, &t),
                                (long long)axes->ints[i]);
        if (i > 0 && axes->ints[i] <= axes->ints[i - 1])
            return "its axes are not ascending";
    }
    return NULL;
}

const char *shape_reduce(const Graph *g, const Node *n, Type *out) {
    Type t = *operand(g, n, 0);
    const Attr *axes = node_attr(n, ATTR_axes);
    const char *why = check_axes(g, axes, t);
    if (why)
        return why;
    if (t.dtype == BOOL || (n->op == OP_var && !dtype_float(t.dtype)))
        return unfit(g, "it needs numbers", &t);
    unsigned reduced = 0;
    for (int i = 0; i < axes->count; i++) {
        reduced |= 1u << axes->ints[i];
        if (n->op == OP_max && t.dim[axes->ints[i]] == 0)
            return unfit(g, "the maximum of no elements is undefined", &t);
    }
    *out = reduced_type(t, reduced);
    out->dtype = dtype_float(t.dtype) ? F32 : I32;
    return NULL;
}

const char *shape_argmax(const Graph *g, const Node *n, Type *out) {
    Type t = *operand(g, n, 0);
    int64_t axis = node_int(n, ATTR_axis, t.rank - 1);
    if (t.rank == 0 || axis != t.rank - 1)
        return unfit(g, "it searches the last axis only", &t);
    if (t.dtype == BOOL)
        return unfit(g, "it needs numbers", &t);
    if (t.dim[axis] == 0)
        return unfit(g, "the maximum of no elements is undefined", &t);
    *out = reduced_type(t, 1u << axis);
    out->dtype = I32;
    return NULL;
}

const char *shape_reduce_all(const Graph *g, const Node *n, Type *out) {
    for (int i = 0; i < n->num_args; i++)
        if (!dtype_float(operand(g, n, i)->dtype))
            return unfit(g, "it needs float operands", operand(g, n, i));
    *out = type_scalar(F32);
    return NULL;
}
