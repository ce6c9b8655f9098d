// RAdam (Liu et al., "On the Variance of the Adaptive Learning Rate and
// Beyond", ICLR 2020) as torch.optim.RAdam has it: Adam's direction is
// multiplied by a factor from the variance of the second moment; after too few
// gradients, the first moment alone is the direction.

#include "passes/update.h"

// y coth(y) - 1.  The difference has no digits left where y is small, and there
// four terms of the series have more than f32.
static NodeId excess(Update *u, NodeId y) {
    static const double term[] = {-1. / 4725, 2. / 945, -1. / 45, 1. / 3};
    NodeId square = update_op2(u, OP_mul, y, y), series = update_number(u, 0);
    for (int i = 0; i < 4; i++)
        series = update_op2(
            u, OP_mul, square,
            update_op2(u, OP_add, series, update_number(u, term[i])));
    NodeId quotient = update_op2(u, OP_div, y, graph_op1(u->g, OP_tanh, y));
    NodeId direct = update_op2(u, OP_sub, quotient, update_number(u, 1));
    NodeId small = update_op2(u, OP_lt, y, update_number(u, 0.125));
    return graph_op3(u->g, OP_select, small, series, direct);
}

// How many gradients the second moment averages, at most and by now.
typedef struct {
    NodeId most, now;
} Length;

// 2 / (1 - beta) - 1 and that less 2 t beta^t / (1 - beta^t): with
// h = -log(beta) / 2 these are coth(h) and t - (excess(t h) - excess(h)) / h.
// In f32 the direct form would be wrong by 2e-7 of the largest length, which is
// 1e-3 where beta is 0.9999, and the length is compared with 5.
static Length length_of(Update *u, NodeId beta) {
    NodeId t = update_count(u), log_beta = graph_op1(u->g, OP_log, beta);
    NodeId h = update_op2(u, OP_mul, log_beta, update_number(u, -0.5));
    NodeId own = excess(u, h);
    NodeId all = excess(u, update_op2(u, OP_mul, t, h));
    NodeId more = update_op2(u, OP_div, update_op2(u, OP_sub, all, own), h);
    NodeId most = update_op2(u, OP_add, own, update_number(u, 1));
    most = update_op2(u, OP_div, most, h);
    return (Length){.most = most, .now = update_op2(u, OP_sub, t, more)};
}

// (n - 4) (n - 2) / n
static NodeId spread(Update *u, NodeId n) {
    NodeId four = update_op2(u, OP_sub, n, update_number(u, 4));
    NodeId two = update_op2(u, OP_sub, n, update_number(u, 2));
    return update_op2(u, OP_div, update_op2(u, OP_mul, four, two), n);
}

static NodeId rectification(Update *u, Length length) {
    NodeId most = spread(u, length.most);
    NodeId ratio = update_op2(u, OP_div, spread(u, length.now), most);
    return graph_op1(u->g, OP_sqrt, ratio);
}

void update_radam(Update *u) {
    NodeId beta1 = update_in(u, "beta1"), beta2 = update_in(u, "beta2");
    NodeId g = update_add_decay(u, u->gradient, update_in(u, "weight_decay"));
    NodeId m = update_moment(u, "radam_m", beta1, g);
    NodeId v = update_moment(u, "radam_v", beta2, update_op2(u, OP_mul, g, g));
    Length length = length_of(u, beta2);
    NodeId scale = graph_op1(u->g, OP_sqrt, update_correction(u, beta2));
    scale = update_op2(u, OP_mul, rectification(u, length), scale);
    NodeId root = update_root(u, v), adaptive = update_op2(u, OP_mul, scale, m);
    adaptive = update_op2(u, OP_div, adaptive, root);
    NodeId enough = update_op2(u, OP_lt, update_number(u, 5), length.now);
    NodeId d = graph_op3(u->g, OP_select, enough, adaptive, m);
    NodeId rate = update_op2(u, OP_div, u->rate, update_correction(u, beta1));
    update_descend(u, u->param, rate, d);
}
