// Program: the two files of a trainer.
//
// NAME.cu holds the kernels.  NAME.c includes it as C, for the host, and
// carries its text for a device that compiles it when the trainer starts.
// NAME.c also holds the steps as lists of launches, tables of states, inputs
// and library calls, and the address of every tensor on each device.

#include "codegen/program.h"

int act_bits(DType act) {
    return act == F16 ? 16 : act == BF16 ? 1 : 32;
}

// Lists a step's kernels and merged launches that have a text of their own.
static void list_written(Writer *w, const Launches *l) {
    for (int k = 0; k < l->count; k++)
        if (l->kernel[k].text != NULL && l->kernel[k].first == &l->kernel[k])
            ARENA_APPEND(w->a, w->kernel, w->num_kernels, &l->kernel[k]);
    for (int k = 0; k < l->plan->merged.count; k++)
        if (l->merged[k].text != NULL)
            ARENA_APPEND(w->a, w->merged, w->num_merged, &l->merged[k]);
}

static void find_steps(Writer *w) {
    const Plan *host = w->plan[HOST_PLAN];
    Launches *launches = codegen_launches(host, w->plan[GPU_PLAN], w->a);
    w->num_steps = host->num_steps;
    w->step = ARENA_ARRAY(w->a, (size_t)w->num_steps, PlannedStep);
    for (int i = 0; i < w->num_steps; i++) {
        PlannedStep *s = &w->step[i];
        *s = (PlannedStep){.step = &host->step[i],
                           .name = host->step[i].name,
                           .graph = host->step[i].graph,
                           .kernel = launches[i].kernel,
                           .count = launches[i].count,
                           .launches = &launches[i]};
        for (int k = 0; k < NUM_PLANS; k++)
            s->plan[k] = w->plan[k]->step[i].plan;
        list_written(w, &launches[i]);
    }
}

static int64_t count_parameters(const Graph *g) {
    int64_t count = 0;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_param)
            count += type_count(g->node[n].type);
    return count;
}

// The step of training, or of prediction in a program that only predicts.
static const PlannedStep *main_step(const Writer *w) {
    const PlannedStep *s = w->step;
    while (s->step->kind != STEP_TRAIN && s->step->kind != STEP_PREDICT)
        s++;
    return s;
}

static bool any_family(const Writer *w) {
    for (int k = 0; k < w->num_kernels; k++)
        if (kernel_in_family(w->kernel[k]))
            return true;
    return false;
}

static void write_header(const Writer *w, Text *t) {
    const Program *p = w->program;
    text_add(t, "// %s: a trainer, from %s.\n" EMITTED_LICENCE "//\n", p->name,
             file_text(w->a, p->file));
    text_add(t, "//   batch %lld, %lld parameters\n",
             (long long)p->recipe.batch,
             (long long)count_parameters(p->stage[0].train));
    text_add(t, "//   arena: %lld bytes on the host, %lld on CUDA\n",
             (long long)w->plan[HOST_PLAN]->arena_bytes,
             (long long)w->plan[GPU_PLAN]->arena_bytes);
    text_add(t, "//   a step: %d launches, ", main_step(w)->count);
    text_add(t, "%d fewer with merged launches on CUDA\n//\n",
             merged_saving(&main_step(w)->launches->plan->merged,
                           &main_step(w)->launches->plan->fusions, 0, NULL));
    text_add(t, "// Tensor v12 of a step is %%12 of its graph, which "
                "`sinter show plan\n// --graph=STEP` prints.\n\n");
    text_add(t, "#include \"runtime/rt.h\"\n\n");
    text_add(t, "#define SINTER_ACT %d // bits of an activation on the host\n",
             act_bits(w->plan[HOST_PLAN]->act));
    if (any_family(w))
        text_add(t, "#define SINTER_SPEC_CONSTANTS // kernels take them as "
                    "arguments\n");
    text_add(t, "#include \"%s.cu\"\n\n", w->options->base);
    text_add(t, "#define COUNT(table) ((int)(sizeof(table) / "
                "sizeof *(table)))\n\n");
}

void codegen_program(const Program *p, const Plan *const plan[NUM_PLANS],
                     const CodegenOptions *o, Text *c, Text *cu,
                     TileTexts *tiles) {
    Writer w = {.program = p,
                .plan = plan,
                .options = o,
                .a = arena_new(),
                .tiled = o->host_tiles ? HOST_PLAN : GPU_PLAN};
    find_steps(&w);
    kernels_write(&w, cu);
    write_header(&w, c);
    entries_write(&w, c);
    calls_write(&w, c);
    fusion_tables_write(&w, c);
    merged_tables_write(&w, c);
    tiles_write(&w, c, tiles);
    forks_write(&w, c);
    for (int i = 0; i < w.num_steps; i++)
        step_write(&w, c, &w.step[i]);
    wrappers_write(&w, c);
    text_add(c, "\n// ---- states and inputs ----\n");
    for (int which = 0; which < NUM_PLANS; which++) {
        states_write(&w, c, which);
        inputs_write(&w, c, which);
        gradients_write(&w, c, which);
        buckets_write(&w, c, which);
        optimizer_shards_write(&w, c, which);
        step_table_write(&w, c, which);
        stored_write(&w, c, which);
    }
    trainer_write(&w, c);
    arena_free(w.a);
}
