// Compile: every graph of a program through the passes, into one arena.

#include "passes/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A plan that its verifier refuses is our mistake.
static void check_memory(const Graph *g) {
    Arena *a = arena_new();
    const char *why = memory_verify(g, a);
    if (why != NULL) {
        fprintf(stderr, "sinter: internal error: memory plan of %s: %s\n",
                g->name, why);
        abort();
    }
    arena_free(a);
}

// The steps of a program share a limit of nodes, so that a program with many
// steps compiles no longer than one with a large step.
static void check_nodes(Graph *const *graph, int count) {
    NodeId nodes = 0;
    for (int i = 0; i < count; i++)
        nodes += graph[i]->count;
    if (nodes > MAX_STEP_NODES)
        graph_refuse(graph[count - 1]);
}

// Averages are part of the steps that update.
static void average_steps(const Step *step, Graph **graph, int count) {
    const Graph *average = NULL;
    for (int i = 0; i < count; i++)
        if (step[i].kind == STEP_AVERAGE)
            average = graph[i];
    for (int i = 0; i < count; i++) {
        if (step[i].kind != STEP_TRAIN)
            continue;
        Graph *without = graph[i];
        graph[i] = step_with_average(without, average);
        graph_free(without);
    }
}

// The steps of a plan after hoist, the step that computes the derived states of
// hoist, and the one before an evaluation.
static Step *hoisted_steps(const Program *p, const PassOptions *o, Arena *a,
                           int *num_steps) {
    int count, at = 0;
    const Step *given = program_steps(p, a, &count);
    Step *step = ARENA_ARRAY(a, (size_t)count + 2, Step);
    Graph **graph = ARENA_ARRAY(a, (size_t)count, Graph *);
    for (int i = 0; i < count; i++)
        (graph[i] = given[i].graph)->most = MAX_STEP_NODES;
    check_nodes(graph, count);
    for (int i = 0; i < count; i++) {
        graph[i] = passes_run(graph[i], o, "precision", NULL, NULL);
        check_nodes(graph, count);
    }
    if (program_averages_each_step(p))
        average_steps(given, graph, count);
    for (int i = 0; i < count; i++) {
        graph[i] = passes_after(graph[i], o, "precision", "hoist");
        check_nodes(graph, count);
    }
    Graph *derive = derive_graph(graph, count);
    for (int i = 0; i < count; i++) {
        if (derive != NULL && given[i].kind > STEP_DERIVE) {
            step[at++] =
                (Step){.kind = STEP_DERIVE, .name = "derive", .graph = derive};
            derive = NULL;
        }
        Graph *prepare =
            given[i].kind == STEP_EVAL ? prepare_graph(graph[i]) : NULL;
        if (prepare != NULL)
            step[at++] = (Step){
                .kind = STEP_PREPARE, .name = "prepare", .graph = prepare};
        step[at] = given[i];
        step[at++].graph = graph[i];
    }
    *num_steps = at;
    return step;
}

// The steps of a plan that have launches in their order.
static Step *scheduled_steps(const Program *p, const PassOptions *o, Arena *a,
                             int *count) {
    Step *step = hoisted_steps(p, o, a, count);
    Graph **graph = ARENA_ARRAY(a, (size_t)*count, Graph *);
    for (int i = 0; i < *count; i++)
        graph[i] = step[i].graph;
    for (int i = 0; i < *count; i++) {
        graph[i] = passes_after(graph[i], o, "hoist", "schedule");
        check_nodes(graph, i + 1); // simplify has not seen the others
    }
    for (int i = 0; i < *count; i++)
        step[i].graph = graph[i];
    return step;
}

// Bytes of the states of all steps where ACT is stored so.
static int64_t states_bytes(const Step *step, int count, DType act, Arena *a) {
    Graph **graph = ARENA_ARRAY(a, (size_t)count, Graph *);
    for (int i = 0; i < count; i++)
        (graph[i] = step[i].graph)->act = act;
    int64_t bytes = memory_states(graph, count);
    for (int i = 0; i < count; i++)
        for (NodeId n = 0; n < graph[i]->count; n++)
            graph[i]->node[n].offset = -1;
    return bytes;
}

// Rematerializes for the storage of ACT where memory is limited, so that plans
// for other devices are the same graphs.
static Graph *rematerialize_step(Graph *g, int64_t states,
                                 const PassOptions *o) {
    g->act = o->measured;
    g->arena_bytes = states;
    return pass_follow(g, o, pass_find("rematerialize"), NULL);
}

// The plan of steps that have launches in their order.
static Plan *place_steps(Step *step, int count, const PassOptions *o,
                         Arena *a) {
    Plan *plan = ARENA_NEW(a, Plan);
    *plan = (Plan){.device = o->device,
                   .act = o->storage,
                   .step = step,
                   .num_steps = count};
    Graph **graph = ARENA_ARRAY(a, (size_t)count, Graph *);
    for (int i = 0; i < count; i++)
        (graph[i] = step[i].graph)->act = o->storage;
    plan->state_bytes = memory_states(graph, count);
    for (int i = 0; i < count; i++) {
        graph[i]->arena_bytes = plan->state_bytes;
        step[i].graph = pass_run(graph[i], o, pass_find("memory"));
        check_memory(step[i].graph);
        step[i].plan = graph_plan(step[i].graph, step_merges(step[i].kind), a);
        if (step[i].graph->arena_bytes > plan->arena_bytes)
            plan->arena_bytes = step[i].graph->arena_bytes;
    }
    return plan;
}

Plan *program_plan(const Program *p, const PassOptions *o) {
    Arena *a = p->eval->arena;
    int count;
    Step *step = scheduled_steps(p, o, a, &count);
    int64_t states = states_bytes(step, count, o->measured, a);
    for (int i = 0; i < count && o->rematerialize; i++)
        step[i].graph = rematerialize_step(step[i].graph, states, o);
    return place_steps(step, count, o, a);
}

bool program_fits(const Program *p, const PassOptions *o) {
    Arena *a = p->eval->arena;
    int count;
    Step *step = scheduled_steps(p, o, a, &count);
    int64_t measured = states_bytes(step, count, o->measured, a);
    int64_t stored = states_bytes(step, count, o->storage, a);
    bool fits = true;
    for (int i = 0; i < count && fits; i++) {
        Graph *g = step[i].graph;
        if (o->rematerialize)
            g = rematerialize_step(g, measured, o);
        g->act = o->storage;
        g->arena_bytes = stored;
        fits = memory_fits(g, o->memory);
    }
    return fits;
}

Plan *plan_elsewhere(const Plan *plan, const PassOptions *o) {
    Arena *a = plan->step[0].graph->arena;
    Step *step = ARENA_ARRAY(a, (size_t)plan->num_steps, Step);
    for (int i = 0; i < plan->num_steps; i++) {
        Graph *g = graph_clone(plan->step[i].graph);
        g->facts &= ~(unsigned)PLANNED;
        for (NodeId n = 0; n < g->count; n++)
            g->node[n].offset = -1;
        step[i] = plan->step[i];
        step[i].graph = g;
    }
    return place_steps(step, plan->num_steps, o, a);
}
