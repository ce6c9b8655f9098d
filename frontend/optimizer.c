// Optimizers: one node for each parameter, which the optimizer pass turns into
// assignments.

#include "frontend/expand.h"

// An optimizer is kept as its call until the parameters are known.
Value lower_optimizer(Expansion *e, const Call *c) {
    (void)e;
    return (Value){.kind = VALUE_CALL, .call = c};
}

Value optimizer_rate(const Call *c) {
    return c->arg[0];
}

// What follows comes from the parameter's layer; the numbers that all updates
// share come from the optimizer.
static void blame(Expansion *e, NodeId param) {
    e->graph->at = e->graph->node[param].from;
}

static NodeId sgd(Expansion *e, const Call *c, NodeId param) {
    NodeId lr = scalar_node(e, *call_arg(c, P_sgd_lr));
    NodeId momentum = scalar_node(e, *call_arg(c, P_sgd_momentum));
    NodeId decay = scalar_node(e, *call_arg(c, P_sgd_weight_decay));
    blame(e, param);
    Attr attr = attr_int(ATTR_nesterov, call_flag(c, P_sgd_nesterov));
    return graph_add(e->graph,
                     (Node){.op = OP_sgd,
                            .num_args = 4,
                            .arg = (NodeId[]){param, lr, momentum, decay},
                            .num_attrs = 1,
                            .attr = &attr,
                            .group = -1});
}

// The number of this update, from 1.  A step that is skipped does not count,
// so this is not the run's step; the state is advanced where it is made.
static NodeId update_count(Expansion *e) {
    bool first = e->run[RUN_UPDATES] == NO_NODE;
    NodeId done = run_node(e, RUN_UPDATES);
    NodeId one = graph_constant(e->graph, type_scalar(I32), 1);
    NodeId count = graph_op2(e->graph, OP_add, done, one);
    if (first)
        graph_assign(e->graph, done, count);
    return count;
}

// adam and adamw have the same parameters.
static NodeId adam(Expansion *e, const Call *c, NodeId param, bool decoupled) {
    ParamId first = c->builtin->first - FIRST_adam;
    NodeId arg[6] = {param};
    arg[1] = scalar_node(e, *call_arg(c, first + P_adam_lr));
    arg[2] = scalar_node(e, *call_arg(c, first + P_adam_beta1));
    arg[3] = scalar_node(e, *call_arg(c, first + P_adam_beta2));
    arg[4] = scalar_node(e, *call_arg(c, first + P_adam_weight_decay));
    arg[5] = update_count(e);
    blame(e, param);
    Attr attr[] = {
        attr_int(ATTR_decoupled, decoupled),
        attr_float(ATTR_eps, call_number(c, first + P_adam_eps)),
    };
    return graph_add(e->graph, (Node){.op = OP_adam,
                                      .num_args = 6,
                                      .arg = arg,
                                      .num_attrs = 2,
                                      .attr = attr,
                                      .group = -1});
}

void optimizer_apply(Expansion *e, const Call *c, const Parameter *p) {
    BuiltinId id = builtin_id(c->builtin);
    origin_set(e, c->at, NULL);
    if (id == B_sgd)
        sgd(e, c, p->node);
    else
        adam(e, c, p->node, id == B_adamw);
}
