// SGD, with momentum.
//
// The formulas are torch.optim.SGD's.  Its first step sets the momentum buffer
// to the gradient, which is what a buffer of zeros gives.

#include "passes/update.h"

static NodeId accelerate(Update *u, NodeId d) {
    NodeId momentum = u->from.arg[2];
    if (update_is_zero(u, momentum))
        return d;
    NodeId old = update_slot(u, "momentum");
    NodeId kept =
        update_op2(u, OP_add, update_op2(u, OP_mul, momentum, old), d);
    graph_assign(u->g, old, kept);
    if (!node_int(&u->from, ATTR_nesterov, 0))
        return kept;
    return update_op2(u, OP_add, d, update_op2(u, OP_mul, momentum, kept));
}

void update_sgd(Update *u) {
    NodeId d = update_add_decay(u, u->gradient, u->from.arg[3]);
    update_descend(u, u->param, u->rate, accelerate(u, d));
}
