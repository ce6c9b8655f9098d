// Adan (Xie et al., "Adan: Adaptive Nesterov Momentum Algorithm for Faster
// Optimizing Deep Models", 2022, algorithm 1): a third moment is that of the
// gradient's change.  As in the authors' code, moments are corrected for their
// start at 0, a beta is the share of the old moment, and in the first update
// the gradient has not changed.  The decay divides the parameter.

#include "passes/update.h"

// The gradient less the one before it.
static NodeId change_of(Update *u, NodeId g) {
    NodeId old = update_slot(u, "adan_gradient");
    NodeId one = update_number(u, 1);
    NodeId first = update_op2(u, OP_eq, update_count(u), one);
    graph_assign(u->g, old, g);
    NodeId change = update_op2(u, OP_sub, g, old);
    return graph_op3(u->g, OP_select, first, update_number(u, 0), change);
}

// x / (1 - beta^t)
static NodeId corrected(Update *u, NodeId x, NodeId beta) {
    return update_op2(u, OP_div, x, update_correction(u, beta));
}

// x / (1 + rate * decay)
static NodeId divided(Update *u, NodeId x, NodeId decay) {
    if (update_is_zero(u, decay))
        return x;
    NodeId loss = update_op2(u, OP_mul, u->rate, decay);
    NodeId by = update_op2(u, OP_add, update_number(u, 1), loss);
    return update_op2(u, OP_div, x, by);
}

void update_adan(Update *u) {
    NodeId beta1 = update_in(u, "beta1"), beta2 = update_in(u, "beta2");
    NodeId beta3 = update_in(u, "beta3"), g = u->gradient;
    NodeId change = change_of(u, g);
    NodeId ahead =
        update_op2(u, OP_add, g, update_op2(u, OP_mul, beta2, change));
    NodeId square = update_op2(u, OP_mul, ahead, ahead);
    NodeId m = update_moment(u, "adan_m", beta1, g);
    NodeId d = update_moment(u, "adan_d", beta2, change);
    NodeId v = update_moment(u, "adan_v", beta3, square);
    NodeId rate = corrected(u, u->rate, beta1);
    NodeId ahead_rate =
        corrected(u, update_op2(u, OP_mul, u->rate, beta2), beta2);
    NodeId up = update_op2(u, OP_mul, ahead_rate, d);
    up = update_op2(u, OP_add, update_op2(u, OP_mul, rate, m), up);
    NodeId step = update_op2(u, OP_div, up, update_root_corrected(u, v, beta3));
    NodeId next = update_op2(u, OP_sub, u->param, step);
    graph_assign(u->g, u->param,
                 divided(u, next, update_in(u, "weight_decay")));
}
