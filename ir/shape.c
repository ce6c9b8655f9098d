// Shape rules: the type of a node from its operands and attributes.
//
// A rule answers with a phrase when there is no type, so that the front end
// can put it under the user's text and the verifier under the node's.

#include "ir/shape.h"

#include <string.h>

static const Type *operand(const Graph *g, const Node *n, int i) {
    return g->node[n->arg[i]].type;
}

static const char *spell(const Graph *g, const Type *t) {
    Text text = text_new(g->arena);
    type_print(&text, t);
    return text_string(&text);
}

// "what: a and b", with both types.
static const char *differ(const Graph *g, const char *what, const Type *a,
                          const Type *b) {
    return arena_format(g->arena, "%s: %s and %s", what, spell(g, a),
                        spell(g, b));
}

static const char *unfit(const Graph *g, const char *what, const Type *t) {
    return arena_format(g->arena, "%s, not %s", what, spell(g, t));
}

// ---- leaves ----

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

// ---- pointwise ----

const char *shape_same(const Graph *g, const Node *n, Type *out) {
    *out = *operand(g, n, 0);
    return NULL;
}

const char *shape_real(const Graph *g, const Node *n, Type *out) {
    *out = *operand(g, n, 0);
    return dtype_float(out->dtype) ? NULL
                                   : unfit(g, "it needs a float operand", out);
}

const char *shape_test(const Graph *g, const Node *n, Type *out) {
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

const char *shape_stretch(const Graph *g, const Node *n, Type *out) {
    Type from = *operand(g, n, 0), both = *out;
    if (!type_broadcast(&from, out, &both) || !type_has_shape(&both, out))
        return differ(g, "the first does not broadcast to the second", &from,
                      out);
    out->dtype = from.dtype;
    return NULL;
}

// The shape that every operand broadcasts to; out's dtype is left alone.
static const char *join_shapes(const Graph *g, const Node *n, Type *out) {
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

// Activations join with f32 as f32; what ACT stands for is never named beside
// it, and integers do not turn into one another unasked.
static bool join_dtypes(DType a, DType b, DType *out) {
    if (a != b && !((a == F32 && b == ACT) || (a == ACT && b == F32)))
        return false;
    *out = a == b ? a : F32;
    return true;
}

// The common type of operands first and first + 1.
static const char *join_from(const Graph *g, const Node *n, int first,
                             Type *out) {
    const Type *a = g->node[n->arg[first]].type;
    const Type *b = g->node[n->arg[first + 1]].type;
    if (!join_dtypes(a->dtype, b->dtype, &out->dtype))
        return differ(g, "the element types do not mix", a, b);
    return join_shapes(g, n, out);
}

const char *shape_join(const Graph *g, const Node *n, Type *out) {
    if (g->node[n->arg[0]].type->dtype == BOOL)
        return unfit(g, "it needs numbers", operand(g, n, 0));
    return join_from(g, n, 0, out);
}

const char *shape_whole(const Graph *g, const Node *n, Type *out) {
    for (int i = 0; i < n->num_args; i++)
        if (operand(g, n, i)->dtype != I32)
            return unfit(g, "it needs i32 operands", operand(g, n, i));
    out->dtype = I32;
    return join_shapes(g, n, out);
}

const char *shape_compare(const Graph *g, const Node *n, Type *out) {
    const char *why = shape_join(g, n, out);
    out->dtype = BOOL;
    return why;
}

const char *shape_logical(const Graph *g, const Node *n, Type *out) {
    for (int i = 0; i < n->num_args; i++)
        if (operand(g, n, i)->dtype != BOOL)
            return unfit(g, "it needs bool operands", operand(g, n, i));
    out->dtype = BOOL;
    return join_shapes(g, n, out);
}

const char *shape_select(const Graph *g, const Node *n, Type *out) {
    if (operand(g, n, 0)->dtype != BOOL)
        return unfit(g, "its condition must be bool", operand(g, n, 0));
    return join_from(g, n, 1, out);
}

static const char *want_scalar(const Graph *g, const Node *n, int i, DType d) {
    Type t = *operand(g, n, i);
    if (type_is(&t, (Type[]){type_scalar(d)}))
        return NULL;
    return arena_format(g->arena, "operand %d must be %s, not %s", i + 1,
                        spell(g, (Type[]){type_scalar(d)}), spell(g, &t));
}

// What a var left, the sum over the same elements, and one by their number.
const char *shape_variance(const Graph *g, const Node *n, Type *out) {
    Type sum = *operand(g, n, 1);
    *out = *operand(g, n, 0);
    if (out->dtype != F32 || !type_is(out, &sum))
        return differ(g, "variance and sum must be f32 of one shape", out,
                      &sum);
    return want_scalar(g, n, 2, F32);
}

const char *shape_uniform(const Graph *g, const Node *n, Type *out) {
    for (int i = 0; i < 2; i++) {
        const char *why = want_scalar(g, n, i, I32);
        if (why)
            return why;
    }
    *out = *operand(g, n, 2);
    if (out->dtype != I32)
        return unfit(g, "its index must be i32", out);
    out->dtype = F32;
    return NULL;
}

// ---- reductions ----

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
            return unfit(g, "the largest of nothing is not a number", &t);
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
        return unfit(g, "nothing has no largest element", &t);
    *out = reduced_type(t, 1u << axis);
    out->dtype = I32;
    return NULL;
}

const char *shape_overall(const Graph *g, const Node *n, Type *out) {
    for (int i = 0; i < n->num_args; i++)
        if (!dtype_float(operand(g, n, i)->dtype))
            return unfit(g, "it needs float operands", operand(g, n, i));
    *out = type_scalar(F32);
    return NULL;
}

// ---- other places of the same numbers ----

const char *shape_reshape(const Graph *g, const Node *n, Type *out) {
    Type t = *operand(g, n, 0);
    out->dtype = t.dtype;
    if (type_count(&t) != type_count(out))
        return differ(g, "the numbers of elements differ", &t, out);
    return NULL;
}

const char *shape_stack(const Graph *g, const Node *n, Type *out) {
    if (out->rank != 3 || out->dim[0] != n->num_args)
        return unfit(g, "it needs an axis for its operands, rows and columns",
                     out);
    out->dtype = operand(g, n, 0)->dtype;
    for (int i = 0; i < n->num_args; i++) {
        Type t = *operand(g, n, i);
        int64_t rows = t.rank > 0 ? t.dim[0] : 0;
        if (t.dtype != out->dtype || rows == 0)
            return unfit(g, "its operands must be matrices of one type", &t);
        if (rows > out->dim[1] || type_count(&t) / rows > out->dim[2])
            return differ(g, "an operand is too large", &t, out);
    }
    return NULL;
}

// Adds sign times low and high to each dimension.
static const char *resize(const Graph *g, const Node *n, int sign, Type *out) {
    const Attr *low = node_attr(n, ATTR_low), *high = node_attr(n, ATTR_high);
    Type t = *operand(g, n, 0);
    if (!low || !high || low->count != t.rank || high->count != t.rank)
        return unfit(g, "low and high must have a number for each axis", &t);
    for (int i = 0; i < t.rank; i++) {
        int64_t l = low->ints[i], h = high->ints[i];
        if (l < 0 || h < 0 || l > INT32_MAX || h > INT32_MAX)
            return "low and high must be in 0 .. 2147483647";
        t.dim[i] += sign * (l + h);
        if (t.dim[i] < 0)
            return unfit(g, "it drops more than there is", operand(g, n, 0));
    }
    *out = t;
    return NULL;
}

const char *shape_pad(const Graph *g, const Node *n, Type *out) {
    return resize(g, n, 1, out);
}

const char *shape_slice(const Graph *g, const Node *n, Type *out) {
    return resize(g, n, -1, out);
}

// Operand 0 is images, operand i holds one `dtype` for each image.
static const char *want_per_image(const Graph *g, const Node *n, int i,
                                  DType dtype) {
    Type image = *operand(g, n, 0), t = *operand(g, n, i);
    if (image.rank != 4)
        return unfit(g, "it needs images [N,H,W,C]", &image);
    Type want = type_of(dtype, 1, image.dim);
    if (type_is(&t, &want))
        return NULL;
    return arena_format(g->arena, "operand %d must be %s, not %s", i + 1,
                        spell(g, &want), spell(g, &t));
}

const char *shape_shift(const Graph *g, const Node *n, Type *out) {
    for (int i = 1; i <= 2; i++) {
        const char *why = want_per_image(g, n, i, I32);
        if (why)
            return why;
    }
    const char *mode = node_text(n, ATTR_mode);
    if (!mode || (strcmp(mode, "zero") != 0 && strcmp(mode, "edge") != 0 &&
                  strcmp(mode, "reflect") != 0))
        return "its mode must be zero, edge or reflect";
    *out = *operand(g, n, 0);
    return NULL;
}

const char *shape_flip(const Graph *g, const Node *n, Type *out) {
    const char *why = want_per_image(g, n, 1, BOOL);
    if (why)
        return why;
    *out = *operand(g, n, 0);
    return NULL;
}

// order names each axis of the operand once.
const char *shape_transpose(const Graph *g, const Node *n, Type *out) {
    Type t = *operand(g, n, 0);
    const Attr *order = node_attr(n, ATTR_order);
    unsigned seen = 0;
    if (!order || order->count != t.rank)
        return unfit(g, "its order must have a number for each axis", &t);
    *out = t;
    for (int i = 0; i < t.rank; i++) {
        int64_t axis = order->ints[i];
        if (axis < 0 || axis >= t.rank || seen >> axis & 1)
            return unfit(g, "its order must name each axis once", &t);
        seen |= 1u << axis;
        out->dim[i] = t.dim[axis];
    }
    return NULL;
}

// The rows of a table by an index: its shape, then that of a row.
static const char *rows_type(const Graph *g, Type table, Type index,
                             Type *out) {
    if (table.rank == 0 || index.dtype != I32)
        return differ(g, "it needs a table [V,...] and an i32 index", &table,
                      &index);
    if (table.dim[0] == 0)
        return unfit(g, "a table needs rows", &table);
    if (index.rank + table.rank - 1 > MAX_RANK)
        return differ(g, "the result has too many axes", &table, &index);
    *out = index;
    out->dtype = table.dtype;
    for (int i = 1; i < table.rank; i++)
        out->dim[out->rank++] = table.dim[i];
    return NULL;
}

const char *shape_gather(const Graph *g, const Node *n, Type *out) {
    return rows_type(g, *operand(g, n, 0), *operand(g, n, 1), out);
}

// Sums, and so f32.
const char *shape_gather_grad(const Graph *g, const Node *n, Type *out) {
    Type dy = *operand(g, n, 0), rows;
    out->dtype = F32;
    const char *why = rows_type(g, *out, *operand(g, n, 1), &rows);
    if (why)
        return why;
    if (!type_has_shape(&rows, &dy) || !dtype_float(dy.dtype))
        return differ(g, "gather gives the first, the gradient is the second",
                      &rows, &dy);
    return NULL;
}

const char *shape_take(const Graph *g, const Node *n, Type *out) {
    Type t = *operand(g, n, 0);
    if (t.rank != 4 || t.dim[1] == 0 || t.dim[2] == 0)
        return unfit(g, "it needs images [N,H,W,C]", &t);
    *out = t;
    for (int i = 1; i <= 2; i++) {
        Type index = *operand(g, n, i);
        if (index.dtype != I32 || index.rank != 2 || index.dim[0] != t.dim[0])
            return differ(g, "rows and columns must be i32[N,...]", &t, &index);
        out->dim[i] = index.dim[1];
    }
    return NULL;
}

// ---- windows ----

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
static int64_t places(const Node *n, Type image, int axis, int64_t window) {
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
        out->dim[1 + axis] = places(n, x, axis, window);
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

// Whether elements of type t can be packed: a number of bits that divides a
// byte, and rows that end where a byte does.
static const char *check_bits(const Graph *g, const Node *n, Type t) {
    int64_t bits = node_int(n, ATTR_bits, 0);
    if (bits != 1 && bits != 2 && bits != 4)
        return "bits must be 1, 2 or 4";
    if (t.dtype != U8 && (t.dtype != BOOL || bits != 1))
        return unfit(g, "it packs u8, or bool by single bits", &t);
    if (t.rank == 0 || t.dim[t.rank - 1] * bits % 8 != 0)
        return unfit(g, "its rows must fill whole bytes", &t);
    return NULL;
}

static Type packed_type(const Node *n, Type t) {
    t.dtype = U8;
    t.dim[t.rank - 1] = t.dim[t.rank - 1] * node_int(n, ATTR_bits, 0) / 8;
    return t;
}

const char *shape_pack(const Graph *g, const Node *n, Type *out) {
    Type t = *operand(g, n, 0);
    const char *why = check_bits(g, n, t);
    if (why == NULL)
        *out = packed_type(n, t);
    return why;
}

const char *shape_unpack(const Graph *g, const Node *n, Type *out) {
    Type from = *operand(g, n, 0);
    const char *why = check_bits(g, n, *out);
    if (why == NULL && !type_is(&from, (Type[]){packed_type(n, *out)}))
        why = differ(g, "packing gives the first, the operand is the second",
                     (Type[]){packed_type(n, *out)}, &from);
    return why;
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

// ---- library calls ----

static const char *want_real_pair(const Graph *g, const Node *n) {
    Type a = *operand(g, n, 0), b = *operand(g, n, 1);
    if (a.dtype == b.dtype && (a.dtype == F32 || a.dtype == ACT))
        return NULL;
    return differ(g, "both operands must be f32 or both act", &a, &b);
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
        y->dim[1 + axis] = places(n, x, axis, w.dim[1 + axis]);
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

const char *shape_conv_grad_input(const Graph *g, const Node *n, Type *out) {
    out->dtype = operand(g, n, 0)->dtype;
    if (call_adds_to(n) != NO_NODE && !type_is(operand(g, n, 2), out))
        return differ(g,
                      "what it adds to is the first, the gradient the second",
                      operand(g, n, 2), out);
    return check_conv_grad(g, n, *out, *operand(g, n, 1));
}

const char *shape_conv_grad_weight(const Graph *g, const Node *n, Type *out) {
    out->dtype = operand(g, n, 0)->dtype;
    return check_conv_grad(g, n, *operand(g, n, 1), *out);
}

const char *shape_matmul(const Graph *g, const Node *n, Type *out) {
    Type a = *operand(g, n, 0), b = *operand(g, n, 1);
    int ta = node_int(n, ATTR_ta, 0) != 0, tb = node_int(n, ATTR_tb, 0) != 0;
    const char *why = want_real_pair(g, n);
    if (why)
        return why;
    int last = a.rank - 1, rows = a.rank - 2;
    if (a.rank < 2 || b.rank != a.rank)
        return differ(g, "it needs two matrices, or as many of each", &a, &b);
    for (int i = 0; i < rows; i++)
        if (a.dim[i] != b.dim[i])
            return differ(g, "it needs as many matrices of each", &a, &b);
    if (a.dim[ta ? rows : last] != b.dim[tb ? last : rows])
        return differ(g, "columns and rows do not match", &a, &b);
    *out = a;
    out->dim[rows] = a.dim[ta ? last : rows];
    out->dim[last] = b.dim[tb ? rows : last];
    return NULL;
}

// ---- factors of a matrix ----

static const char *want_matrix(const Graph *g, Type t) {
    if (t.dtype == F32 && t.rank == 2)
        return NULL;
    return unfit(g, "it needs an f32 matrix", &t);
}

const char *shape_eigh(const Graph *g, const Node *n, Type *out) {
    Type t = *operand(g, n, 0);
    const char *why = want_matrix(g, t);
    if (why)
        return why;
    if (t.dim[0] != t.dim[1])
        return unfit(g, "it needs a square matrix", &t);
    *out = t;
    out->dim[0]++;
    return NULL;
}

const char *shape_orthogonal(const Graph *g, const Node *n, Type *out) {
    *out = *operand(g, n, 0);
    return want_matrix(g, *out);
}

// ---- composite operations ----

const char *shape_batch_norm(const Graph *g, const Node *n, Type *out) {
    Type x = *operand(g, n, 0);
    if (x.rank < 2 || !dtype_float(x.dtype))
        return unfit(g, "it needs float [N,...,C]", &x);
    Type channels = type_of(F32, 1, &x.dim[x.rank - 1]);
    for (int i = 1; i <= 2; i++)
        if (!type_is(operand(g, n, i), &channels))
            return differ(g, "scale and bias must be the first", &channels,
                          operand(g, n, i));
    if (type_count(&x) == 0 && type_count(&channels) > 0)
        return unfit(g, "nothing has no mean", &x);
    *out = x;
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
        return unfit(g, "the largest of nothing is not a number", &x);
    *out = x;
    return NULL;
}

// ---- training ----

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

// sgd's operands after the param are scalars of the run; adam's last one
// counts updates.
const char *shape_optimizer(const Graph *g, const Node *n, Type *out) {
    const char *why = want_param(g, n);
    for (int i = 1; !why && i < n->num_args; i++)
        why = want_scalar(g, n, i, n->op == OP_adam && i == 5 ? I32 : F32);
    if (!why)
        *out = *operand(g, n, 0);
    return why;
}

const char *shape_muon(const Graph *g, const Node *n, Type *out) {
    const char *why = shape_optimizer(g, n, out);
    const Attr *c = node_attr(n, ATTR_coefficients);
    if (!why && out->rank != 2 && out->rank != 4)
        why = "it needs a matrix or filters";
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

// ---- any node ----

NodeId call_adds_to(const Node *n) {
    bool adds = n->op == OP_conv_grad_input && n->num_args > 2 &&
                node_int(n, ATTR_accumulate, 0);
    return adds ? n->arg[2] : NO_NODE;
}

static const char *check_operands(const Graph *g, const Node *n) {
    int arity = op_info[n->op].arity + (call_adds_to(n) != NO_NODE);
    if (op_info[n->op].arity >= 0 && n->num_args != arity)
        return arena_format(g->arena, "it takes %d operands, not %d", arity,
                            n->num_args);
    for (int i = 0; i < n->num_args; i++)
        if (n->arg[i] >= g->count)
            return arena_format(g->arena, "there is no %%%lu yet",
                                (unsigned long)n->arg[i]);
    return NULL;
}

static bool is_byte(DType d) {
    return d == U8 || d == BOOL;
}

// Whether t is valid; of the first operand's shape it is so as that is, unless
// its elements take more bytes.
static bool is_valid(const Graph *g, const Node *n, const Type *t) {
    if (n->num_args > 0) {
        const Type *first = g->node[n->arg[0]].type;
        if ((unsigned)t->dtype < NUM_DTYPES &&
            (!is_byte(first->dtype) || is_byte(t->dtype)) &&
            type_has_shape(first, t))
            return true;
    }
    return type_valid(t);
}

const char *type_infer(const Graph *g, const Node *n, Type *out) {
    const char *why = check_operands(g, n);
    if (why)
        return why;
    const Type none = {0}, *given = n->type ? n->type : &none;
    if (!is_valid(g, n, given))
        return "the declared type is too large";
    Type t = *given;
    why = op_info[n->op].shape(g, n, &t);
    if (why)
        return why;
    if (!type_is(&t, given) && !is_valid(g, n, &t))
        return "the result is too large";
    *out = t;
    return NULL;
}
