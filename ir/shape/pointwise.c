// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shape rules of leaves, and of operations element by element.

#include "ir/shape/rule.h"

const char *shape_declared(const Graph *g, const Node *n, Type *out) {
    (void)g, (void)n, (void)out;
    return NULL;
}

const char *shape_constant(const Graph *g, const Node *n, Type *out) {
    const Attr *values = node_attr(n, ATTR_values);
    if (values == NULL)
        return "it has no values";
    if (values->count != 1 && values->count != type_count(out))
        return arena_format(g->arena, "%d values cannot fill %s", values->count,
                            spell(g, out));
    return NULL;
}

const char *shape_scalar(const Graph *g, const Node *n, Type *out) {
    (void)g, (void)n;
    *out = type_scalar(F32);
    return NULL;
}

const char *shape_same(const Graph *g, const Node *n, Type *out) {
    *out = *operand(g, n, 0);
    return NULL;
}

const char *shape_floating(const Graph *g, const Node *n, Type *out) {
    *out = *operand(g, n, 0);
    return dtype_float(out->dtype) ? NULL
                                   : unfit(g, "it needs a float operand", out);
}

const char *shape_predicate(const Graph *g, const Node *n, Type *out) {
    *out = *operand(g, n, 0);
    out->dtype = BOOL;
    return NULL;
}

const char *shape_cast(const Graph *g, const Node *n, Type *out) {
    DType to = out->dtype;
    *out = *operand(g, n, 0);
    out->dtype = to;
    return NULL;
}

const char *shape_broadcast(const Graph *g, const Node *n, Type *out) {
    Type from = *operand(g, n, 0), both = *out;
    if (!type_broadcast(&from, out, &both) || !type_has_shape(&both, out))
        return differ(g, "the first does not broadcast to the second", &from,
                      out);
    out->dtype = from.dtype;
    return NULL;
}

// The shape that every operand broadcasts to; out's dtype is left alone.
static const char *broadcast_operands(const Graph *g, const Node *n, Type *out) {
    DType dtype = out->dtype;
    *out = *operand(g, n, 0);
    out->dtype = dtype;
    for (int i = 1; i < n->num_args; i++)
        if (!type_has_shape(out, g->node[n->arg[i]].type) &&
            !type_broadcast(out, operand(g, n, i), out))
            return differ(g, "the shapes do not broadcast",
                          operand(g, n, i - 1), operand(g, n, i));
    return NULL;
}

// Activations and f32 promote to f32; the type that ACT stands for never occurs
// beside it, and integers do not convert to one another implicitly.
static bool promote_dtypes(DType a, DType b, DType *out) {
    if (a != b && !((a == F32 && b == ACT) || (a == ACT && b == F32)))
        return false;
    *out = a == b ? a : F32;
    return true;
}

// The common type of operands first and first + 1.
static const char *promote_from(const Graph *g, const Node *n, int first,
                             Type *out) {
    const Type *a = g->node[n->arg[first]].type;
    const Type *b = g->node[n->arg[first + 1]].type;
    if (!promote_dtypes(a->dtype, b->dtype, &out->dtype))
        return differ(g, "the element types do not mix", a, b);
    return broadcast_operands(g, n, out);
}

const char *shape_promote(const Graph *g, const Node *n, Type *out) {
    if (g->node[n->arg[0]].type->dtype == BOOL)
        return unfit(g, "it needs numbers", operand(g, n, 0));
    return promote_from(g, n, 0, out);
}

const char *shape_integer(const Graph *g, const Node *n, Type *out) {
    for (int i = 0; i < n->num_args; i++)
        if (operand(g, n, i)->dtype != I32)
            return unfit(g, "it needs i32 operands", operand(g, n, i));
    out->dtype = I32;
    return broadcast_operands(g, n, out);
}

const char *shape_compare(const Graph *g, const Node *n, Type *out) {
    const char *why = shape_promote(g, n, out);
    out->dtype = BOOL;
    return why;
}

const char *shape_logical(const Graph *g, const Node *n, Type *out) {
    for (int i = 0; i < n->num_args; i++)
        if (operand(g, n, i)->dtype != BOOL)
            return unfit(g, "it needs bool operands", operand(g, n, i));
    out->dtype = BOOL;
    return broadcast_operands(g, n, out);
}

const char *shape_select(const Graph *g, const Node *n, Type *out) {
    if (operand(g, n, 0)->dtype != BOOL)
        return unfit(g, "its condition must be bool", operand(g, n, 0));
    return promote_from(g, n, 1, out);
}

// The result of a var, the sum over the same elements, and one by their number.
const char *shape_var_finalize(const Graph *g, const Node *n, Type *out) {
    Type sum = *operand(g, n, 1);
    *out = *operand(g, n, 0);
    if (out->dtype != F32 || !type_is(out, &sum))
        return differ(g, "var and sum must be f32 of one shape", out,
                      &sum);
    return want_scalar(g, n, 2, F32);
}

const char *shape_uniform(const Graph *g, const Node *n, Type *out) {
    for (int i = 0; i < 2; i++) {
        const char *why = want_scalar(g, n, i, I32);
        if (why)
            return why;
    }
    int64_t words = node_int(n, ATTR_words, 1);
    if (words != 1 && words != 4)
        return "words must be 1 or 4";
    *out = *operand(g, n, 2);
    if (out->dtype != I32)
        return unfit(g, "its index must be i32", out);
    out->dtype = F32;
    return NULL;
}
