// dropout: zeroes each element with probability p, and scales the others by 1 /
// (1 - p); with new random numbers in each batch, and not in evaluation.

#include "frontend/functions/functions.h"

NodeId dropout_node(Expansion *e, const Call *c, const char *use, NodeId x,
                    double p) {
    Graph *g = e->graph;
    Type t = *node_type(e, x);
    if (!e->training || p == 0)
        return x;
    if (type_count(&t) > INT32_MAX) {
        report(e->diags, D_tensor_too_large, c->at,
               "dropout is limited to 2^31 - 1 numbers");
        return NO_NODE;
    }
    const char *name = arena_format(e->arena, "%s%s", c->path, use);
    RandomSource d = {run_node(e, RUN_SEED), batch_node(e), 4};
    NodeId u = rand_uniform(g, name, d, t);
    NodeId out = graph_op2(g, OP_lt, u, number_node(e, p));
    NodeId scaled = graph_op2(g, OP_mul, x, number_node(e, 1 / (1 - p)));
    return graph_op3(g, OP_select, out, number_node(e, 0), scaled);
}

bool expect_dropout(Expansion *e, const Call *c, double p) {
    if (p < 1)
        return true;
    report(e->diags, D_out_of_range, c->at,
           "a dropout of 1 would leave nothing to train");
    return false;
}

Value lower_dropout(Expansion *e, const Call *c) {
    double p = call_number(c, P_dropout_p);
    if (!expect_dropout(e, c, p))
        return value_poison();
    NodeId x = as_float(e, call_node(c, P_dropout_x));
    return value_tensor(dropout_node(e, c, "", x, p), c->at);
}
