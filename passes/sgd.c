// SGD, with momentum, and LARS.
//
// The formulas are torch.optim.SGD's.  Its first step sets the momentum buffer
// to the gradient, which is what a buffer of zeros gives.  With
// rate_in_velocity the buffer gathers steps, each with the rate it was made
// with, as in Sutskever et al., "On the importance of initialization and
// momentum in deep learning", ICML 2013.  LARS (You et al., "Large Batch
// Training of Convolutional Networks", 2017) does so too, and gives each
// parameter a rate in proportion to its norm.

#include "passes/update.h"

// rate * trust * |w| / (|g| + decay * |w| + eps); the rate alone where either
// norm is 0, so that what starts with 0 can leave it.
static NodeId layer_rate(Update *u) {
    double trust = node_float(&u->from, ATTR_trust, 0);
    double eps = node_float(&u->from, ATTR_eps, 0);
    NodeId decay = u->from.arg[3];
    if (trust == 0)
        return u->rate;
    NodeId w = update_norm(u, u->param), g = update_norm(u, u->gradient);
    NodeId below = g;
    if (!update_is_zero(u, decay))
        below = update_op2(u, OP_add, below, update_op2(u, OP_mul, decay, w));
    below = update_op2(u, OP_add, below, update_number(u, eps));
    NodeId above = update_op2(u, OP_mul, w, update_number(u, trust));
    NodeId ratio = update_op2(u, OP_div, above, below);
    ratio = update_unless_zero(u, w, g, ratio);
    return update_op2(u, OP_mul, u->rate, ratio);
}

void update_sgd(Update *u) {
    NodeId decay = u->from.arg[3], from = u->param, d = u->gradient;
    if (node_int(&u->from, ATTR_decoupled, 0))
        from = update_shrink(u, u->param, decay);
    else
        d = update_add_decay(u, d, decay);
    NodeId rate = layer_rate(u);
    if (!node_int(&u->from, ATTR_rate_in_velocity, 0)) {
        update_descend(u, from, rate, update_accelerate(u, d));
        return;
    }
    NodeId step = update_accelerate(u, update_op2(u, OP_mul, rate, d));
    graph_assign(u->g, u->param, update_op2(u, OP_sub, from, step));
}
