// Optimizer: optimizer nodes become assignments.
//
//   needs   gradient(param, value) nodes whose values carry the loss scale
//   keeps   every other node and its value
//   leaves  assign nodes at the end, in the order of the optimizer nodes but
//           for muon's, which come last, and states of kind "optimizer" named
//           for their parameter; no optimizer, accumulated, clip or gradient
//
// Gradients are added to those that wait, divided by the loss scale, multiplied
// by their share, then clipped, then used; each rule has a file for its family.
// A decay or momentum that is the constant 0 costs nothing.  A parameter
// without a gradient keeps its value.
#include "passes/passes.h"
#include "passes/update.h"

static bool is_optimizer(const Graph *g, NodeId n) {
    return op_info[g->node[n].op].facts & OPTIMIZES;
}

// Copies all but optimizers, clips and gradients.
static void copy_rest(Graph *out, const Graph *g, NodeId *now) {
    for (NodeId n = 0; n < g->count; n++) {
        Op op = g->node[n].op;
        if (!is_optimizer(g, n) && op != OP_gradient && op != OP_clip &&
            op != OP_accumulated)
            now[n] = graph_copy(out, g, n, now);
    }
}

// The gradient of each param of g, in the new graph, or NO_NODE.
static NodeId *find_gradients(const Graph *g, const NodeId *now,
                              Arena *scratch) {
    NodeId *gradient = graph_none(g, scratch);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_gradient)
            gradient[g->node[n].arg[0]] = now[g->node[n].arg[1]];
    return gradient;
}

static NodeId find_loss_scale(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_loss_scale)
            return n;
    return NO_NODE;
}

// What gradients are multiplied by when others have waited for them.
static NodeId find_share(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_accumulated)
            return g->node[n].arg[0];
    return NO_NODE;
}

// What waits keeps the loss scale, which does not change before the update.
static bool waits(const Graph *g, NodeId n) {
    return g->node[n].op == OP_accumulate;
}

// Gradients of the loss itself, for the params that an optimizer updates.
static void unscale(Graph *out, const Graph *g, NodeId *gradient,
                    const NodeId *now, Arena *scratch) {
    NodeId loss_scale = find_loss_scale(out), share = find_share(g);
    bool *wanted = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = 0; n < g->count; n++) {
        if (!is_optimizer(g, n))
            continue;
        NodeId param = g->node[n].arg[0], *raw = &gradient[param];
        out->at = g->node[n].from;
        if (!wanted[param] && *raw != NO_NODE) {
            if (share != NO_NODE)
                *raw = gradient_collect(out, now[param], *raw);
            if (loss_scale != NO_NODE && !waits(g, n))
                *raw = graph_op2(out, OP_div, *raw, loss_scale);
            if (share != NO_NODE)
                *raw = graph_op2(out, OP_mul, *raw, now[share]);
        }
        wanted[param] = true;
    }
    for (NodeId n = 0; n < g->count; n++)
        if (!wanted[n])
            gradient[n] = NO_NODE;
}

static void clip(Graph *out, const Graph *g, NodeId *gradient,
                 const NodeId *now, Arena *scratch) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_clip)
            gradients_clip(out, node_mapped(&g->node[n], now, scratch),
                           gradient, g->count);
}

static UpdateRule *rule_of(Op op) {
    static UpdateRule *const rule[NUM_OPS] = {
        [OP_accumulate] = update_accumulate,
        [OP_sgd] = update_sgd,
        [OP_adam] = update_adam,
    };
    return rule[op];
}

// What is an output is computed, and left in memory.
static void gradient_leave(Graph *out, NodeId param, NodeId gradient) {
    const char *name = node_text(&out->node[param], ATTR_name);
    Attr attr =
        attr_text(ATTR_name, arena_format(out->arena, "gradient of %s", name));
    out->at = out->node[gradient].from;
    graph_add(out, (Node){.op = OP_output,
                          .num_args = 1,
                          .arg = &gradient,
                          .num_attrs = 1,
                          .attr = &attr,
                          .group = -1});
}

static void gradients_leave(Graph *out, const Graph *g, const NodeId *now,
                            const NodeId *gradient) {
    for (NodeId n = 0; n < g->count; n++) {
        NodeId param = is_optimizer(g, n) ? g->node[n].arg[0] : NO_NODE;
        if (param != NO_NODE && gradient[param] != NO_NODE)
            gradient_leave(out, now[param], gradient[param]);
    }
}

Graph *pass_optimizer(Graph *g, Arena *scratch, const PassOptions *o) {
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    copy_rest(out, g, now);
    NodeId *gradient = find_gradients(g, now, scratch);
    if (o->no_updates) {
        gradients_leave(out, g, now, gradient);
        return out;
    }
    unscale(out, g, gradient, now, scratch);
    clip(out, g, gradient, now, scratch);
    Update *together = ARENA_ARRAY(scratch, g->count, Update);
    int count = 0;
    for (NodeId n = 0; n < g->count; n++) {
        if (!is_optimizer(g, n) || gradient[g->node[n].arg[0]] == NO_NODE)
            continue;
        Node from = node_mapped(&g->node[n], now, scratch);
        Update u = {.g = out,
                    .from = from,
                    .param = from.arg[0],
                    .rate = from.num_args > 1 ? from.arg[1] : NO_NODE,
                    .gradient = gradient[g->node[n].arg[0]]};
        out->at = from.from;
        if (from.op == OP_muon)
            together[count++] = u;
        else
            rule_of(from.op)(&u);
    }
    update_together(together, count, scratch);
    return out;
}
