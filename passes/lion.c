// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023,
// algorithm 2): every element moves by the rate, in the direction of an average
// that counts this gradient more than the momentum does.  The decay does not
// enter either.

#include "passes/update.h"

// 1, -1, or x where it is 0 or no number, so that this reaches the parameter.
static NodeId sign(Update *u, NodeId x) {
    NodeId zero = update_number(u, 0);
    NodeId above = update_op2(u, OP_lt, zero, x);
    NodeId below = update_op2(u, OP_lt, x, zero);
    NodeId rest = graph_op3(u->g, OP_select, below, update_number(u, -1), x);
    return graph_op3(u->g, OP_select, above, update_number(u, 1), rest);
}

void update_lion(Update *u) {
    NodeId old = update_slot(u, "lion_m"), g = u->gradient;
    NodeId direction = update_average(u, update_in(u, "beta1"), old, g);
    graph_assign(u->g, old, update_average(u, update_in(u, "beta2"), old, g));
    NodeId from = update_shrink(u, u->param, update_in(u, "weight_decay"));
    update_descend(u, from, u->rate, sign(u, direction));
}
