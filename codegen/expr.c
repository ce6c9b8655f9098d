// Expressions: one scalar statement for each node.
//
// Operands are names, never expressions, so the templates in ops.def need no
// parentheses and nothing is evaluated twice.

#include "codegen/emit.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

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

const char *literal(Arena *a, DType d, double value) {
    if (!dtype_float(d))
        return arena_format(a, "%lld", (long long)value);
    if (isinf((float)value))
        return value < 0 ? "-INF" : "INF";
    if (isnan(value))
        return "(INF - INF)";
    Text t = text_new(a);
    text_double(&t, (float)value == 0 ? 0.0 : value); // or compilers warn
    text_add(&t, "f");
    return text_string(&t);
}

// A byte is held as an int, so that it is cut to its range here.
static const char *cast_text(Emit *e, DType to, DType from, const char *value) {
    if (to == BOOL && from != BOOL)
        return arena_format(e->a, dtype_float(from) ? "%s != 0.0f" : "%s != 0",
                            value);
    if (dtype_float(to) && !dtype_float(from))
        return arena_format(e->a, "(float)%s", value);
    if (!dtype_float(to) && dtype_float(from))
        value = arena_format(e->a, "whole(%s)", value);
    bool wider = dtype_float(from) || from == I32;
    return to == U8 && wider ? arena_format(e->a, "clamp(%s, 256)", value)
                             : value;
}

// Whether integers can be divided by the operand as C does it: by 0 and by -1,
// whose quotient may be too large, processors do not.
static bool divides(const Node *d, double *value) {
    return node_number(d, value) && *value >= 1;
}

const char *expr_text(Emit *e, NodeId n, const char *const *operand) {
    const Node *d = &e->g->node[n];
    if (d->op == OP_cast)
        return cast_text(e, d->type->dtype, e->g->node[d->arg[0]].type->dtype,
                         operand[0]);
    if (d->op == OP_variance)
        return arena_format(
            e->a, "variance_of(%s, %s, %s, %s)", operand[0], operand[1],
            operand[2],
            arena_format(e->a, OFF_HOST("%lld"),
                         (long long)node_int(d, ATTR_number, 0)));
    bool whole = d->op == OP_mod || (d->op == OP_div && d->type->dtype == I32);
    double by;
    if (whole && !divides(&e->g->node[d->arg[1]], &by))
        return arena_format(e->a, "%s(%s, %s)",
                            d->op == OP_div ? "quotient" : "remainder_of",
                            operand[0], operand[1]);
    // A divisor is no size: a division by a constant is none.
    const char *second =
        whole && e->local == NULL ? literal(e->a, I32, by) : operand[1];
    Text t = text_new(e->a);
    for (const char *s = template[d->op]; *s != '\0'; s++)
        if (*s == '$')
            text_add(&t, "%s", *++s == '1' ? second : operand[*s - '0']);
        else
            text_bytes(&t, s, 1);
    return text_string(&t);
}
