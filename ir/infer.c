// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The type of any node: the number of its operands, and its operation's rule.

#include "ir/ir.h"

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
