// Accumulate: sums of gradients over the batches of an update.
//
// The sums are states and keep the loss scale, so that the update finds values
// that are not finite.

#include "passes/update.h"

static NodeId waiting(Graph *g, NodeId param) {
    const char *name = arena_format(g->arena, "%s.gradient",
                                    node_text(&g->node[param], ATTR_name));
    return graph_state(g, name, STATE_GRADIENT, *g->node[param].type, 0);
}

void update_accumulate(Update *u) {
    NodeId sum = waiting(u->g, u->param);
    graph_assign(u->g, sum, update_op2(u, OP_add, sum, u->gradient));
}

NodeId gradient_collect(Graph *g, NodeId param, NodeId gradient) {
    NodeId sum = waiting(g, param);
    graph_assign(g, sum, graph_constant(g, *g->node[param].type, 0));
    return graph_op2(g, OP_add, sum, gradient);
}
