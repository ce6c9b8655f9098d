// Stages: see stages.h.
//
// A later stage is the same graph without the optimizers of params that are
// frozen by then.  A step that gathers has in place of each optimizer one that
// adds the gradient to those that wait, and nothing that limits or uses them.
#include "tests/random/stages.h"

#include "tests/codegen/library.h"

static bool has_op(const Graph *g, Op op) {
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == op)
            return true;
    return false;
}

static bool optimizes(const Graph *g, NodeId n) {
    return op_info[g->node[n].op].facts & OPTIMIZES;
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
        stage[i].gather = gather_graph(a, stage[i].train, i);
        use_gathered(stage[i].train);
    }
    p->stage = stage;
    if (!trains || s->average == AVERAGE_NEVER || !has_op(g, OP_param))
        return p;
    p->average = average_graph(a, g, s->back);
    p->average_every =
        (Time){s->average == AVERAGE_EACH_STEP ? 1 : 2, IN_STEPS};
    return p;
}
