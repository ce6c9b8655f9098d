// Optimizer: optimizer nodes become assignments.
//
//   requires   Values of gradient(param, value) nodes carry the loss scale.
//   preserves  Every other node keeps its value.
//   result     Assign nodes at the end follow the order of the optimizer nodes;
//              parameters that are updated together come last.  States of kind
//              "optimizer" are named after their parameter.  No optimizer,
//              accumulated, clip or gradient is left.
//
// Gradients are added to those that wait, divided by the loss scale, multiplied
// by their share, then clipped, then used by the rule of ir/optimizers.def.
// A decay or momentum that is the constant 0 costs nothing.  A parameter
// without a gradient keeps its value.
#include "passes/passes.h"
#include "passes/update.h"

static bool is_update(const Graph *g, NodeId n) {
    return op_info[g->node[n].op].traits & OPTIMIZES;
}

// Copies all but optimizers, clips and gradients.
static void copy_rest(Graph *out, const Graph *g, NodeId *now) {
    for (NodeId n = 0; n < g->count; n++) {
        Op op = g->node[n].op;
        if (!is_update(g, n) && op != OP_gradient && op != OP_clip &&
            op != OP_accumulated)
            now[n] = graph_copy(out, g, n, now);
    }
}

// The gradient of each param of g, in the new graph, or NO_NODE.
static NodeId *find_gradients(const Graph *g, const NodeId *now,
                              Arena *scratch) {
    NodeId *gradient = graph_map_new(g, scratch);
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

// The factor of gradients that are sums over batches.
static NodeId find_share(const Graph *g) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_accumulated)
            return g->node[n].arg[0];
    return NO_NODE;
}

// Waiting sums keep the loss scale, which does not change before the update.
static bool waits(const Graph *g, NodeId n) {
    return g->node[n].op == OP_accumulate;
}

// Gradients of the loss itself, for the params that an optimizer updates.  The
// loss scale is a power of two, so its inverse is exact.
static void unscale(Graph *out, const Graph *g, NodeId *gradient,
                    const NodeId *now, Arena *scratch) {
    NodeId loss_scale = find_loss_scale(out), share = find_share(g);
    NodeId inverse = NO_NODE;
    bool *wanted = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = 0; n < g->count; n++) {
        if (!is_update(g, n))
            continue;
        NodeId param = g->node[n].arg[0], *raw = &gradient[param];
        out->origin = g->node[n].from;
        if (!wanted[param] && *raw != NO_NODE) {
            if (share != NO_NODE)
                *raw = gradient_collect(out, now[param], *raw);
            if (loss_scale != NO_NODE && !waits(g, n)) {
                if (inverse == NO_NODE)
                    inverse = graph_op2(out, OP_div, graph_number(out, 1),
                                        loss_scale);
                *raw = graph_op2(out, OP_mul, *raw, inverse);
            }
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

// ---- rules ----

static const struct {
    UpdateEach *each;
    UpdateTogether *together;
} rules[NUM_OPS] = {
    [OP_accumulate] = {.each = update_accumulate},
#define OPTIMIZER(name, shape, rule, check)                                    \
    [OP_##name] = {.rule = update_##name},
#include "ir/optimizers.def"
};

static int shard_of(const Update *u) {
    return node_optimizer_shard(&u->g->node[u->param]);
}

// Updates all parameters of an optimizer shard (-1: of none) that one optimizer
// updates together.
static void update_together(Op op, int shard, const Update *all, int count,
                            Arena *scratch) {
    Update *own = ARENA_ARRAY(scratch, (size_t)count + 1, Update);
    int owned = 0;
    for (int i = 0; i < count; i++)
        if (all[i].from.op == op && shard_of(&all[i]) == shard)
            own[owned++] = all[i];
    if (owned > 0)
        rules[op].together(own, owned, scratch);
}

static void update_all(Update *u, int count, Arena *scratch) {
    for (int i = 0; i < count; i++) {
        u[i].g->origin = u[i].from.from;
        if (rules[u[i].from.op].each != NULL)
            rules[u[i].from.op].each(&u[i]);
    }
    int shards = 0;
    for (int i = 0; i < count; i++)
        shards = shard_of(&u[i]) >= shards ? shard_of(&u[i]) + 1 : shards;
    for (int op = 0; op < NUM_OPS; op++)
        for (int k = -1; k < shards && rules[op].together != NULL; k++)
            update_together((Op)op, k, u, count, scratch);
}

// Outputs are computed, and stay in memory.
static void gradient_leave(Graph *out, NodeId param, NodeId gradient) {
    const char *name = node_text(&out->node[param], ATTR_name);
    Attr attr =
        attr_text(ATTR_name, arena_format(out->arena, "gradient of %s", name));
    out->origin = out->node[gradient].from;
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
        NodeId param = is_update(g, n) ? g->node[n].arg[0] : NO_NODE;
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
    Update *u = ARENA_ARRAY(scratch, g->count, Update);
    int count = 0;
    for (NodeId n = 0; n < g->count; n++) {
        if (!is_update(g, n) || gradient[g->node[n].arg[0]] == NO_NODE)
            continue;
        Node from = node_mapped(&g->node[n], now, scratch);
        u[count++] = (Update){.g = out,
                              .from = from,
                              .param = from.arg[0],
                              .rate = from.num_args > 1 ? from.arg[1] : NO_NODE,
                              .gradient = gradient[g->node[n].arg[0]]};
    }
    update_all(u, count, scratch);
    return out;
}
