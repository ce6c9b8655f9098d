// Adam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR
// 2015) as torch.optim.Adam has it, and AdamW (Loshchilov and Hutter,
// "Decoupled Weight Decay Regularization", ICLR 2019), where the decay shrinks
// the parameter and does not enter the moments.

#include "passes/update.h"

// 1 - beta^t, written as -2 h / (1 - h) with h = tanh(t log(beta) / 2): the
// direct form loses four digits in f32 when beta is 0.999 and t is 1.
static NodeId correction(Update *u, NodeId beta) {
    NodeId t = graph_cast(u->g, u->from.arg[5], F32);
    NodeId log_beta = graph_op1(u->g, OP_log, beta);
    NodeId half = update_op2(u, OP_mul, log_beta, update_number(u, 0.5));
    NodeId h = graph_op1(u->g, OP_tanh, update_op2(u, OP_mul, t, half));
    NodeId rest = update_op2(u, OP_sub, update_number(u, 1), h);
    NodeId twice = update_op2(u, OP_mul, update_number(u, -2), h);
    return update_op2(u, OP_div, twice, rest);
}

// sqrt of the corrected second moment, and eps.
static NodeId root_of(Update *u, NodeId v) {
    NodeId beta2 = u->from.arg[3];
    NodeId scale = graph_op1(u->g, OP_sqrt, correction(u, beta2));
    NodeId root = update_op2(u, OP_div, graph_op1(u->g, OP_sqrt, v), scale);
    double eps = node_float(&u->from, ATTR_eps, 1e-8);
    return update_op2(u, OP_add, root, update_number(u, eps));
}

void update_adam(Update *u) {
    NodeId beta1 = u->from.arg[2], beta2 = u->from.arg[3];
    NodeId decay = u->from.arg[4];
    bool decoupled = node_int(&u->from, ATTR_decoupled, 0);
    NodeId d =
        decoupled ? u->gradient : update_add_decay(u, u->gradient, decay);
    NodeId from = decoupled ? update_shrink(u, decay) : u->param;
    NodeId old_m = update_slot(u, "adam_m"), old_v = update_slot(u, "adam_v");
    NodeId m = update_average(u, beta1, old_m, d);
    NodeId v = update_average(u, beta2, old_v, update_op2(u, OP_mul, d, d));
    graph_assign(u->g, old_m, m);
    graph_assign(u->g, old_v, v);
    NodeId rate = update_op2(u, OP_div, u->rate, correction(u, beta1));
    update_descend(u, from, rate, update_op2(u, OP_div, m, root_of(u, v)));
}
