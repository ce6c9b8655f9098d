// Pointwise operations: one scalar statement for each node.
//
// Operands are names, never expressions.  So the templates in ops.def need no
// parentheses, and nothing is evaluated twice.

#include "codegen/emit.h"

static const char *const template[NUM_OPS] = {
#define OP(name, ...) [OP_##name] =
#define EMIT(expr) expr,
#include "ir/ops.def"
};

const char *held_type(DType d) {
    return dtype_float(d) ? "float" : "int";
}

const char *memory_type(DType d) {
    switch (d) {
    case ACT:
        return "act";
    case I32:
        return "int";
    case U8:
    case BOOL:
        return "unsigned char";
    default:
        return "float";
    }
}

const char *access_suffix(DType d) {
    switch (d) {
    case ACT:
        return "act";
    case I32:
        return "i32";
    case U8:
    case BOOL:
        return "u8";
    default:
        return "f32";
    }
}

const Expr *literal(Arena *a, DType d, double value) {
    if (!dtype_float(d))
        return x_number(a, (int64_t)value);
    return x_new(a, (Expr){.kind = X_REAL, .node = NO_NODE, .real = value});
}

// A byte is held as an int, so the value is clamped to its range.
static const Expr *cast_expr(Emit *e, DType to, DType from, const Expr *value) {
    if (to == BOOL && from != BOOL)
        return EXPR(e, dtype_float(from) ? "$ != 0.0f" : "$ != 0", value);
    if (dtype_float(to) && !dtype_float(from))
        return EXPR(e, "(float)$", value);
    if (!dtype_float(to) && dtype_float(from))
        value = EXPR(e, "int_of($)", value);
    bool wider = dtype_float(from) || from == I32;
    return to == U8 && wider ? EXPR(e, "clamp_index($, 256)", value) : value;
}

// Whether C's division is safe for this operand.  Processors trap on division
// by 0, and by -1 if the quotient overflows.
static bool divides(const Node *d, double *value) {
    return node_number(d, value) && *value >= 1;
}

const Expr *pointwise_expr(Emit *e, NodeId n, const Expr *const *operand) {
    const Node *d = &e->g->node[n];
    if (d->op == OP_cast)
        return cast_expr(e, d->type->dtype, e->g->node[d->arg[0]].type->dtype,
                         operand[0]);
    if (d->op == OP_var_finalize) {
        int64_t number = node_int(d, ATTR_number, 0);
        return EXPR(e, "var_finalize($, $, $, $)", operand[0], operand[1],
                    operand[2],
                    e->local != NULL ? integer_of(e, number)
                                     : x_kind(e->a, X_GPU_ONLY, number));
    }
    const Expr *below =
        d->op == OP_lt ? draw_below(e, operand[0], operand[1]) : NULL;
    if (below != NULL)
        return below;
    bool integer =
        d->op == OP_mod || (d->op == OP_div && d->type->dtype == I32);
    double by;
    if (integer && !divides(&e->g->node[d->arg[1]], &by))
        return EXPR(e,
                    d->op == OP_div ? "quotient($, $)" : "remainder_of($, $)",
                    operand[0], operand[1]);
    // A divisor stays a literal, as compilers optimize division by a constant.
    const Expr *own[] = {operand[0], operand[1], operand[2]};
    if (integer && e->local == NULL)
        own[1] = literal(e->a, I32, by);
    return expr_of(e->a, template[d->op], own);
}
