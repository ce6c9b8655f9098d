// Functions: operations that are defined for some operands alone, on operands
// that are kept inside, and values that are not floats.
#include "tests/graphs/garden.h"

// exp, log, roots and quotients of x, away from where they grow without end.
NodeId family_guarded(Garden *b) {
    NodeId x = garden_any(b, F32, -1), y = garden_any(b, F32, -1);
    if (x == NO_NODE || y == NO_NODE)
        return NO_NODE;
    NodeId half = garden_number(b, 0.5);
    NodeId bounded = garden_op1(b, OP_tanh, x);
    NodeId square = garden_op2(b, OP_mul, bounded, bounded);
    NodeId positive = garden_op2(b, OP_add, square, half);
    switch (garden_draw(b, 7)) {
    case 0:
        return garden_op1(b, OP_exp, bounded);
    case 1:
        return garden_op1(b, OP_log, positive);
    case 2:
        return garden_op1(b, OP_sqrt, positive);
    case 3:
        return garden_op1(b, OP_rsqrt, positive);
    case 4:
        return garden_op2(b, OP_div, y, positive);
    case 5:
        return garden_op1(b, OP_sin, x);
    default:
        return garden_op1(b, OP_floor, garden_op2(b, OP_add, x, half));
    }
}

// Comparisons joined, and the share of them that hold.
NodeId family_truth(Garden *b) {
    static const Op compare[] = {OP_lt, OP_le, OP_eq};
    NodeId x = garden_any(b, F32, -1), y = garden_any(b, F32, -1);
    if (x == NO_NODE || y == NO_NODE)
        return NO_NODE;
    NodeId less = garden_op2(b, compare[garden_draw(b, 3)], x, y);
    NodeId bounded = garden_op1(b, OP_finite, y);
    NodeId both = garden_op2(b, garden_draw(b, 2) ? OP_and : OP_or, less,
                             garden_op1(b, OP_not, bounded));
    NodeId yes = garden_draw(b, 2) ? both : less;
    if (yes == NO_NODE)
        return NO_NODE;
    return garden_draw(b, 2) ? graph_cast(b->g, yes, F32)
                             : garden_op3(b, OP_select, yes, x, y);
}

// Whole numbers: an index, and what is left of it.
NodeId family_whole(Garden *b) {
    static const Op op[] = {OP_add, OP_sub, OP_mul,     OP_div,
                            OP_mod, OP_abs, OP_maximum, OP_neg};
    NodeId x = garden_any(b, I32, -1);
    if (x == NO_NODE) {
        NodeId like = garden_any(b, F32, -1);
        if (like == NO_NODE || garden_type(b, like)->rank == 0)
            return NO_NODE;
        Type t = *garden_type(b, like);
        t.dtype = I32;
        return graph_iota(b->g, t, (int)garden_draw(b, (uint32_t)t.rank));
    }
    NodeId y = graph_constant(b->g, type_scalar(I32), garden_draw(b, 4));
    Op chosen = op[garden_draw(b, 8)];
    NodeId z = op_info[chosen].arity == 1 ? garden_op1(b, chosen, x)
                                          : garden_op2(b, chosen, x, y);
    if (z == NO_NODE)
        return NO_NODE;
    garden_keep(b, z);
    return garden_op1(b, OP_cos, graph_cast(b->g, z, F32));
}

// Rounded as activations are, where the precision is already decided.
NodeId family_narrowed(Garden *b) {
    NodeId x = garden_any(b, F32, -1);
    if (x == NO_NODE || b->source)
        return NO_NODE;
    NodeId y = graph_cast(b->g, x, ACT);
    if (garden_draw(b, 2))
        y = garden_op1(b, OP_relu, y);
    return y == NO_NODE ? y : graph_cast(b->g, y, F32);
}
