// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A node being computed, and the rules of the operations, for eval.c.
#ifndef IR_EVAL_RULE_H
#define IR_EVAL_RULE_H

#include "ir/ir.h"

#include <math.h>

typedef struct {
    const Graph *g;
    const Node *n;
    double *out;          // its own elements; zeros at first, if not pointwise
    double *const *value; // of every node before this one
    Arena *arena;
} Eval;

static inline const Type *arg_type(const Eval *e, int i) {
    return e->g->node[e->n->arg[i]].type;
}

static inline const double *arg(const Eval *e, int i) {
    return e->value[e->n->arg[i]];
}

// Element [n,h,w,c] of images.
static inline int64_t pixel(Type t, int64_t n, int64_t h, int64_t w,
                            int64_t c) {
    return ((n * t.dim[1] + h) * t.dim[2] + w) * t.dim[3] + c;
}

// NaN is larger than any number, so that a run that diverges shows it.
static inline bool larger(double v, double best) {
    return v > best || isnan(v);
}

// ---- pointwise.c: whatever is pointwise ----

void eval_pointwise(const Eval *e);

// ---- reduce.c ----

void eval_sum(const Eval *e);
void eval_max(const Eval *e);
void eval_var(const Eval *e);
void eval_argmax(const Eval *e);
void eval_all_finite(const Eval *e);
void eval_total(const Eval *e);

// ---- move.c: elements moved without arithmetic ----

void eval_copy(const Eval *e);
void eval_pad(const Eval *e);
void eval_slice(const Eval *e);
void eval_stack(const Eval *e);
void eval_shift(const Eval *e);
void eval_flip(const Eval *e);
void eval_pack(const Eval *e);
void eval_unpack(const Eval *e);
void eval_transpose(const Eval *e);
void eval_gather(const Eval *e);
void eval_gather_grad(const Eval *e);
void eval_take(const Eval *e);

// ---- window.c ----

void eval_max_pool(const Eval *e);
void eval_max_pool_index(const Eval *e);
void eval_max_pool_grad(const Eval *e);
void eval_avg_pool(const Eval *e);
void eval_avg_pool_grad(const Eval *e);
void eval_resize(const Eval *e);
void eval_resize_grad(const Eval *e);

// ---- composite.c: operations that stand for several simpler ones ----

void eval_batch_norm(const Eval *e);
void eval_cross_entropy(const Eval *e);
void eval_softmax(const Eval *e);
void eval_log_softmax(const Eval *e);

// ---- attention.c ----

void eval_attention(const Eval *e);
void eval_attention_lse(const Eval *e);
void eval_attention_grad(const Eval *e);

#endif
