// Stages: see stages.h.
//
// A later stage is the same graph without the optimizers of params that are
// frozen by then.  A step that gathers has in place of each optimizer one that
// adds the gradient to those that wait, and nothing that limits or uses them.
#include "tests/random/stages.h"

#include "tests/codegen/library.h"

#include <string.h>

static bool has_op(const Graph *g, Op op) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == op)
            return true;
    return false;
}

static bool optimizes(const Graph *g, NodeId n) {
    return op_info[g->node[n].op].traits & OPTIMIZES;
}

// Whether the i-th of the params that train is frozen in a stage.  The first
// never is.
static bool is_frozen(const Setup *s, int i, int stage) {
    return i > 0 && (int)(s->frozen >> i % 16 * 2 & 3) < stage;
}

static Graph *train_graph(Arena *a, const Graph *g, const Setup *s, int stage) {
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(a, g->count + 1, NodeId);
    int param = 0;
    for (NodeId n = 0; n < g->count; n++)
        if (!optimizes(g, n) || !is_frozen(s, param++, stage))
            now[n] = graph_copy(out, g, n, now);
    if (stage > 0)
        out->name = arena_format(a, "train_%d", stage + 1);
    return out;
}

static Graph *gather_graph(Arena *a, const Graph *train, int stage) {
    Graph *out = graph_like(train);
    NodeId *now = ARENA_ARRAY(a, train->count + 1, NodeId);
    for (NodeId n = 0; n < train->count; n++) {
        const Node *d = &train->node[n];
        if (d->op == OP_clip || d->op == OP_accumulated)
            continue;
        now[n] = optimizes(train, n)
                     ? graph_op1(out, OP_accumulate, now[d->arg[0]])
                     : graph_copy(out, train, n, now);
    }
    out->name = stage ? arena_format(a, "gather_%d", stage + 1) : "gather";
    return out;
}

// Gradients that have waited are used with the step's own.
static void use_gathered(Graph *train) {
    if (!has_op(train, OP_accumulated))
        graph_op1(train, OP_accumulated, graph_number(train, 0.5));
}

// 9 parts of what was there and one of what is; written back, it is both.
static void add_average(Graph *g, Arena *a, const Graph *model, NodeId n,
                        bool back) {
    const Node *d = &model->node[n];
    const char *name = node_text(d, ATTR_name);
    NodeId leaf = graph_leaf(g, OP_param, name, *d->type);
    NodeId average = graph_state(g, arena_format(a, "%s.average", name),
                                 STATE_AVERAGE, *d->type, 0);
    NodeId way = graph_op2(g, OP_sub, leaf, average);
    NodeId part = graph_op2(g, OP_mul, way, graph_number(g, 0.1));
    NodeId mixed = graph_op2(g, OP_add, average, part);
    graph_assign(g, average, mixed);
    if (back)
        graph_assign(g, leaf, mixed);
}

static Graph *average_graph(Arena *a, const Graph *model, bool back) {
    Graph *g = graph_like(model);
    g->name = "average";
    for (NodeId n = 0; n < model->count; n++)
        if (model->node[n].op == OP_param)
            add_average(g, a, model, n, back);
    return g;
}

// batch_norm with its running statistics, as the front end has it.
static NodeId add_norm(Graph *out, Arena *a, const Graph *g, NodeId n,
                       const NodeId *now) {
    const Node *d = &g->node[n];
    Type channels = *g->node[d->arg[1]].type;
    NodeId mean = graph_state(out, arena_format(a, "mean%u", n),
                              STATE_STATISTIC, channels, 0);
    NodeId var = graph_state(out, arena_format(a, "var%u", n), STATE_STATISTIC,
                             channels, 0);
    NodeId eps = graph_number(out, node_float(d, ATTR_eps, 0));
    NodeId root = graph_op1(out, OP_rsqrt, graph_op2(out, OP_add, var, eps));
    NodeId centred = graph_op2(out, OP_sub, now[d->arg[0]], mean);
    NodeId factor = graph_op2(out, OP_mul, root, now[d->arg[1]]);
    NodeId scaled = graph_op2(out, OP_mul, centred, factor);
    return graph_op2(out, OP_add, scaled, now[d->arg[2]]);
}

// The mean of the losses of several batches follows from their sum.
static void add_metric(Graph *out, NodeId loss) {
    NodeId sum =
        graph_state(out, "metric.loss", STATE_METRIC, type_scalar(F32), 0);
    graph_assign(out, sum, graph_op2(out, OP_add, sum, loss));
}

static NodeId evaluate_node(Graph *out, Arena *a, const Graph *g, NodeId n,
                            bool of_averages, const NodeId *now) {
    const Node *d = &g->node[n];
    if (d->op == OP_batch_norm)
        return add_norm(out, a, g, n, now);
    if (d->op == OP_param && of_averages)
        return graph_state(
            out, arena_format(a, "%s.average", node_text(d, ATTR_name)),
            STATE_AVERAGE, *d->type, 0);
    return graph_copy(out, g, n, now);
}

// What is computed with nothing that trains.
static Graph *eval_graph(Arena *a, const Graph *g, bool of_averages) {
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(a, g->count + 1, NodeId);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        bool trains = optimizes(g, n) || d->op == OP_clip ||
                      d->op == OP_accumulated ||
                      (d->op == OP_assign && g->node[d->arg[0]].op == OP_param);
        if (trains)
            continue;
        now[n] = evaluate_node(out, a, g, n, of_averages, now);
        if (d->op == OP_output && strcmp(node_text(d, ATTR_name), "loss") == 0)
            add_metric(out, now[d->arg[0]]);
    }
    out->name = "eval";
    return out;
}

Program *stages_program(Arena *a, const Graph *g, const Setup *s) {
    Program *p = library_program(a, NULL, s->precision);
    bool trains = !(g->facts & UPDATES);
    bool waits = has_op(g, OP_accumulate);
    p->num_stages = trains ? s->stages : 1;
    Stage *stage = ARENA_ARRAY(a, (size_t)p->num_stages, Stage);
    for (int i = 0; i < p->num_stages; i++) {
        stage[i].train = train_graph(a, g, s, i);
        if (!trains || waits || !s->gathers)
            continue;
        stage[i].accumulate = gather_graph(a, stage[i].train, i);
        use_gathered(stage[i].train);
    }
    p->stage = stage;
    bool averages =
        trains && s->average != AVERAGE_NEVER && has_op(g, OP_param);
    if (s->evaluates)
        p->eval = eval_graph(a, g, averages && s->of_averages);
    if (!averages)
        return p;
    p->average = average_graph(a, g, s->back);
    p->average_every =
        (Time){s->average == AVERAGE_EACH_STEP ? 1 : 2, IN_STEPS};
    return p;
}
