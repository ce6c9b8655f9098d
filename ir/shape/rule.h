// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared parts of the shape rules: operands and the phrases of their messages.
//
// A rule gives the type of a node from its operands and attributes.  It answers
// with a phrase when there is no type, so that the front end can put it under
// the user's text and the verifier under the node's.
#ifndef IR_SHAPE_RULE_H
#define IR_SHAPE_RULE_H

#include "ir/shape/shape.h"

static inline const Type *operand(const Graph *g, const Node *n, int i) {
    return g->node[n->arg[i]].type;
}

static inline const char *spell(const Graph *g, const Type *t) {
    Text text = text_new(g->arena);
    type_print(&text, t);
    return text_string(&text);
}

// "what: a and b", with both types.
static inline const char *differ(const Graph *g, const char *what,
                                 const Type *a, const Type *b) {
    return arena_format(g->arena, "%s: %s and %s", what, spell(g, a),
                        spell(g, b));
}

static inline const char *unfit(const Graph *g, const char *what,
                                const Type *t) {
    return arena_format(g->arena, "%s, not %s", what, spell(g, t));
}

static inline const char *want_scalar(const Graph *g, const Node *n, int i,
                                      DType d) {
    Type t = *operand(g, n, i);
    if (type_is(&t, (Type[]){type_scalar(d)}))
        return NULL;
    return arena_format(g->arena, "operand %d must be %s, not %s", i + 1,
                        spell(g, (Type[]){type_scalar(d)}), spell(g, &t));
}

static inline const char *want_real_pair(const Graph *g, const Node *n) {
    Type a = *operand(g, n, 0), b = *operand(g, n, 1);
    if (a.dtype == b.dtype && (a.dtype == F32 || a.dtype == ACT))
        return NULL;
    return differ(g, "both operands must be f32 or both act", &a, &b);
}

#endif
