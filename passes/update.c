// Update: what the rules of all optimizers are made of.

#include "passes/update.h"

NodeId update_number(Update *u, double value) {
    return graph_number(u->g, value);
}

NodeId update_op2(Update *u, Op op, NodeId a, NodeId b) {
    return graph_op2(u->g, op, a, b);
}

bool update_is_zero(const Update *u, NodeId n) {
    double value;
    return node_number(&u->g->node[n], &value) && value == 0;
}

NodeId update_slot(Update *u, const char *what) {
    const char *param = node_text(&u->g->node[u->param], ATTR_name);
    const char *name = arena_format(u->g->arena, "%s.%s", param, what);
    return graph_state(u->g, name, STATE_OPTIMIZER, *u->g->node[u->param].type,
                       0);
}

NodeId update_average(Update *u, NodeId a, NodeId x, NodeId y) {
    NodeId rest = update_op2(u, OP_sub, update_number(u, 1), a);
    NodeId kept = update_op2(u, OP_mul, a, x);
    return update_op2(u, OP_add, kept, update_op2(u, OP_mul, rest, y));
}

NodeId update_add_decay(Update *u, NodeId x, NodeId decay) {
    if (update_is_zero(u, decay))
        return x;
    return update_op2(u, OP_add, x, update_op2(u, OP_mul, decay, u->param));
}

NodeId update_shrink(Update *u, NodeId x, NodeId decay) {
    if (update_is_zero(u, decay))
        return x;
    NodeId loss = update_op2(u, OP_mul, u->rate, decay);
    NodeId rest = update_op2(u, OP_sub, update_number(u, 1), loss);
    return update_op2(u, OP_mul, x, rest);
}

NodeId update_accelerate(Update *u, NodeId d) {
    NodeId momentum = u->from.arg[2];
    if (update_is_zero(u, momentum))
        return d;
    NodeId old = update_slot(u, "momentum");
    NodeId kept =
        update_op2(u, OP_add, update_op2(u, OP_mul, momentum, old), d);
    graph_assign(u->g, old, kept);
    if (!node_int(&u->from, ATTR_nesterov, 0))
        return kept;
    return update_op2(u, OP_add, d, update_op2(u, OP_mul, momentum, kept));
}

NodeId update_norm(Update *u, NodeId x) {
    int64_t axes[MAX_RANK];
    int rank = u->g->node[x].type->rank;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    NodeId square = update_op2(u, OP_mul, x, x);
    return graph_op1(u->g, OP_sqrt,
                     graph_reduce(u->g, OP_sum, square, rank, axes));
}

NodeId update_unless_zero(Update *u, NodeId a, NodeId b, NodeId ratio) {
    NodeId zero = update_number(u, 0), one = update_number(u, 1);
    NodeId no_a = update_op2(u, OP_eq, a, zero);
    NodeId none = update_op2(u, OP_or, no_a, update_op2(u, OP_eq, b, zero));
    return graph_op3(u->g, OP_select, none, one, ratio);
}

void update_descend(Update *u, NodeId from, NodeId rate, NodeId direction) {
    NodeId step = update_op2(u, OP_mul, rate, direction);
    graph_assign(u->g, u->param, update_op2(u, OP_sub, from, step));
}
