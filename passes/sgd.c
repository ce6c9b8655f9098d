// SGD, with momentum, and LARS.
//
// The formulas are torch.optim.SGD's.  Its first step sets the momentum buffer
// to the gradient, as a buffer of zeros does.  With
// rate_in_velocity the buffer gathers steps, each with the rate it was made
// with, as in Sutskever et al., "On the importance of initialization and
// momentum in deep learning", ICML 2013.  LARS (You et al., "Large Batch
// Training of Convolutional Networks", 2017) does so too, and gives each
// parameter a rate in proportion to its norm.

#include "passes/update.h"

void update_sgd(Update *u) {
    NodeId decay = update_in(u, "weight_decay"), from = u->param;
    NodeId d = u->gradient;
    if (node_int(&u->from, ATTR_decoupled, 0))
        from = update_shrink(u, u->param, decay);
    else
        d = update_add_decay(u, d, decay);
    if (!node_int(&u->from, ATTR_rate_in_velocity, 0)) {
        update_descend(u, from, u->rate, update_accelerate(u, d));
        return;
    }
    NodeId step = update_accelerate(u, update_op2(u, OP_mul, u->rate, d));
    graph_assign(u->g, u->param, update_op2(u, OP_sub, from, step));
}

// rate * trust * |w| / (|g| + decay * |w| + eps); the rate alone where either
// norm is 0, so that parameters can leave 0.
static NodeId layer_rate(Update *u) {
    NodeId decay = update_in(u, "weight_decay");
    NodeId w = update_norm(u, u->param), g = update_norm(u, u->gradient);
    NodeId below = g;
    if (!update_is_zero(u, decay))
        below = update_op2(u, OP_add, below, update_op2(u, OP_mul, decay, w));
    below = update_op2(u, OP_add, below, update_setting(u, ATTR_eps));
    NodeId above = update_op2(u, OP_mul, w, update_setting(u, ATTR_trust));
    NodeId ratio = update_op2(u, OP_div, above, below);
    ratio = update_unless_zero(u, w, g, ratio);
    return update_op2(u, OP_mul, u->rate, ratio);
}

void update_lars(Update *u) {
    NodeId d = update_add_decay(u, u->gradient, update_in(u, "weight_decay"));
    NodeId step = update_accelerate(u, update_op2(u, OP_mul, layer_rate(u), d));
    graph_assign(u->g, u->param, update_op2(u, OP_sub, u->param, step));
}
