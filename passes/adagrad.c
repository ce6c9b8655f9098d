// Adagrad (Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online
// Learning and Stochastic Optimization", JMLR 2011) as torch.optim.Adagrad has
// it: the rate falls with the number of updates, and eps is added to the root.

#include "passes/update.h"

// lr / (1 + (t - 1) * lr_decay)
static NodeId rate_of(Update *u) {
    double decay = node_float(&u->from, ATTR_lr_decay, 0);
    if (decay == 0)
        return u->rate;
    NodeId one = update_number(u, 1);
    NodeId done = update_op2(u, OP_sub, update_count(u), one);
    NodeId loss = update_op2(u, OP_mul, done, update_number(u, decay));
    NodeId below = update_op2(u, OP_add, update_number(u, 1), loss);
    return update_op2(u, OP_div, u->rate, below);
}

void update_adagrad(Update *u) {
    NodeId g = update_add_decay(u, u->gradient, update_in(u, "weight_decay"));
    NodeId old = update_slot(u, "adagrad_sum");
    NodeId sum = update_op2(u, OP_add, old, update_op2(u, OP_mul, g, g));
    graph_assign(u->g, old, sum);
    NodeId d = update_op2(u, OP_div, g, update_root(u, sum));
    update_descend(u, u->param, rate_of(u), d);
}
