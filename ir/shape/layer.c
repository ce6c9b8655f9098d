// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shape rules of composite operations and of those that train.

#include "ir/shape/rule.h"

#include <string.h>

const char *shape_batch_norm(const Graph *g, const Node *n, Type *out) {
    if (n->num_args < 3 || n->num_args > 4)
        return arena_format(g->arena, "it takes 3 or 4 operands, not %d",
                            n->num_args);
    Type x = *operand(g, n, 0), y = *operand(g, n, n->num_args == 4 ? 3 : 0);
    if (x.rank < 2 || !dtype_float(x.dtype))
        return unfit(g, "it needs float [N,...,C]", &x);
    Type channels = type_of(F32, 1, &x.dim[x.rank - 1]);
    for (int i = 1; i <= 2; i++)
        if (!type_is(operand(g, n, i), &channels))
            return differ(g, "scale and bias must be the first", &channels,
                          operand(g, n, i));
    if (type_count(&x) == 0 && type_count(&channels) > 0)
        return unfit(g, "the mean of no elements is undefined", &x);
    if (y.rank < 2 || y.dim[y.rank - 1] != x.dim[x.rank - 1] ||
        y.dtype != x.dtype)
        return differ(g, "values must have the type and the channels of", &x,
                      &y);
    *out = y;
    return NULL;
}

const char *shape_cross_entropy(const Graph *g, const Node *n, Type *out) {
    Type logits = *operand(g, n, 0), labels = *operand(g, n, 1);
    if (logits.rank != 2 || !dtype_float(logits.dtype))
        return unfit(g, "its logits must be float [M,K]", &logits);
    if (logits.dim[1] == 0)
        return unfit(g, "its logits need a class", &logits);
    if (!type_is(&labels, (Type[]){type_of(I32, 1, logits.dim)}) &&
        !type_is(&labels, (Type[]){type_of(F32, 2, logits.dim)}))
        return differ(g, "its labels must be i32[M] or f32[M,K]", &logits,
                      &labels);
    *out = type_of(F32, 2, (int64_t[]){logits.dim[0], 1});
    return NULL;
}

const char *shape_rows(const Graph *g, const Node *n, Type *out) {
    Type x = *operand(g, n, 0);
    if (x.rank == 0 || !dtype_float(x.dtype))
        return unfit(g, "it needs float rows", &x);
    if (node_int(n, ATTR_axis, x.rank - 1) != x.rank - 1)
        return unfit(g, "it works along the last axis only", &x);
    if (x.dim[x.rank - 1] == 0)
        return unfit(g, "the maximum of no elements is undefined", &x);
    *out = x;
    return NULL;
}

static const char *want_param(const Graph *g, const Node *n) {
    return g->node[n->arg[0]].op == OP_param
               ? NULL
               : "its first operand must be a param";
}

const char *shape_gradient(const Graph *g, const Node *n, Type *out) {
    Type param = *operand(g, n, 0), value = *operand(g, n, 1);
    const char *why = want_param(g, n);
    if (why)
        return why;
    if (!type_has_shape(&param, &value) || !dtype_float(value.dtype))
        return differ(g, "a gradient must fit its param", &param, &value);
    *out = value;
    return NULL;
}

// The operands after the param are scalars of the run, and perhaps the count
// of updates.
const char *shape_optimizer(const Graph *g, const Node *n, Type *out) {
    int scalars = optimizer_num_scalars(n->op);
    int want = 1 + scalars + optimizer_counts(n->op);
    if (n->num_args != want)
        return arena_format(g->arena, "it takes %d operands, not %d", want,
                            n->num_args);
    const char *why = want_param(g, n);
    for (int i = 1; !why && i < n->num_args; i++)
        why = want_scalar(g, n, i, i <= scalars ? F32 : I32);
    if (!why)
        *out = *operand(g, n, 0);
    return why;
}

const char *shape_muon(const Graph *g, const Node *n, Type *out) {
    const char *why = shape_optimizer(g, n, out);
    const Attr *c = node_attr(n, ATTR_coefficients);
    if (!why && ((out->rank != 2 && out->rank != 4) || type_count(out) == 0))
        why = "it needs a matrix or filters with elements";
    if (!why && (!c || c->count != 3))
        why = "it needs three coefficients";
    return why;
}

// The factor that a norm gives, or the largest value itself.
const char *shape_clip(const Graph *g, const Node *n, Type *out) {
    const char *mode = node_text(n, ATTR_mode);
    if (!mode || (strcmp(mode, "norm") != 0 && strcmp(mode, "value") != 0))
        return "its mode must be norm or value";
    *out = type_scalar(F32);
    return want_scalar(g, n, 0, F32);
}

const char *shape_factor(const Graph *g, const Node *n, Type *out) {
    *out = type_scalar(F32);
    return want_scalar(g, n, 0, F32);
}

const char *shape_assign(const Graph *g, const Node *n, Type *out) {
    const Node *to = &g->node[n->arg[0]], *value = &g->node[n->arg[1]];
    if (to->op != OP_param && to->op != OP_state)
        return "its first operand must be a param or a state";
    if (!type_is(to->type, value->type))
        return differ(g, "the types differ", to->type, value->type);
    *out = *value->type;
    return NULL;
}
