// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shape rules of operations that move a window over images [N,H,W,C]: pooling,
// resizing, convolutions.

#include "ir/shape/rule.h"

#include <string.h>

int64_t window_count(int64_t in, int64_t pads, int64_t window, int64_t stride,
                     int64_t dilation) {
    int64_t reach, room;
    if (window < 1 || stride < 1 || dilation < 1 ||
        __builtin_mul_overflow(dilation, window - 1, &reach) ||
        __builtin_add_overflow(in, pads, &room) ||
        __builtin_sub_overflow(room, reach, &room) || room < 1)
        return 0;
    return (room - 1) / stride + 1;
}

static const char *check_ints(const Graph *g, const Node *n, AttrKey key,
                              int count, int64_t least) {
    const Attr *attr = node_attr(n, key);
    if (attr == NULL)
        return NULL;
    for (int i = 0; i < attr->count; i++)
        if (attr->ints[i] < least || attr->ints[i] > INT32_MAX)
            return arena_format(g->arena, "its %s must be in %lld .. %d",
                                attr_info[key].name, (long long)least,
                                INT32_MAX);
    if (attr->count != count)
        return arena_format(g->arena, "its %s must have %d numbers, not %d",
                            attr_info[key].name, count, attr->count);
    return NULL;
}

static const char *check_window(const Graph *g, const Node *n) {
    const char *why = check_ints(g, n, ATTR_stride, 2, 1);
    if (!why)
        why = check_ints(g, n, ATTR_dilation, 2, 1);
    if (!why)
        why = check_ints(g, n, ATTR_pad, 4, 0);
    if (!why)
        why = check_ints(g, n, ATTR_window, 2, 1);
    return why;
}

// The number of windows along H (axis 0) or W (axis 1) of an image.
static int64_t output_size(const Node *n, Type image, int axis,
                           int64_t window) {
    int64_t pads = node_ints(n, ATTR_pad, 2 * axis, 0) +
                   node_ints(n, ATTR_pad, 2 * axis + 1, 0);
    return window_count(image.dim[1 + axis], pads, window,
                        node_ints(n, ATTR_stride, axis, 1),
                        node_ints(n, ATTR_dilation, axis, 1));
}

// The result of pooling x.  A window must not lie in the padding alone.
static const char *pool_type(const Graph *g, const Node *n, Type x, Type *out) {
    const char *why = check_window(g, n);
    if (why)
        return why;
    if (node_attr(n, ATTR_window) == NULL)
        return "it has no window";
    if (x.rank != 4 || !dtype_float(x.dtype))
        return unfit(g, "it needs float images [N,H,W,C]", &x);
    *out = x;
    for (int axis = 0; axis < 2; axis++) {
        int64_t window = node_ints(n, ATTR_window, axis, 1);
        if (node_ints(n, ATTR_pad, 2 * axis, 0) >= window ||
            node_ints(n, ATTR_pad, 2 * axis + 1, 0) >= window)
            return "its pad must be smaller than its window";
        out->dim[1 + axis] = output_size(n, x, axis, window);
        if (x.dim[1 + axis] == 0 || out->dim[1 + axis] == 0)
            return unfit(g, "the window must fit the image", &x);
    }
    return NULL;
}

const char *shape_pool(const Graph *g, const Node *n, Type *out) {
    return pool_type(g, n, *operand(g, n, 0), out);
}

const char *shape_pool_index(const Graph *g, const Node *n, Type *out) {
    const char *why = pool_type(g, n, *operand(g, n, 0), out);
    if (why)
        return why;
    int64_t size =
        node_ints(n, ATTR_window, 0, 1) * node_ints(n, ATTR_window, 1, 1);
    out->dtype = size <= 256 ? U8 : I32;
    return NULL;
}

// max_pool_grad: index, dy.  avg_pool_grad: dy.
const char *shape_unpool(const Graph *g, const Node *n, Type *out) {
    Type dy = *operand(g, n, n->num_args - 1), pooled;
    out->dtype = dy.dtype;
    const char *why = pool_type(g, n, *out, &pooled);
    if (why)
        return why;
    if (!type_has_shape(&pooled, &dy))
        return differ(g, "pooling gives the first, the gradient is the second",
                      &pooled, &dy);
    pooled.dtype =
        node_ints(n, ATTR_window, 0, 1) * node_ints(n, ATTR_window, 1, 1) <= 256
            ? U8
            : I32;
    if (n->num_args == 2 && !type_is(operand(g, n, 0), &pooled))
        return differ(g, "its index is the first and must be the second",
                      operand(g, n, 0), &pooled);
    return NULL;
}

// Places are counted in 32 bits, also those that lie between pixels.
static const char *check_size(const Graph *g, const Node *n, Type image) {
    const Attr *size = node_attr(n, ATTR_size);
    const char *mode = node_text(n, ATTR_mode);
    const char *why = check_ints(g, n, ATTR_size, 2, 1);
    if (why)
        return why;
    if (size == NULL)
        return "it has no size";
    if (!mode ||
        (strcmp(mode, "nearest") != 0 && strcmp(mode, "bilinear") != 0))
        return "its mode must be nearest or bilinear";
    if (image.rank != 4 || !dtype_float(image.dtype))
        return unfit(g, "it needs float images [N,H,W,C]", &image);
    for (int i = 0; i < 2; i++)
        if (type_count(&image) == 0 ||
            image.dim[1 + i] * size->ints[i] > INT32_MAX / 8)
            return unfit(g, "it cannot make that size", &image);
    return NULL;
}

const char *shape_resize(const Graph *g, const Node *n, Type *out) {
    const char *why = check_size(g, n, *operand(g, n, 0));
    if (why)
        return why;
    *out = *operand(g, n, 0);
    for (int i = 0; i < 2; i++)
        out->dim[1 + i] = node_ints(n, ATTR_size, i, 0);
    return NULL;
}

const char *shape_unresize(const Graph *g, const Node *n, Type *out) {
    Type dy = *operand(g, n, 0), y;
    out->dtype = dy.dtype;
    const char *why = check_size(g, n, *out);
    if (why)
        return why;
    y = *out;
    for (int i = 0; i < 2; i++)
        y.dim[1 + i] = node_ints(n, ATTR_size, i, 0);
    if (!type_has_shape(&y, &dy))
        return differ(g, "resize gives the first, the gradient is the second",
                      &y, &dy);
    return NULL;
}

// y = conv(x, w): x [N,H,W,C], w [K,R,S,C/groups].
static const char *conv_type(const Graph *g, const Node *n, Type x, Type w,
                             Type *y) {
    const char *why = check_window(g, n);
    if (why)
        return why;
    int64_t groups = node_int(n, ATTR_groups, 1);
    if (groups < 1 || groups > INT32_MAX)
        return "its groups must be in 1 .. 2147483647";
    if (x.rank != 4 || w.rank != 4)
        return differ(g, "it needs x [N,H,W,C] and w [K,R,S,C/groups]", &x, &w);
    if (x.dim[3] != w.dim[3] * groups || w.dim[0] % groups != 0)
        return differ(g, "the channels do not fit the groups", &x, &w);
    *y = type_of(x.dtype, 4, x.dim);
    y->dim[3] = w.dim[0];
    for (int axis = 0; axis < 2; axis++) {
        y->dim[1 + axis] = output_size(n, x, axis, w.dim[1 + axis]);
        if (y->dim[1 + axis] == 0)
            return differ(g, "the window must fit the image", &x, &w);
    }
    return NULL;
}

const char *shape_conv(const Graph *g, const Node *n, Type *out) {
    const char *why = want_real_pair(g, n);
    return why ? why
               : conv_type(g, n, *operand(g, n, 0), *operand(g, n, 1), out);
}

// The gradient dy of conv(x, w) must have its shape.
static const char *check_conv_grad(const Graph *g, const Node *n, Type x,
                                   Type w) {
    Type y, dy = *operand(g, n, 0);
    const char *why = want_real_pair(g, n);
    if (!why)
        why = conv_type(g, n, x, w, &y);
    if (!why && !type_has_shape(&y, &dy))
        why = differ(g, "conv gives the first, the gradient is the second", &y,
                     &dy);
    return why;
}

NodeId call_adds_to(const Node *n) {
    bool adds = n->op == OP_conv_grad_input && n->num_args > 2 &&
                node_int(n, ATTR_accumulate, 0);
    return adds ? n->arg[2] : NO_NODE;
}

const char *shape_conv_grad_input(const Graph *g, const Node *n, Type *out) {
    out->dtype = operand(g, n, 0)->dtype;
    if (call_adds_to(n) != NO_NODE && !type_is(operand(g, n, 2), out))
        return differ(g, "the addend is the first, the gradient the second",
                      operand(g, n, 2), out);
    return check_conv_grad(g, n, *out, *operand(g, n, 1));
}

const char *shape_conv_grad_weight(const Graph *g, const Node *n, Type *out) {
    out->dtype = operand(g, n, 0)->dtype;
    return check_conv_grad(g, n, *operand(g, n, 1), *out);
}
