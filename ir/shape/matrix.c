// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shape rules of products and factors of matrices.

#include "ir/shape/rule.h"

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
