// sinter show: prints a model at any stage of its compilation.
#include "base/exits.h"
#include "base/nearest.h"
#include "base/source.h"
#include "tools/show/inspect.h"

#include <string.h>

static ViewWriter tree_write, graph_write, plan_write, ir_write, kernels_write,
    trainer_write, launches_write, fusion_write;

// Stages in the order of the compilation, then views of a plan.
// clang-format off
static const View stages[] = {
    // name        suffix  last pass     --dump-to writes it, writer, help
    {"ast",        "txt",  NULL,         true,  tree_write,
     "the syntax tree"},
    {"graph",      "ir",   NULL,         true,  graph_write,
     "the graph from the front end: layers, loss and optimizer as operations"},
    {"grad",       "ir",   "autodiff",   true,  graph_write,
     "with the backward pass"},
    {"typed",      "ir",   "precision",  true,  graph_write,
     "with updates and a type for each operation"},
    {"layout",     "ir",   "layout",     true,  graph_write,
     "with channels padded where tensor cores need it"},
    {"simplified", "ir",   "dce",      true,  graph_write,
     "after algebraic simplification and dead code elimination"},
    {"fused",      "ir",   "fuse",       true,  graph_write,
     "each operation with its kernel"},
    {"plan",       "ir",   "memory",     true,  plan_write,
     "with the offset of each buffer in memory, and the plan of each launch"},
    {"kernel-ir",  "kir",  NULL,         true,  ir_write,
     "each kernel as a tree: loops, loads, arithmetic and stores"},
    {"kernels",    "cu",   NULL,         true,  kernels_write,
     "the CUDA source, with the costs of each launch"},
    {"kernels",    "json", NULL,         true,  kernels_write,
     NULL},
    {"trainer",    "c",    NULL,         true,  trainer_write,
     "the C source of the trainer"},
    {"ptx",        "ptx",  NULL,         true,  ptx_write,
     "the PTX that NVRTC compiles kernels to"},
    {"sass",       "sass", NULL,         true,  sass_write,
     "the machine code of kernels, disassembled; needs nvdisasm"},
    {"tile",       "cu",   NULL,         false, tile_write,
     "CUDA Tile C++ of contractions with the kernels around them, and of attention"},
    {"launches",   "txt",  NULL,         false, launches_write,
     "a line for each kernel and library call of a step"},
    {"fusion",     "txt",  NULL,         false, fusion_write,
     "fusion: the operations of each kernel, and why others are separate"},
    {"memory",     "txt",  NULL,         false, memory_write,
     "live range of every buffer of a step, and the buffers live at the peak"},
    {"params",     "txt",  NULL,         false, params_write,
     "parameters and their optimizer states"},
    {"recipe",     "txt",  NULL,         false, recipe_write,
     "learning rates and other schedules at some updates"},
};
// clang-format on

enum { NUM_STAGES = sizeof stages / sizeof stages[0] };

void show_stages(Text *t) {
    text_add(t, "\nSTAGE is one of\n\n");
    for (int i = 0; i < NUM_STAGES; i++)
        if (stages[i].what)
            text_add(t, "  %-12s%s\n", stages[i].name, stages[i].what);
}

const char *show_stage(int i, const char **what) {
    *what = i < NUM_STAGES ? stages[i].what : NULL;
    return i < NUM_STAGES ? stages[i].name : NULL;
}

static bool is_graph(const View *stage) {
    return strcmp(stage->suffix, "ir") == 0;
}

// The stage of that name; NULL, after a message, if there is none.
static const View *stage_find(const Arguments *arguments, const char *name) {
    Nearest near = nearest_to(name);
    for (int i = 0; i < NUM_STAGES; i++) {
        if (strcmp(stages[i].name, name) == 0)
            return &stages[i];
        nearest_offer(&near, stages[i].name);
    }
    if (near.best)
        complain(arguments, "no stage '%s'; did you mean %s?", name, near.best);
    else if (strchr(name, '.'))
        complain(arguments,
                 "no stage '%s'; the stage comes before the file: sinter show "
                 "STAGE FILE.net",
                 name);
    else
        complain(arguments, "no stage '%s'; see sinter show --help", name);
    return NULL;
}

// The same for the stages of a model, or of a graph from a file, whichever it
// is.
static const char *model_option_ignored(const Arguments *arguments) {
    if (!arguments->from)
        return arguments->act ? "--act applies to a graph --from a file; a "
                                "model's recipe has `precision`"
                              : NULL;
    if (arguments->num_settings > 0 || arguments->without || arguments->graph)
        return "--set, --without and --graph apply to a model, but --from "
               "reads a graph";
    return NULL;
}

// An option that a stage would ignore, with its use; NULL if there is none.  A
// description of a device may be ignored.
static const char *option_ignored(Arena *a, const Arguments *arguments,
                                  const View *stage) {
    bool of_model = arguments->from == NULL;
    bool kernels = of_model && stage->write == kernels_write;
    bool texts = kernels || stage->write == ptx_write ||
                 stage->write == sass_write;
    bool chooses =
        texts || stage->write == ir_write || stage->write == launches_write ||
        stage->write == fusion_write || stage->write == tile_write;
    if (arguments->json && !kernels)
        return "--json is for show kernels of a model";
    if ((arguments->kernel || arguments->line.number.given || arguments->op) &&
        !chooses)
        return "--kernel, --line and --op are for show kernels, kernel-ir, "
               "launches, fusion, tile, ptx and sass of a model";
    if (texts && !kernels && arguments->arch && strchr(arguments->arch, ','))
        return arena_format(a, "show %s takes one GPU: give one --arch",
                            stage->name);
    if ((arguments->at || arguments->samples.given) &&
        stage->write != recipe_write)
        return "--at and --samples are for show recipe";
    if (arguments->arch && !texts)
        return "--arch is for show kernels, ptx and sass of a model";
    if (arguments->lineinfo && !texts && stage->write != trainer_write)
        return "--lineinfo is for show kernels, trainer, ptx and sass of a "
               "model";
    if (arguments->graph &&
        (stage->write == tree_write || stage->write == trainer_write ||
         stage->write == recipe_write))
        return arena_format(a, "show %s shows all graphs: it takes no --graph",
                            stage->name);
    if (texts && strcmp(target_of(arguments), "host") == 0)
        return "kernels have one source for both devices, and their costs here "
               "are for a GPU; show launches takes --target=host";
    return model_option_ignored(arguments);
}

// ---- plan and trainer, made once ----

// The value of --graph, train by default.
static const char *graph_wanted(const Arguments *arguments) {
    return arguments->graph ? arguments->graph : "train";
}

const Plan *show_plan(Show *s) {
    PassOptions o = plan_options(s->p, s->arguments, target_of(s->arguments));
    if (!s->plan)
        s->plan = program_plan(s->p, &o);
    return s->plan;
}

const TrainerText *show_trainer(Show *s) {
    if (!s->trainer) {
        s->trainer = ARENA_NEW(s->a, TrainerText);
        *s->trainer = trainer_text(s->a, s->p, s->arguments);
    }
    return s->trainer;
}

static int no_graph(const Show *s, const Step *step, int count) {
    Text has = text_new(s->a);
    for (int i = 0; i < count; i++)
        text_add(&has, "%s %s", i ? "," : "", step[i].name);
    complain(s->arguments, "this program has no graph '%s'; it has%s",
             graph_wanted(s->arguments), text_string(&has));
    return EXIT_USAGE;
}

const Step *show_step(Show *s, int *status) {
    const Plan *plan = show_plan(s);
    const Step *step = plan_step(plan, graph_wanted(s->arguments));
    if (!step)
        *status = no_graph(s, plan->step, plan->num_steps);
    return step;
}

// ---- stages ----

static int tree_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    Diagnostics diags = diag_new(s->a);
    const char *path = s->file, *error = NULL;
    Source *source = source_read(s->a, path, MODEL_BYTES, &error);
    if (!source) {
        file_report(s->a, s->arguments, path, error);
        return EXIT_IO;
    }
    bool good = frontend_tree(s->a, source, out, &diags);
    diagnostics_print(s->a, s->arguments, &diags);
    return good ? EXIT_GOOD : EXIT_MODEL;
}

static int graph_write(Show *s, const View *stage, Text *out) {
    PassOptions o = plan_options(s->p, s->arguments, target_of(s->arguments));
    int count;
    const char *why;
    const Step *step = steps_given(s->p, s->a, &count, &why);
    const Step *own = step_named(step, count, graph_wanted(s->arguments));
    if (own == NULL)
        return no_graph(s, step, count);
    o = step_options(&o, own, s->p->recipe.shards);
    graph_print(out, stage->last == NULL
                         ? own->graph
                         : passes_run(own->graph, &o, stage->last, NULL, NULL));
    return EXIT_GOOD;
}

// All graphs of a program share one assignment of offsets.
static int plan_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    int status;
    const Step *step = show_step(s, &status);
    if (step == NULL)
        return status;
    graph_print(out, step->graph);
    plan_print(out, step->plan);
    plan_print_buckets(out, step);
    return EXIT_GOOD;
}

static int kernels_write(Show *s, const View *stage, Text *out) {
    bool json = s->arguments->json || strcmp(stage->suffix, "json") == 0;
    Device device;
    Inspection in;
    int status;
    if (!device_find(s->a, s->arguments, &device, &status) ||
        !inspect(s, &device, &in, &status))
        return status;
    resources_find(s->a, &in);
    if (json)
        kernels_json(s->a, out, &in);
    else
        kernels_print(s->a, out, &in);
    return EXIT_GOOD;
}

// Prints each selected kernel once.
static int ir_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    Device device;
    Inspection in;
    int status;
    if (!device_find(s->a, s->arguments, &device, &status) ||
        !inspect(s, &device, &in, &status))
        return status;
    for (int i = 0; i < in.count; i++) {
        const Inspected *l = &in.launch[i];
        if (!l->chosen || l->kernel->text == NULL ||
            l->kernel->first != l->kernel)
            continue;
        int step = (int)(l->step - in.plan->step);
        text_add(out, out->length > 0 ? "\n" : "");
        codegen_kernel_ir(out, in.host->step[step].plan,
                          in.plan->step[step].plan, l->index, l->kernel->name);
    }
    return EXIT_GOOD;
}

static int trainer_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    text_add(out, "%s", text_string(&show_trainer(s)->c_file));
    return EXIT_GOOD;
}

// Collects the launches of the requested step.
static bool step_inspect(Show *s, Device *device, Inspection *in, int *status) {
    return device_find(s->a, s->arguments, device, status) &&
           inspect_step(s, device, in, status);
}

static int launches_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    Device device;
    Inspection in;
    int status;
    if (!step_inspect(s, &device, &in, &status))
        return status;
    launches_print(s->a, out, &in);
    return EXIT_GOOD;
}

static int fusion_write(Show *s, const View *stage, Text *out) {
    (void)stage;
    Device device;
    Inspection in;
    int status;
    if (!step_inspect(s, &device, &in, &status))
        return status;
    fusion_print(out, &in);
    return EXIT_GOOD;
}

// ---- a graph from a file ----

// Continues a graph behind the last pass of its stage.
static int graph_continue(Show *s, const View *from, const View *to) {
    int status;
    Graph *g = graph_load(s->a, s->arguments, &status);
    if (g == NULL)
        return status;
    complain_when_full(s->arguments, g);
    PassOptions o = graph_options(s->arguments);
    if (s->arguments->act)
        o.storage = o.measured = o.act;
    const char *last = is_graph(to) ? to->last : "memory";
    if (to > from && last != NULL)
        g = from->last ? passes_after(g, &o, from->last, last)
                       : passes_run(g, &o, last, NULL, NULL);
    Text t = text_new(s->a);
    if (is_graph(to))
        graph_print(&t, g);
    else
        kernels_add(s->a, &t, g, to->write == ir_write);
    lines_print(&t);
    return EXIT_GOOD;
}

static int file_continue(Show *s, const View *to) {
    const View *from = stage_find(s->arguments, s->arguments->from);
    if (from == NULL)
        return EXIT_USAGE;
    if (!is_graph(from) || to < from ||
        !(is_graph(to) || to->write == kernels_write ||
          to->write == ir_write)) {
        complain(s->arguments,
                 "--from and --to need a graph stage and a later one, or "
                 "kernels: not %s and %s",
                 from->name, to->name);
        return EXIT_USAGE;
    }
    return graph_continue(s, from, to);
}

// ---- all stages ----

static int stages_dump(Show *s) {
    const char *folder = s->arguments->dump;
    int status = folder_make(s->arguments, folder), number = 0;
    for (const View *stage = stages;
         stage < stages + NUM_STAGES && status == EXIT_GOOD; stage++) {
        Text t = text_new(s->a);
        if (!stage->dumped)
            continue;
        // A stage may have two forms.
        number += number == 0 || strcmp(stage->name, stage[-1].name) != 0;
        status = stage->write(s, stage, &t);
        const char *path = arena_format(s->a, "%s/%02d-%s.%s", folder, number,
                                        stage->name, stage->suffix);
        if (status == EXIT_GOOD)
            status = text_write(s->arguments, path, &t);
        else if (status == EXIT_DEVICE) // after a message
            status = EXIT_GOOD;
    }
    return status;
}

// ---- the command ----

static int stage_print(Show *s, const View *stage) {
    Text t = text_new(s->a);
    int status = stage->write(s, stage, &t);
    if (status == EXIT_GOOD)
        lines_print(&t);
    return status;
}

// The name of the requested stage; NULL, after a message, if there is none or
// more than one.
static const char *stage_wanted(const Arguments *arguments) {
    const char *to = arguments->to ? arguments->to : arguments->from;
    if (arguments->num_operands == 2 && !arguments->to)
        return arguments->operand[0];
    if (arguments->num_operands == 1 && to)
        return to;
    if (arguments->num_operands > 2)
        complain(arguments, "show prints one stage of one file; --dump-to=DIR "
                            "writes all stages");
    else
        complain(arguments, "show needs a stage and a file; usage: sinter "
                            "show [option...] STAGE FILE.net");
    return NULL;
}

static int model_show(Show *s, const View *stage) {
    Diagnostics diags = diag_new(s->a);
    int status;
    if (stage && stage->write == tree_write)
        return graph_refused(s->arguments, s->file) ? EXIT_MODEL
                                                    : stage_print(s, stage);
    s->p = model_load(s->a, s->arguments, &diags, &status);
    if (!s->p)
        return status;
    return stage ? stage_print(s, stage) : stages_dump(s);
}

// --dump-to writes all stages, so it excludes a stage and options of some.
static int all_show(Show *s) {
    const Arguments *own = s->arguments;
    if (own->num_operands == 1 && !own->from && !own->to && !own->json &&
        !own->at && !own->samples.given && !own->act)
        return model_show(s, NULL);
    complain(own, "--dump-to writes every stage of a model: it takes no stage, "
                  "no --from, --to, --json, --at, --samples or --act");
    return EXIT_USAGE;
}

int show_command(Arena *a, const Arguments *given) {
    int status;
    Arguments copy = *given;
    const Arguments *arguments = &copy;
    if (!device_plan(a, &copy, &status))
        return status;
    const char *file = arguments->operand[arguments->num_operands - 1];
    Show s = {.a = a, .arguments = arguments, .file = file};
    if (arguments->dump)
        return all_show(&s);
    if (arguments->num_operands == 1 && std_text(file)) {
        fputs(std_text(file), stdout);
        return EXIT_GOOD;
    }
    const char *name = stage_wanted(arguments);
    const View *stage = name ? stage_find(arguments, name) : NULL;
    const char *vain = stage ? option_ignored(a, arguments, stage) : NULL;
    if (vain)
        complain(arguments, "%s", vain);
    if (stage == NULL || vain)
        return EXIT_USAGE;
    return arguments->from ? file_continue(&s, stage) : model_show(&s, stage);
}
