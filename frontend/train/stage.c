// Stages: the train graphs of a program.
//
// The model is expanded once.  Each stage is a copy with the updates of the
// parameters that train then; with gradient accumulation, another copy only
// adds its gradients to the buffers.  With shards, a pass divides the graph
// into the part of a shard and the update (passes/shards.c).

#include "frontend/train/train.h"

#include <string.h>

// The model and its loss, without updates, and its leaves.
typedef struct {
    const Graph *graph;
    NodeId input[NUM_INPUTS], run[NUM_RUN];
} Forward;

static void begin_copy(Expansion *e, TrainBlock *t, const Forward *f,
                       const char *name, int stage) {
    e->graph = graph_clone(f->graph);
    e->graph->name =
        stage == 0 ? name : arena_format(e->arena, "%s_%d", name, stage + 1);
    e->graph->origin = f->graph->origin;
    e->num_samples = 0;
    memcpy(e->input, f->input, sizeof e->input);
    memcpy(e->run, f->run, sizeof e->run);
    train_begin(e, t);
    e->phase = PHASE_KEYS;
}

static NodeId increment(Expansion *e, NodeId count) {
    NodeId one = graph_constant(e->graph, type_scalar(I32), 1);
    return graph_op2(e->graph, OP_add, count, one);
}

static void add_effect(Expansion *e, Op op, NodeId operand) {
    graph_add(e->graph,
              (Node){.op = op, .num_args = 1, .arg = &operand, .group = -1});
}

// The micro-batches of an update.  Only the last may be short: it counts by its
// fraction of samples.  A shard has its own fraction: the sum over shards is
// their number.
static NodeId batches_of_update(Expansion *e, NodeId accumulated) {
    if (e->recipe.shards > 0)
        return graph_op2(e->graph, OP_div,
                         as_float(e, input_node(e, INPUT_VALID)),
                         number_node(e, (double)e->recipe.batch));
    if (all_valid(e))
        return as_float(e, increment(e, accumulated));
    NodeId batch = number_node(e, (double)e->recipe.batch);
    NodeId last = graph_op2(e->graph, OP_div, sample_count(e), batch);
    return graph_op2(e->graph, OP_add, as_float(e, accumulated), last);
}

// Gradients of means are averaged over the samples of an update, those of sums
// are added.
static void use_accumulated(Expansion *e) {
    NodeId fraction = number_node(e, 1), accumulated = NO_NODE;
    if (e->recipe.shards == 0)
        accumulated = run_node(e, RUN_ACCUMULATED);
    if (e->loss.is_mean)
        fraction = graph_op2(e->graph, OP_div, fraction,
                             batches_of_update(e, accumulated));
    add_effect(e, OP_accumulated, fraction);
    if (e->recipe.shards == 0)
        graph_assign(e->graph, accumulated,
                     graph_constant(e->graph, type_scalar(I32), 0));
}

static Graph *accumulate_graph(Expansion *e, TrainBlock *t, const Forward *f,
                               int stage) {
    begin_copy(e, t, f, "accumulate", stage);
    for (int i = 0; i < e->num_parameters; i++) {
        const Parameter *p = &e->parameter[i];
        if (is_frozen(e, t, p, stage))
            continue;
        e->graph->origin = e->graph->node[p->node].from;
        add_effect(e, OP_accumulate, p->node);
    }
    NodeId accumulated = run_node(e, RUN_ACCUMULATED);
    graph_assign(e->graph, accumulated, increment(e, accumulated));
    return e->graph;
}

static bool stage_build(Expansion *e, TrainBlock *t, const Forward *f, int i,
                        Stage *stage) {
    begin_copy(e, t, f, "train", i);
    if (e->recipe.accumulate > 1 || e->recipe.shards > 0)
        use_accumulated(e);
    if (!update_add(e, t, i) || !has_room(e, train_model(t).at, 0))
        return false;
    stage->train = e->graph;
    if (e->recipe.accumulate > 1 && e->recipe.shards == 0)
        stage->accumulate = accumulate_graph(e, t, f, i);
    return true;
}

bool stages_build(Expansion *e, TrainBlock *t, Program *p) {
    Forward f = {.graph = e->graph};
    memcpy(f.input, e->input, sizeof e->input);
    memcpy(f.run, e->run, sizeof e->run);
    int num_times;
    const Time *time = freeze_times(t, &num_times);
    Stage *stage = ARENA_ARRAY(e->arena, (size_t)num_times + 1, Stage);
    for (int i = 0; i <= num_times; i++) {
        if (i > 0)
            stage[i].from = time[i - 1];
        if (!stage_build(e, t, &f, i, &stage[i]))
            return false;
    }
    p->stage = stage;
    p->num_stages = num_times + 1;
    return true;
}
