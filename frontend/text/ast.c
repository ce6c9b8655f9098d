// Generic walks of the tree: an expression and its operands.

#include "frontend/text/ast.h"

int expr_num_parts(const Expr *x) {
    return 2 + x->count;
}

const Expr *expr_part(const Expr *x, int i) {
    if (i < 2)
        return i == 0 ? x->left : x->right;
    switch (x->kind) {
    case EXPR_LIST:
    case EXPR_EACH:
    case EXPR_IF:
        return x->item[i - 2];
    case EXPR_CALL:
        return x->argument[i - 2].value;
    case EXPR_PIPE:
        return x->stage[i - 2].call;
    default:
        return NULL;
    }
}
