// Compile: every graph of a program through the passes, into one arena.

#include "passes/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Runs the passes that come after the one named `after`, up to `last`.
static Graph *passes_between(Graph *g, const PassOptions *o, const char *after,
                             const char *last) {
    const Pass *p = pass_find(after) + 1;
    for (; p->name != NULL; p++) {
        if (!p->training)
            g = pass_run(g, o, p);
        if (strcmp(p->name, last) == 0)
            break;
    }
    return g;
}

// A plan that its verifier refuses is our mistake.
static void check_memory(const Graph *g) {
    Arena *a = arena_new();
    const char *why = memory_verify(g, a);
    if (why != NULL) {
        fprintf(stderr, "sinter: memory plan of %s: %s\n", g->name, why);
        abort();
    }
    arena_free(a);
}

Plan *program_plan(const Program *p, const PassOptions *o) {
    Arena *a = p->train->arena;
    Plan *plan = ARENA_NEW(a, Plan);
    plan->device = o->device;
    plan->act = o->storage;
    Graph *train = passes_run(p->train, o, "hoist", NULL, NULL);
    plan->derive = derive_graph(train);
    if (plan->derive != NULL)
        plan->derive = passes_between(plan->derive, o, "hoist", "schedule");
    plan->train = passes_between(train, o, "hoist", "schedule");
    plan->eval = passes_run(p->eval, o, "schedule", NULL, NULL);
    plan->init = passes_run(p->init, o, "schedule", NULL, NULL);

    Graph **graph[] = {&plan->train, &plan->eval, &plan->init, &plan->derive};
    Graph *present[4];
    int count = plan->derive == NULL ? 3 : 4;
    for (int i = 0; i < count; i++) {
        present[i] = *graph[i];
        present[i]->act = o->storage;
    }
    plan->state_bytes = memory_states(present, count);
    for (int i = 0; i < count; i++) {
        present[i]->arena_bytes = plan->state_bytes;
        *graph[i] = pass_run(present[i], o, pass_find("memory"));
        check_memory(*graph[i]);
        if ((*graph[i])->arena_bytes > plan->arena_bytes)
            plan->arena_bytes = (*graph[i])->arena_bytes;
    }
    return plan;
}
