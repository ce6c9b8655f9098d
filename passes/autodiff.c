// Autodiff: append the backward graph, in reverse mode.
//
//   requires   The graph has a scalar output "loss" and optimizer nodes.
//   preserves  Every node keeps its value.
//   result     A node gradient(param, value) exists for every param that an
//              optimizer updates.  The values are gradients of the loss times
//              loss_scale.
//
// The gradient of a node is complete when the walk backwards reaches it, as
// all of its users come after it.  Only nodes between a trained param and the
// loss get one.
#include "passes/gradients.h"
#include "passes/passes.h"

#include <string.h>

// Which nodes a param that some optimizer updates leads to, if not by way of an
// operation that no gradient passes.
static bool *find_training(const Graph *g, Arena *scratch) {
    bool *trains = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = 0; n < g->count; n++)
        if (op_info[g->node[n].op].traits & OPTIMIZES)
            trains[g->node[n].arg[0]] = true;
    for (NodeId n = 0; n < g->count; n++)
        for (int i = 0; i < g->node[n].num_args; i++)
            trains[n] |=
                trains[g->node[n].arg[i]] && !grad_stops(g->node[n].op);
    return trains;
}

static void set_origin(Graph *g, NodeId n) {
    g->origin = g->node[n].from;
    g->origin.backward = true;
}

static NodeId find_loss(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_output &&
            strcmp(node_text(&g->node[n], ATTR_name), "loss") == 0)
            return n;
    return NO_NODE;
}

// The loss's own gradient.
static void seed(Backward *b) {
    NodeId output = find_loss(b->g);
    if (output == NO_NODE || !b->trains[output])
        return;
    set_origin(b->g, output);
    NodeId scale = graph_add(b->g, (Node){.op = OP_loss_scale, .group = -1});
    b->grad[b->g->node[output].arg[0]] = scale;
}

static void walk_back(Backward *b, NodeId count) {
    for (NodeId n = count; n-- > 0;) {
        if (b->grad[n] == NO_NODE)
            continue;
        b->id = n;
        b->node = b->g->node[n];
        b->dy = b->grad[n];
        set_origin(b->g, n);
        grad_rule[b->node.op](b);
    }
}

static void append_gradients(Backward *b, NodeId count) {
    for (NodeId n = 0; n < count; n++) {
        if (b->g->node[n].op != OP_param || b->grad[n] == NO_NODE)
            continue;
        set_origin(b->g, n);
        graph_op2(b->g, OP_gradient, n, b->grad[n]);
    }
}

Graph *pass_autodiff(Graph *g, Arena *scratch, const PassOptions *o) {
    (void)o;
    Graph *out = graph_clone(g);
    NodeId count = out->count;
    Backward b = {.g = out,
                  .trains = find_training(out, scratch),
                  .grad = graph_map_new(out, scratch)};
    seed(&b);
    walk_back(&b, count);
    append_gradients(&b, count);
    return out;
}
