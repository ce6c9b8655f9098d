// sinter compare --ablate: the cost of leaving out each pass, and the time that
// each part of a step takes.  All variants take the same batches, of the model
// file's size.  Variants without a pass start from the same state; a variant
// without a part is another model with its own initial state.
#include "base/exits.h"
#include "tools/compare/compare.h"
#include "tools/compare/spread.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_VARIANTS = 32 };

typedef struct {
    const Arguments *arguments;
    Runs runs;
    const char *start; // the common initial state
    Variant variant[MAX_VARIANTS];
    const char *name[MAX_VARIANTS];
    int count;
} Ablation;

static void variant_add(Ablation *ablation, const char *name,
                        const char *options, Part part) {
    ablation->name[ablation->count] = name;
    ablation->variant[ablation->count] =
        (Variant){.options = options, .part = part};
    ablation->count++;
}

// Whether the training step has such a part.
static bool is_part(const Arguments *arguments, Part part) {
    Arena *a = arena_new();
    Diagnostics diags =
        diag_new(a); // name of the variant in the line of progress
    Program *p = frontend_load(a, arguments->operand[0], arguments->set,
                               arguments->num_settings, &diags);
    bool has = p != NULL && part_remove(p, part);
    arena_free(a);
    return has;
}

static void variants_add(Arena *a, Ablation *ablation) {
    const char *own = ablation->arguments->a ? ablation->arguments->a : "-O1";
    variant_add(ablation, "everything", own, PART_NONE);
    for (const Pass *p = standard_passes; p->name != NULL; p++)
        if (p->gives == 0 && ablation->count < MAX_VARIANTS - NUM_PARTS)
            variant_add(ablation, arena_format(a, "without %s", p->name),
                        arena_format(a, "%s --without=%s", own, p->name),
                        PART_NONE);
    variant_add(ablation, "unfused", "-O0", PART_NONE);
    for (Part part = PART_NONE + 1; part < NUM_PARTS; part++)
        if (is_part(ablation->arguments, part))
            variant_add(ablation, arena_format(a, "no %s", part_name[part]),
                        own, part);
}

// The variant without loading is the same trainer.
static int ablation_build(Arena *a, Ablation *ablation, Variant *v) {
    if (v->part != PART_LOADING)
        return variant_build(a, v, ablation->arguments, &ablation->runs);
    const char *name = v->name;
    *v = ablation->variant[0];
    v->name = name;
    v->part = PART_LOADING;
    return EXIT_GOOD;
}

static int build_and_run(Arena *a, Ablation *ablation, int i) {
    Variant *v = &ablation->variant[i];
    const char *own = NULL;
    v->name = arena_format(a, "v%d", i);
    int status = ablation_build(a, ablation, v);
    if (status == EXIT_GOOD && (i == 0 || v->part > PART_LOADING))
        status = variant_start(a, v, &ablation->runs, &own);
    if (i == 0)
        ablation->start = own;
    return status == EXIT_GOOD
               ? variant_run(a, v, &ablation->runs,
                             own != NULL ? own : ablation->start)
               : status;
}

// ---- printing ----

// Prints a figure, and its ratio to that of the whole step.
static void figure_print(Text *t, double own, double all) {
    if (own == all)
        text_add(t, "%12.6g%9s", own, "");
    else
        text_add(t, "%12.6g%+8.1f%%", own, 100 * (own / all - 1));
}

static void variant_print(Text *t, const Ablation *ablation, int i) {
    const double mib = 1 << 20;
    const Variant *v = &ablation->variant[i], *all = &ablation->variant[0];
    Spread time = spread_of(t->arena, v->times.value, v->times.count);
    text_add(t, "%-24s", ablation->name[i]);
    figure_print(t, (double)v->cost.launches, (double)all->cost.launches);
    figure_print(t, (double)v->cost.bytes / mib, (double)all->cost.bytes / mib);
    figure_print(t, (double)v->plan->arena_bytes / mib,
                 (double)all->plan->arena_bytes / mib);
    text_add(t, "%11.3f  %.3f..%.3f\n", time.median, time.low, time.high);
}

static void ablation_print(Text *t, const Ablation *ablation) {
    text_add(t,
             "%s on %s, data %s, batch %" PRId64
             "; changes are relative to the first "
             "row\n\n%-24s%12s%9s%12s%9s%12s%9s%11s  95%% interval\n",
             ablation->variant[0].program->name, ablation->runs.device,
             ablation->runs.data, ablation->runs.batch, "", "launches", "",
             "MiB moved", "", "MiB arena", "", "ms, median");
    for (int i = 0; i < ablation->count; i++) {
        bool first = ablation->variant[i].part != PART_NONE &&
                     ablation->variant[i - 1].part == PART_NONE;
        text_add(t, first
                        ? "\nvariants without a part of the step: they compute "
                          "a different result, so only their cost counts\n"
                        : "");
        variant_print(t, ablation, i);
    }
}

static void ablation_json(Text *t, const Ablation *ablation) {
    text_add(t, "{\"schema\": 1");
    json_text(t, "model", ablation->variant[0].program->name);
    json_count(t, "batch", ablation->runs.batch);
    json_text(t, "device", ablation->runs.device);
    text_add(t, ", \"variants\": [");
    for (int i = 0; i < ablation->count; i++) {
        text_add(t, i ? ",\n {\"name\": \"%s\", " : "\n {\"name\": \"%s\", ",
                 ablation->name[i]);
        variant_json(t, &ablation->variant[i]);
        text_add(t, ", \"part\": %s}",
                 ablation->variant[i].part != PART_NONE ? "true" : "false");
    }
    text_add(t, "]}\n");
}

static int ablation_run(Arena *a, Ablation *ablation) {
    int status = EXIT_GOOD;
    for (int i = 0; i < ablation->count && status == EXIT_GOOD; i++)
        status = build_and_run(a, ablation, i);
    return status;
}

int ablate(Arena *a, const Arguments *arguments) {
    Size size;
    Ablation *ablation = ARENA_NEW(a, Ablation);
    int status = model_size(arguments, &size);
    ablation->arguments = arguments;
    if (status != EXIT_GOOD)
        return status;
    int64_t batch =
        arguments->batch.given ? arguments->batch.value : size.batch;
    if (!runs_open(a, arguments, batch, &ablation->runs))
        return EXIT_IO;
    variants_add(a, ablation);
    status = ablation_run(a, ablation);
    runs_close(&ablation->runs);
    Text t = text_new(a);
    if (status == EXIT_GOOD && arguments->json)
        ablation_json(&t, ablation);
    else if (status == EXIT_GOOD)
        ablation_print(&t, ablation);
    lines_print(&t);
    return status;
}
