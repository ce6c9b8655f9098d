// sinter show: a model as text at any stage on its way to a trainer.
#include "base/exits.h"
#include "base/nearest.h"
#include "tools/device.h"
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

// Where a stage stands in the table, -1 for one that is not a graph.
static int stage_find(const char *name) {
    for (int i = 0; i < NUM_STAGES; i++)
        if (strcmp(stages[i].name, name) == 0)
            return i;
    return -1;
}

static void stage_unknown(const Arguments *arguments, const char *name) {
    Nearest near = nearest_to(name);
    for (int i = 0; i < NUM_STAGES; i++)
        nearest_offer(&near, stages[i].name);
    if (near.best)
        complain(arguments, "no stage '%s'; did you mean %s?", name, near.best);
    else
        complain(arguments, "no stage '%s'; see sinter show --help", name);
}

// The graph of a name at a stage; NULL, and a message, where there is none.
static Graph *graph_at(Arena *a, const Program *p, const PassOptions *o,
                       const char *name, int stage) {
    const char *last = stages[stage].last;
    int count;
    const Step *step = program_steps(p, a, &count);
    Graph *g = step_graph(step, count, name);
    // Addresses are what all graphs of the program agree on.
    if (last != NULL && strcmp(last, "memory") == 0)
        return plan_graph(program_plan(p, o), name);
    return g == NULL || last == NULL ? g : passes_run(g, o, last, NULL, NULL);
}

static const char *graph_wanted(const Arguments *arguments) {
    return arguments->graph ? arguments->graph : "train";
}

static int no_graph(Arena *a, const Program *p, const Arguments *arguments) {
    int count;
    const Step *step = program_steps(p, a, &count);
    Text has = text_new(a);
    for (int i = 0; i < count; i++)
        text_add(&has, "%s %s", i ? "," : "", step[i].name);
    complain(arguments, "this program has no graph '%s'; it has%s",
             graph_wanted(arguments), text_string(&has));
    return EXIT_USAGE;
}

static int graph_show(Arena *a, const Program *p, const Arguments *arguments,
                      int stage) {
    PassOptions o = plan_options(p, arguments, target_of(arguments));
    const char *name = graph_wanted(arguments);
    const Graph *g = graph_at(a, p, &o, name, stage);
    if (g == NULL)
        return no_graph(a, p, arguments);
    Text t = text_new(a);
    graph_print(&t, g);
    fputs(text_string(&t), stdout);
    return EXIT_GOOD;
}

static void trainer_show(Arena *a, const Program *p, const Arguments *arguments,
                         bool kernels) {
    TrainerText t = trainer_text(a, p, arguments);
    fputs(text_string(kernels ? &t.cu_file : &t.c_file), stdout);
}

// What the plan of a graph says: its launches, or how it is fused.
static int plan_show(Arena *a, const Program *p, const Arguments *arguments,
                     bool fusion) {
    Device device;
    int status;
    if (!device_find(a, arguments, &device, &status))
        return status;
    PassOptions o = plan_options(p, arguments, target_of(arguments));
    const char *name = graph_wanted(arguments);
    const Plan *plan = program_plan(p, &o);
    if (plan_graph(plan, name) == NULL)
        return no_graph(a, p, arguments);
    Text t = text_new(a);
    if (fusion)
        fusion_print(a, &t, plan, name);
    else
        launches_print(a, &t, plan, name, &device);
    fputs(text_string(&t), stdout);
    return EXIT_GOOD;
}

static int stage_show(Arena *a, const Arguments *arguments) {
    const char *name = arguments->operand[0];
    if (std_text(name) && arguments->num_operands == 1) {
        fputs(std_text(name), stdout);
        return EXIT_GOOD;
    }
    if (arguments->num_operands != 2) {
        complain(arguments, "show needs a stage and a file; usage: sinter "
                            "show [option...] STAGE FILE.net");
        return EXIT_USAGE;
    }
    int stage = stage_find(name), status;
    bool kernels = strcmp(name, "kernels") == 0;
    bool fusion = strcmp(name, "fusion") == 0;
    bool planned = strcmp(name, "launches") == 0 || fusion;
    if (stage < 0 && !kernels && !planned && strcmp(name, "trainer") != 0) {
        stage_unknown(arguments, name);
        return EXIT_USAGE;
    }
    Diagnostics diags = diag_new(a);
    Program *p = model_load(a, arguments, &diags, &status);
    if (!p)
        return status;
    if (stage >= 0)
        return graph_show(a, p, arguments, stage);
    if (planned)
        return plan_show(a, p, arguments, fusion);
    trainer_show(a, p, arguments, kernels);
    return EXIT_GOOD;
}

int show_command(const Arguments *arguments) {
    Arena *a = arena_new();
    int status = stage_show(a, arguments);
    arena_free(a);
    return status;
}
