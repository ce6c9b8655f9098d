// Functions: operations that are defined for some operands alone, on operands
// that are kept inside, and values that are not floats.
#include "tests/graphs/random_graph.h"

// exp, log, roots and quotients of x, away from where they grow without end.
NodeId family_guarded(Random *b) {
    NodeId x = random_any(b, F32, -1), y = random_any(b, F32, -1);
    if (x == NO_NODE || y == NO_NODE)
        return NO_NODE;
    NodeId half = random_number(b, 0.5);
    NodeId bounded = random_op1(b, OP_tanh, x);
    NodeId square = random_op2(b, OP_mul, bounded, bounded);
    NodeId positive = random_op2(b, OP_add, square, half);
    switch (random_draw(b, 7)) {
    case 0:
        return random_op1(b, OP_exp, bounded);
    case 1:
        return random_op1(b, OP_log, positive);
    case 2:
        return random_op1(b, OP_sqrt, positive);
    case 3:
        return random_op1(b, OP_rsqrt, positive);
    case 4:
        return random_op2(b, OP_div, y, positive);
    case 5:
        return random_op1(b, OP_sin, x);
    default:
        return random_op1(b, OP_floor, random_op2(b, OP_add, x, half));
    }
}

// Comparisons joined, and the share of them that hold.
NodeId family_truth(Random *b) {
    static const Op compare[] = {OP_lt, OP_le, OP_eq};
    NodeId x = random_any(b, F32, -1), y = random_any(b, F32, -1);
    if (x == NO_NODE || y == NO_NODE)
        return NO_NODE;
    NodeId less = random_op2(b, compare[random_draw(b, 3)], x, y);
    NodeId bounded = random_op1(b, OP_finite, y);
    NodeId both = random_op2(b, random_draw(b, 2) ? OP_and : OP_or, less,
                             random_op1(b, OP_not, bounded));
    NodeId yes = random_draw(b, 2) ? both : less;
    if (yes == NO_NODE)
        return NO_NODE;
    return random_draw(b, 2) ? graph_cast(b->g, yes, F32)
                             : random_op3(b, OP_select, yes, x, y);
}

// Whole numbers: an index, and what is left of it.
NodeId family_whole(Random *b) {
    static const Op op[] = {OP_add, OP_sub, OP_mul,     OP_div,
                            OP_mod, OP_abs, OP_maximum, OP_neg};
    NodeId x = random_any(b, I32, -1);
    if (x == NO_NODE) {
        NodeId like = random_any(b, F32, -1);
        if (like == NO_NODE || random_type(b, like)->rank == 0)
            return NO_NODE;
        Type t = *random_type(b, like);
        t.dtype = I32;
        return graph_iota(b->g, t, (int)random_draw(b, (uint32_t)t.rank));
    }
    NodeId y = graph_constant(b->g, type_scalar(I32), random_draw(b, 4));
    Op chosen = op[random_draw(b, 8)];
    NodeId z = op_info[chosen].arity == 1 ? random_op1(b, chosen, x)
                                          : random_op2(b, chosen, x, y);
    if (z == NO_NODE)
        return NO_NODE;
    random_keep(b, z);
    return random_op1(b, OP_cos, graph_cast(b->g, z, F32));
}

// Rounded as activations are, where the precision is already decided.
NodeId family_narrowed(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || b->source)
        return NO_NODE;
    NodeId y = graph_cast(b->g, x, ACT);
    if (random_draw(b, 2))
        y = random_op1(b, OP_relu, y);
    return y == NO_NODE ? y : graph_cast(b->g, y, F32);
}
