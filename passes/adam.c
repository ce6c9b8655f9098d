// Adam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR
// 2015) as torch.optim.Adam has it, and AdamW (Loshchilov and Hutter,
// "Decoupled Weight Decay Regularization", ICLR 2019), where the decay shrinks
// the parameter and does not enter the moments; and LAMB (You et al., "Large
// Batch Optimization for Deep Learning", ICLR 2020), where the step with its
// decay is as long as the parameter's norm times the rate.

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

// The moments' next values, which become those of the next step.
static NodeId moment(Update *u, const char *name, NodeId beta, NodeId x) {
    NodeId old = update_slot(u, name);
    NodeId next = update_average(u, beta, old, x);
    graph_assign(u->g, old, next);
    return next;
}

// m / (1 - beta1^t) / root
static void descend_lamb(Update *u, NodeId m, NodeId root) {
    NodeId corrected = update_op2(u, OP_div, m, correction(u, u->from.arg[2]));
    NodeId d = update_op2(u, OP_div, corrected, root);
    d = update_add_decay(u, d, u->from.arg[4]);
    NodeId w = update_norm(u, u->param);
    NodeId trust = update_number(u, node_float(&u->from, ATTR_trust, 0));
    NodeId length = update_norm(u, d);
    NodeId ratio = update_op2(u, OP_div, w, length);
    ratio = update_unless_zero(u, w, length, ratio);
    NodeId scale = update_op2(u, OP_mul, trust, ratio);
    update_descend(u, u->param, update_op2(u, OP_mul, u->rate, scale), d);
}

void update_adam(Update *u) {
    NodeId decay = u->from.arg[4], from = u->param, d = u->gradient;
    bool lamb = node_float(&u->from, ATTR_trust, 0) != 0;
    if (!lamb && node_int(&u->from, ATTR_decoupled, 0))
        from = update_shrink(u, u->param, decay);
    else if (!lamb)
        d = update_add_decay(u, d, decay);
    NodeId m = moment(u, "adam_m", u->from.arg[2], d);
    NodeId v = moment(u, "adam_v", u->from.arg[3], update_op2(u, OP_mul, d, d));
    NodeId root = root_of(u, v);
    if (lamb) {
        descend_lamb(u, m, root);
        return;
    }
    NodeId rate = update_op2(u, OP_div, u->rate, correction(u, u->from.arg[2]));
    update_descend(u, from, rate, update_op2(u, OP_div, m, root));
}
