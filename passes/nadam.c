// NAdam (Dozat, "Incorporating Nesterov Momentum into Adam", ICLR workshop
// 2016) as torch.optim.NAdam has it: the momentum grows with the updates, and
// the gradient and the first moment are corrected by products of momentums.

#include "passes/update.h"

#include <math.h>

// beta1 (1 - 0.96^(t * momentum_decay) / 2)
static NodeId momentum(Update *u, NodeId t) {
    double beta1 = node_float(&u->from, ATTR_beta1, 0);
    double decay = node_float(&u->from, ATTR_momentum_decay, 0) * log(0.96);
    NodeId power = update_op2(u, OP_mul, t, update_number(u, decay));
    NodeId half = update_number(u, 0.5);
    half = update_op2(u, OP_mul, graph_op1(u->g, OP_exp, power), half);
    NodeId rest = update_op2(u, OP_sub, update_number(u, 1), half);
    return update_op2(u, OP_mul, update_number(u, beta1), rest);
}

// The product of the momentums of all updates, with this one.
static NodeId product_of(Update *u, NodeId now) {
    double beta1 = node_float(&u->from, ATTR_beta1, 0);
    double decay = node_float(&u->from, ATTR_momentum_decay, 0);
    bool first;
    NodeId old = update_shared(
        u, "nadam_product",
        arena_format(u->g->arena, "%.9g_%.9g", beta1, decay), &first);
    NodeId product = update_op2(u, OP_mul, old, now);
    if (first)
        graph_assign(u->g, old, product);
    return product;
}

// a / (1 - b)
static NodeId over_rest(Update *u, NodeId a, NodeId b) {
    return update_op2(u, OP_div, a,
                      update_op2(u, OP_sub, update_number(u, 1), b));
}

void update_nadam(Update *u) {
    NodeId t = update_count(u), now = momentum(u, t);
    NodeId next = momentum(u, update_op2(u, OP_add, t, update_number(u, 1)));
    NodeId product = product_of(u, now), beta2 = update_in(u, "beta2");
    NodeId g = update_add_decay(u, u->gradient, update_in(u, "weight_decay"));
    NodeId square = update_op2(u, OP_mul, g, g);
    NodeId m = update_moment(u, "nadam_m", update_setting(u, ATTR_beta1), g);
    NodeId v = update_moment(u, "nadam_v", beta2, square);
    NodeId root = update_root_corrected(u, v, beta2);
    NodeId rest = update_op2(u, OP_sub, update_number(u, 1), now);
    NodeId a = over_rest(u, rest, product);
    NodeId b = over_rest(u, next, update_op2(u, OP_mul, product, next));
    NodeId ahead = update_op2(u, OP_mul, b, m);
    NodeId up = update_op2(u, OP_add, update_op2(u, OP_mul, a, g), ahead);
    update_descend(u, u->param, u->rate, update_op2(u, OP_div, up, root));
}
