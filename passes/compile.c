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

// ---- all steps together ----

// Averages are part of the steps that update.
void steps_average(Steps *s) {
    const Graph *average = NULL;
    if (!program_averages_each_step(s->program))
        return;
    for (int i = 0; i < s->count; i++)
        if (s->step[i].kind == STEP_AVERAGE)
            average = s->step[i].graph;
    for (int i = 0; i < s->count; i++) {
        Graph *without = s->step[i].graph;
        if (s->step[i].kind != (s->shards > 0 ? STEP_APPLY : STEP_TRAIN))
            continue;
        s->step[i].graph = step_with_average(without, average);
        graph_free(without);
    }
}

static Graph **graphs_of(const Steps *s) {
    Graph **graph = ARENA_ARRAY(s->arena, (size_t)s->count + 1, Graph *);
    for (int i = 0; i < s->count; i++)
        graph[i] = s->step[i].graph;
    return graph;
}

static void step_insert(Steps *s, int at, StepKind kind, const char *name,
                        Graph *graph) {
    memmove(&s->step[at + 1], &s->step[at],
            (size_t)(s->count++ - at) * sizeof *s->step);
    s->step[at] = (Step){.kind = kind, .name = name, .graph = graph};
}

// Adds the step that computes the derived states, and the one before
// an evaluation.
void steps_derive(Steps *s) {
    Graph *derive = derive_graph(graphs_of(s), s->count);
    const Graph *eval = NULL;
    for (int i = 0; derive != NULL && i < s->count; i++)
        if (s->step[i].kind == STEP_APPLY)
            step_derives(s->step[i].graph, derive);
    for (int i = 0; i < s->count; i++) {
        StepKind kind = s->step[i].kind;
        if (derive != NULL && kind > STEP_DERIVE) {
            step_insert(s, i++, STEP_DERIVE, "derive", derive);
            derive = NULL;
        }
        bool is_first =
            eval == NULL && (kind == STEP_EVAL || kind == STEP_PREDICT);
        Graph *prepare = is_first ? prepare_graph(s->step[i].graph) : NULL;
        if (prepare != NULL)
            step_insert(s, i++, STEP_PREPARE, "prepare", prepare);
        if (is_first)
            eval = s->step[i].graph;
        // A prediction shares the states of an evaluation, or prepares none.
        else if (kind >= STEP_PREDICT &&
                 !prepares_first(eval, s->step[i].graph))
            s->step[i].graph->name =
                kind == STEP_PREDICT ? "predict_alone" : "decode_alone";
    }
}

// Gives states their offsets for a storage of ACT.
static void assign_states(Steps *s, DType act) {
    Graph **graph = graphs_of(s);
    for (int i = 0; i < s->count; i++)
        graph[i]->act = act;
    s->state_bytes = memory_states(graph, s->count, &s->partial);
    s->partial_bytes = s->state_bytes - s->partial;
    s->state_bytes += s->waiting_sums * s->partial_bytes;
    for (int i = 0; i < s->count; i++)
        graph[i]->arena_bytes = s->state_bytes;
}

// Rematerializes for the storage of ACT where memory is limited, so that plans
// for other devices are the same graphs.
void steps_measure(Steps *s) {
    assign_states(s, s->options->measured);
    for (int i = 0; i < s->count; i++)
        for (NodeId n = 0; n < s->step[i].graph->count; n++)
            s->step[i].graph->node[n].offset = -1;
}

void steps_assign(Steps *s) {
    assign_states(s, s->options->storage);
}

// ---- through the passes ----

// The steps of a program share a limit of nodes, so that a program with many
// steps compiles no longer than one with a large step.
static void check_nodes(const Steps *s, int count) {
    NodeId nodes = 0;
    for (int i = 0; i < count; i++)
        nodes += s->step[i].graph->count;
    if (nodes > MAX_PROGRAM_NODES)
        graph_report_full(s->step[count - 1].graph);
}

PassOptions step_options(const PassOptions *o, const Step *step, int shards) {
    PassOptions copy = *o;
    copy.no_updates |= step->kind == STEP_GRADIENTS;
    if (step->kind == STEP_OPTIMIZE)
        copy.part = PART_OPTIMIZE;
    else if (step->kind == STEP_APPLY)
        copy.part = PART_APPLY;
    else if (step->kind == STEP_TRAIN && shards > 0)
        copy.part = PART_SHARD;
    copy.optimizer_shard = step->shard;
    return copy;
}

// The bytes that an arena may take where each shard in lockstep has a copy of
// it from the terms on.
static int64_t arena_room(const Steps *s, int64_t memory) {
    return s->lockstep > 1 ? s->partial + (memory - s->partial) / s->lockstep
                           : memory;
}

// Takes a step from a pass to another.  Once simplified, it is not counted with
// steps that are not.
static void step_run(Steps *s, int i, const Pass *from, const Pass *to) {
    Graph *g = s->step[i].graph;
    PassOptions options = step_options(s->options, &s->step[i], s->shards);
    options.memory = arena_room(s, options.memory);
    bool counts = (g->facts & GROUPED) == 0;
    if (from == standard_passes)
        g = passes_run(g, &options, to->name, NULL, NULL);
    else
        g = passes_after(g, &options, from[-1].name, to->name);
    s->step[i].graph = g;
    if (counts)
        check_nodes(s, g->facts & GROUPED ? i + 1 : s->count);
}

// Takes all steps through the passes from one to that before `end`.  They meet
// after each pass with a function for all.
static void steps_run(Steps *s, const Pass *from, const Pass *end) {
    for (const Pass *p = from; p != end; from = ++p) {
        while (p->then == NULL && p + 1 != end)
            p++;
        for (int i = 0; i < s->count; i++)
            step_run(s, i, from, p);
        if (p->then != NULL)
            p->then(s);
    }
}

// The pass that gives every buffer its offset.
static const Pass *planning_pass(void) {
    const Pass *p = standard_passes;
    while ((p->gives & PLANNED) == 0)
        p++;
    return p;
}

static Graph *update_graph(const Graph *train, const char *name) {
    Graph *g = graph_clone(train);
    g->name = name;
    return g;
}

// Adds a step of that kind and optimizer shard for each stage, where it
// belongs.
static int stages_add(const Program *p, Arena *a, Step *step, int count,
                      StepKind kind, int shard, const char *name,
                      Graph *(*graph)(const Graph *train, const char *name)) {
    int at = count;
    while (at > 0 && step[at - 1].kind > kind)
        at--;
    memmove(&step[at + p->num_stages], &step[at],
            (size_t)(count - at) * sizeof *step);
    for (int i = 0; i < p->num_stages; i++) {
        const char *own = i == 0 ? name : arena_format(a, "%s_%d", name, i + 1);
        step[at + i] = (Step){.kind = kind,
                              .stage = i,
                              .shard = shard,
                              .name = own,
                              .graph = graph(p->stage[i].train, own)};
    }
    return count + p->num_stages;
}

// The optimizer shards of a program: 0, or 2 and more.
static int optimizer_shards(const Program *p) {
    return recipe_divides_optimizer(&p->recipe) ? p->recipe.optimizer_shards
                                                : 0;
}

Step *steps_given(const Program *p, Arena *a, int *count, const char **why) {
    const Step *own = program_steps(p, a, count);
    int added = (optimizer_shards(p) + 2) * p->num_stages;
    Step *step = ARENA_ARRAY(a, (size_t)(*count + added) + 3, Step);
    Graph *decode = p->predict == NULL ? NULL : decode_graph(p->predict, why);
    memcpy(step, own, (size_t)*count * sizeof *own);
    for (int i = 0; i < optimizer_shards(p); i++)
        *count = stages_add(p, a, step, *count, STEP_OPTIMIZE, i,
                            arena_format(a, "optimize_%d", i), update_graph);
    if (p->recipe.shards > 0)
        *count = stages_add(p, a, step, *count, STEP_APPLY, 0, "apply",
                            update_graph);
    if (p->has_gradients)
        *count = stages_add(p, a, step, *count, STEP_GRADIENTS, 0, "gradients",
                            gradients_graph);
    if (decode != NULL)
        step[(*count)++] =
            (Step){.kind = STEP_DECODE, .name = decode->name, .graph = decode};
    return step;
}

static Steps steps_of(const Program *p, const PassOptions *o) {
    Steps s = {.program = p,
               .options = o,
               .arena = p->eval->arena,
               .shards = p->recipe.shards,
               .waiting_sums = program_waiting_sums(p),
               .lockstep = program_in_lockstep(p) ? p->recipe.shards : 1,
               .optimizer_shards = optimizer_shards(p)};
    s.step = steps_given(p, s.arena, &s.count, &s.not_decoded);
    for (int i = 0; i < s.count; i++)
        s.step[i].graph->max_nodes = MAX_PROGRAM_NODES;
    check_nodes(&s, s.count);
    return s;
}

// The plan of steps whose states have offsets.
static Plan *steps_plan(Steps *s) {
    Plan *plan = ARENA_NEW(s->arena, Plan);
    *plan = (Plan){.device = s->options->device,
                   .act = s->options->storage,
                   .shards = s->shards,
                   .waiting_sums = s->waiting_sums,
                   .lockstep = s->lockstep,
                   .state_bytes = s->state_bytes,
                   .partial = s->partial,
                   .partial_bytes = s->partial_bytes,
                   .not_decoded = s->not_decoded,
                   .step = s->step,
                   .num_steps = s->count};
    steps_run(s, planning_pass(), planning_pass() + 1);
    for (int i = 0; i < s->count; i++) {
        Step *step = &s->step[i];
        check_memory(step->graph);
        GraphPlan *launches =
            graph_plan(step->graph, step_merges(step->kind), s->arena);
        plan_merges_by_time(launches, &s->options->time_model, s->arena);
        step->plan = launches;
        if (step->graph->arena_bytes > plan->arena_bytes)
            plan->arena_bytes = step->graph->arena_bytes;
    }
    for (int i = 0; i < s->count && s->shards > 0; i++)
        if (s->step[i].kind == STEP_TRAIN)
            plan_buckets(plan, &s->step[i], s->arena);
    plan_optimizer_shards(plan, s->optimizer_shards, s->arena);
    return plan;
}

Plan *program_plan(const Program *p, const PassOptions *o) {
    Steps s = steps_of(p, o);
    steps_run(&s, standard_passes, planning_pass());
    return steps_plan(&s);
}

bool program_fits(const Program *p, const PassOptions *o) {
    Steps s = steps_of(p, o);
    bool fits = true;
    steps_run(&s, standard_passes, planning_pass());
    for (int i = 0; i < s.count && fits; i++)
        fits = memory_fits(s.step[i].graph, arena_room(&s, o->memory));
    return fits;
}

Plan *plan_elsewhere(const Plan *plan, const PassOptions *o) {
    Arena *a = plan->step[0].graph->arena;
    Steps s = {.options = o,
               .arena = a,
               .shards = plan->shards,
               .waiting_sums = plan->waiting_sums,
               .lockstep = plan->lockstep,
               .optimizer_shards = plan->num_optimizer_shards,
               .not_decoded = plan->not_decoded,
               .step = ARENA_ARRAY(a, (size_t)plan->num_steps, Step),
               .count = plan->num_steps};
    for (int i = 0; i < s.count; i++) {
        Graph *g = graph_clone(plan->step[i].graph);
        g->facts &= ~(unsigned)PLANNED;
        for (NodeId n = 0; n < g->count; n++)
            g->node[n].offset = -1;
        s.step[i] = plan->step[i];
        s.step[i].graph = g;
    }
    steps_assign(&s);
    return steps_plan(&s);
}
