// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shape rules of attention.

#include "ir/attention.h"
#include "ir/shape/rule.h"

// Numbers of dropout are counted in i32, up to the end of a tile.
enum { MAX_NUMBERS = INT32_MAX - 4096 };

static const char *want_heads(const Graph *g, const Node *n, const Type *qkv) {
    int64_t heads = node_int(n, ATTR_heads, 1);
    int64_t kv_heads = node_int(n, ATTR_kv_heads, heads);
    if (qkv->rank != 3 || (qkv->dtype != F32 && qkv->dtype != ACT) ||
        qkv->dim[1] == 0)
        return unfit(g, "it needs positions, f32 or act [N,T,channels]", qkv);
    if (heads < 1 || kv_heads < 1 || kv_heads > heads || heads % kv_heads != 0)
        return "kv_heads must divide heads";
    if (heads > INT32_MAX / 4 || qkv->dim[2] == 0 ||
        qkv->dim[2] % (heads + 2 * kv_heads) != 0)
        return unfit(g, "its channels must divide into heads", qkv);
    if (qkv->dim[2] / (heads + 2 * kv_heads) > MAX_HEAD_SIZE)
        return unfit(g, "its heads are too large", qkv);
    return NULL;
}

// The operands: so many tensors, then a seed and an epoch.
static const char *want_operands(const Graph *g, const Node *n, int tensors) {
    double dropout = node_float(n, ATTR_dropout, 0);
    if (n->num_args < tensors)
        return "it lacks operands";
    const char *why = want_heads(g, n, operand(g, n, 0));
    if (why != NULL)
        return why;
    if (!(dropout >= 0 && dropout < 1))
        return "dropout must be at least 0 and below 1";
    if (n->num_args != tensors + (dropout > 0 ? 2 : 0))
        return "it needs a seed and an epoch if it has dropout, else neither";
    for (int i = tensors; i < n->num_args && why == NULL; i++)
        why = want_scalar(g, n, i, I32);
    Attention s = attention_of(g, n);
    if (why == NULL && s.samples * s.heads > INT32_MAX / (s.positions + 1))
        return "it has too many rows";
    if (why == NULL && dropout > 0 &&
        s.positions * s.samples * s.heads > MAX_NUMBERS / attention_row(&s))
        return "dropout is limited to 2^31 - 1 numbers";
    return why;
}

const char *shape_attention(const Graph *g, const Node *n, Type *out) {
    const char *why = want_operands(g, n, 1);
    if (why != NULL)
        return why;
    Attention s = attention_of(g, n);
    *out = *operand(g, n, 0);
    out->dim[2] = s.heads * s.size;
    return NULL;
}

static Type lse_type(const Attention *s) {
    return type_of(F32, 3, (int64_t[]){s->samples, s->heads, s->positions});
}

const char *shape_attention_lse(const Graph *g, const Node *n, Type *out) {
    const char *why = want_operands(g, n, 1);
    if (why != NULL)
        return why;
    Attention s = attention_of(g, n);
    *out = lse_type(&s);
    return NULL;
}

const char *shape_attention_grad(const Graph *g, const Node *n, Type *out) {
    const char *why = want_operands(g, n, 4);
    if (why != NULL)
        return why;
    Attention s = attention_of(g, n);
    Type result = *operand(g, n, 0), lse = lse_type(&s);
    result.dim[2] = s.heads * s.size;
    for (int i = 1; i <= 2; i++)
        if (!type_is(operand(g, n, i), &result))
            return differ(g, "the result and its gradient must be", &result,
                          operand(g, n, i));
    if (!type_is(operand(g, n, 3), &lse))
        return differ(g, "the logarithms must be", &lse, operand(g, n, 3));
    *out = *operand(g, n, 0);
    return NULL;
}
