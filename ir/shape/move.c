// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shape rules of operations that move elements without arithmetic.

#include "ir/shape/rule.h"

#include <string.h>

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
    Type t = *operand(g, n, 0), rows = *operand(g, n, 1);
    if (t.rank != 4 || t.dim[1] == 0 || t.dim[2] == 0)
        return unfit(g, "it needs images [N,H,W,C]", &t);
    *out = t;
    for (int i = 1; i <= 2; i++) {
        Type index = *operand(g, n, i);
        if (index.dtype != I32 || index.rank < 2 || index.rank > 3 ||
            index.dim[0] != t.dim[0])
            return differ(g, "rows and columns must be i32[N,...]", &t, &index);
        if (index.rank != rows.rank ||
            (rows.rank == 3 && !type_has_shape(&index, &rows)))
            return differ(g, "rows and columns of pixels must have one shape",
                          &rows, &index);
        out->dim[i] = index.dim[rows.rank == 3 ? i : 1];
    }
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
