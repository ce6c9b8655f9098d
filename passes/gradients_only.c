// Gradients only: the step that computes the gradients of a batch, for a
// trainer that shows them.
//
//   requires   The graph is that of a training step.
//   preserves  The loss and every gradient stay the same.
//   result     The graph has no assignment; the optimizer pass with no_updates
//              makes an output of each gradient.

#include "passes/passes.h"

#include <string.h>

static bool is_kept(const Graph *g, NodeId n) {
    const Node *node = &g->node[n];
    bool is_loss = node->op == OP_output &&
                   strcmp(node_text(node, ATTR_name), "loss") == 0;
    return (op_info[node->op].traits & EFFECT) == 0 ||
           (op_info[node->op].traits & OPTIMIZES) != 0 || is_loss;
}

Graph *gradients_graph(const Graph *train, const char *name) {
    Graph *out = graph_like(train);
    Arena *scratch = arena_new();
    NodeId *now = graph_map_new(train, scratch);
    out->name = name;
    for (NodeId n = 0; n < train->count; n++)
        if (is_kept(train, n))
            now[n] = graph_copy(out, train, n, now);
    arena_free(scratch);
    return out;
}
