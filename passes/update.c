// Update: common parts of the rules of all optimizers.

#include "passes/update.h"

#include <assert.h>

NodeId update_number(Update *u, double value) {
    return graph_number(u->g, value);
}

NodeId update_op2(Update *u, Op op, NodeId a, NodeId b) {
    return graph_op2(u->g, op, a, b);
}

NodeId update_in(const Update *u, const char *scalar) {
    return optimizer_in(&u->from, scalar);
}

NodeId update_count(Update *u) {
    return graph_cast(u->g, optimizer_count(&u->from), F32);
}

NodeId update_setting(Update *u, AttrKey key) {
    return update_number(u, node_float(&u->from, key, 0));
}

bool update_is_zero(const Update *u, NodeId n) {
    double value;
    return node_number(&u->g->node[n], &value) && value == 0;
}

NodeId update_slot(Update *u, const char *name) {
    const OptimizerSlot *slot = optimizer_slot(u->from.op, name);
    assert(slot->scope == SLOT_own);
    const Node *param = &u->g->node[u->param];
    name =
        arena_format(u->g->arena, "%s.%s", node_text(param, ATTR_name), name);
    NodeId state = graph_find(u->g, name);
    int shard = node_optimizer_shard(param);
    if (state != NO_NODE)
        return state;
    state = graph_state(u->g, name, STATE_OPTIMIZER, *param->type,
                        slot->initial(&u->from));
    if (shard >= 0)
        leaf_set(u->g, state, ATTR_optimizer_shard, shard);
    return state;
}

NodeId update_shared(Update *u, const char *name, const char *settings,
                     bool *first) {
    const OptimizerSlot *slot = optimizer_slot(u->from.op, name);
    assert(slot->scope == SLOT_shared);
    name = arena_format(u->g->arena, "run.%s_%s", name, settings);
    NodeId state = graph_find(u->g, name);
    *first = state == NO_NODE;
    if (*first)
        state = graph_state(u->g, name, STATE_OPTIMIZER, type_scalar(F32),
                            slot->initial(&u->from));
    return state;
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

NodeId update_moment(Update *u, const char *slot, NodeId a, NodeId x) {
    NodeId old = update_slot(u, slot);
    NodeId next = update_average(u, a, old, x);
    graph_assign(u->g, old, next);
    return next;
}

// Written as -2 h / (1 - h) with h = tanh(t log(beta) / 2): the direct form
// loses four digits in f32 when beta is 0.999 and t is 1.
NodeId update_correction(Update *u, NodeId beta) {
    NodeId t = update_count(u);
    NodeId log_beta = graph_op1(u->g, OP_log, beta);
    NodeId half = update_op2(u, OP_mul, log_beta, update_number(u, 0.5));
    NodeId h = graph_op1(u->g, OP_tanh, update_op2(u, OP_mul, t, half));
    NodeId rest = update_op2(u, OP_sub, update_number(u, 1), h);
    NodeId twice = update_op2(u, OP_mul, update_number(u, -2), h);
    return update_op2(u, OP_div, twice, rest);
}

NodeId update_root(Update *u, NodeId v) {
    NodeId eps = update_setting(u, ATTR_eps);
    return update_op2(u, OP_add, graph_op1(u->g, OP_sqrt, v), eps);
}

NodeId update_root_corrected(Update *u, NodeId v, NodeId beta) {
    NodeId scale = graph_op1(u->g, OP_sqrt, update_correction(u, beta));
    NodeId root = update_op2(u, OP_div, graph_op1(u->g, OP_sqrt, v), scale);
    return update_op2(u, OP_add, root, update_setting(u, ATTR_eps));
}

NodeId update_accelerate(Update *u, NodeId d) {
    NodeId momentum = update_in(u, "momentum");
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
