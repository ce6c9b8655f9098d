// RMSprop (Tieleman and Hinton, "Lecture 6.5: RMSProp", 2012) as
// torch.optim.RMSprop has it: the momentum, without the rate, is of normalized
// gradients, and eps is added to the root.

#include "passes/update.h"

// The mean of squares less the square of the mean.  It is never below 0 but for
// rounding.
static NodeId variance(Update *u, NodeId v, NodeId mean) {
    v = update_op2(u, OP_sub, v, update_op2(u, OP_mul, mean, mean));
    return update_op2(u, OP_maximum, v, update_number(u, 0));
}

void update_rmsprop(Update *u) {
    NodeId alpha = update_in(u, "alpha");
    NodeId g = update_add_decay(u, u->gradient, update_in(u, "weight_decay"));
    NodeId square = update_op2(u, OP_mul, g, g);
    NodeId v = update_moment(u, "rmsprop_v", alpha, square);
    if (node_int(&u->from, ATTR_centered, 0))
        v = variance(u, v, update_moment(u, "rmsprop_mean", alpha, g));
    NodeId root = update_root(u, v);
    NodeId d = update_accelerate(u, update_op2(u, OP_div, g, root));
    update_descend(u, u->param, u->rate, d);
}
