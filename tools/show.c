// sinter show: a model as text at any stage on its way to a trainer.
#include "base/exits.h"
#include "tools/tools.h"
#include "tools/trainer.h"

#include <string.h>

// Graph stages and the last pass that has run at each.
// clang-format off
static const struct {
    const char *name, *last;
} stages[] = {
    {"graph",      NULL},
    {"grad",       "autodiff"},
    {"typed",      "precision"},
    {"layout",     "layout"},
    {"simplified", "prune"},
    {"fused",      "fuse"},
    {"plan",       "memory"},
};
// clang-format on

enum { NUM_STAGES = sizeof stages / sizeof stages[0] };

static Graph *graph_named(const Program *p, const char *name) {
    if (name && strcmp(name, "eval") == 0)
        return p->eval;
    if (name && strcmp(name, "init") == 0)
        return p->init;
    return p->train;
}

// Where a stage stands in the table, -1 for one that is not a graph.
static int stage_find(const char *name) {
    for (int i = 0; i < NUM_STAGES; i++)
        if (strcmp(stages[i].name, name) == 0)
            return i;
    return -1;
}

// The graph as the trainer has it: with the addresses that all graphs of the
// program agree on.
static Graph *graph_planned(const Program *p, const PassOptions *o,
                            const char *name) {
    Plan *plan = program_plan(p, o);
    if (name && strcmp(name, "eval") == 0)
        return plan->eval;
    if (name && strcmp(name, "init") == 0)
        return plan->init;
    return plan->train;
}

static void graph_show(Arena *a, const Program *p, const Arguments *arguments,
                       int stage) {
    PassOptions o = pass_options(&p->recipe, target_of(arguments));
    Graph *g = graph_named(p, arguments->graph);
    if (stages[stage].last && strcmp(stages[stage].last, "memory") == 0)
        g = graph_planned(p, &o, arguments->graph);
    else if (stages[stage].last)
        g = passes_run(g, &o, stages[stage].last, NULL, NULL);
    Text t = text_new(a);
    graph_print(&t, g);
    fputs(text_string(&t), stdout);
}

static void trainer_show(Arena *a, const Program *p, bool kernels) {
    TrainerText t = trainer_text(a, p);
    fputs(text_string(kernels ? &t.cu_file : &t.c_file), stdout);
}

static void launches_show(Arena *a, const Program *p,
                          const Arguments *arguments) {
    PassOptions o = pass_options(&p->recipe, target_of(arguments));
    Text t = text_new(a);
    launches_print(a, &t, program_plan(p, &o),
                   arguments->graph ? arguments->graph : "train");
    fputs(text_string(&t), stdout);
}

static int stage_show(Arena *a, const Arguments *arguments) {
    const char *name = arguments->operand[0];
    int stage = stage_find(name), status;
    bool kernels = strcmp(name, "kernels") == 0;
    bool launches = strcmp(name, "launches") == 0;
    if (stage < 0 && !kernels && !launches && strcmp(name, "trainer") != 0) {
        fprintf(stderr, "sinter: no stage '%s'; see sinter show --help\n",
                name);
        return EXIT_USAGE;
    }
    Diagnostics diags = diag_new(a);
    Program *p = model_load(a, arguments, &diags, &status);
    if (!p)
        return status;
    if (stage >= 0)
        graph_show(a, p, arguments, stage);
    else if (launches)
        launches_show(a, p, arguments);
    else
        trainer_show(a, p, kernels);
    return EXIT_GOOD;
}

int show_command(const Arguments *arguments) {
    Arena *a = arena_new();
    int status = stage_show(a, arguments);
    arena_free(a);
    return status;
}
