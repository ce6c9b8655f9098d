// Adam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR
// 2015) as torch.optim.Adam has it, and AdamW (Loshchilov and Hutter,
// "Decoupled Weight Decay Regularization", ICLR 2019), where the decay shrinks
// the parameter and does not enter the moments; and LAMB (You et al., "Large
// Batch Optimization for Deep Learning", ICLR 2020), where the step with its
// decay is as long as the parameter's norm times the rate.

#include "passes/update.h"

static NodeId first_moment(Update *u, NodeId d) {
    return update_moment(u, "adam_m", update_in(u, "beta1"), d);
}

// sqrt of the corrected second moment, and eps.
static NodeId root_of(Update *u, NodeId d) {
    NodeId beta2 = update_in(u, "beta2"), square = update_op2(u, OP_mul, d, d);
    NodeId v = update_moment(u, "adam_v", beta2, square);
    return update_root_corrected(u, v, beta2);
}

// from - rate / (1 - beta1^t) * m / root
static void descend(Update *u, NodeId from, NodeId d) {
    NodeId m = first_moment(u, d), root = root_of(u, d);
    NodeId correction = update_correction(u, update_in(u, "beta1"));
    NodeId rate = update_op2(u, OP_div, u->rate, correction);
    update_descend(u, from, rate, update_op2(u, OP_div, m, root));
}

void update_adam(Update *u) {
    NodeId decay = update_in(u, "weight_decay");
    descend(u, u->param, update_add_decay(u, u->gradient, decay));
}

void update_adamw(Update *u) {
    NodeId decay = update_in(u, "weight_decay");
    descend(u, update_shrink(u, u->param, decay), u->gradient);
}

// The direction is m / (1 - beta1^t) / root with its decay.
void update_lamb(Update *u) {
    NodeId m = first_moment(u, u->gradient);
    NodeId root = root_of(u, u->gradient);
    NodeId correction = update_correction(u, update_in(u, "beta1"));
    NodeId d =
        update_op2(u, OP_div, update_op2(u, OP_div, m, correction), root);
    d = update_add_decay(u, d, update_in(u, "weight_decay"));
    NodeId w = update_norm(u, u->param), length = update_norm(u, d);
    NodeId ratio = update_op2(u, OP_div, w, length);
    ratio = update_unless_zero(u, w, length, ratio);
    update_descend(u, u->param, update_op2(u, OP_mul, u->rate, ratio), d);
}
