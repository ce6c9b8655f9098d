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

static void variant_add(Ablation *b, const char *name, const char *options,
                        Part part) {
    b->name[b->count] = name;
    b->variant[b->count] = (Variant){.options = options, .part = part};
    b->count++;
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

static void variants_add(Arena *a, Ablation *b) {
    const char *own = b->arguments->a ? b->arguments->a : "-O1";
    variant_add(b, "everything", own, PART_NONE);
    for (const Pass *p = standard_passes; p->name != NULL; p++)
        if (p->gives == 0 && b->count < MAX_VARIANTS - NUM_PARTS)
            variant_add(b, arena_format(a, "without %s", p->name),
                        arena_format(a, "%s --without=%s", own, p->name),
                        PART_NONE);
    variant_add(b, "unfused", "-O0", PART_NONE);
    for (Part part = PART_NONE + 1; part < NUM_PARTS; part++)
        if (is_part(b->arguments, part))
            variant_add(b, arena_format(a, "no %s", part_name[part]), own,
                        part);
}

// The variant without loading is the same trainer.
static int ablation_build(Arena *a, Ablation *b, Variant *s) {
    if (s->part != PART_LOADING)
        return variant_build(a, s, b->arguments, &b->runs);
    const char *name = s->name;
    *s = b->variant[0];
    s->name = name;
    s->part = PART_LOADING;
    return EXIT_GOOD;
}

static int build_and_run(Arena *a, Ablation *b, int i) {
    Variant *s = &b->variant[i];
    const char *own = NULL;
    s->name = arena_format(a, "v%d", i);
    int status = ablation_build(a, b, s);
    if (status == EXIT_GOOD && (i == 0 || s->part > PART_LOADING))
        status = variant_start(a, s, &b->runs, &own);
    if (i == 0)
        b->start = own;
    return status == EXIT_GOOD
               ? variant_run(a, s, &b->runs, own != NULL ? own : b->start)
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

static void variant_print(Text *t, const Ablation *b, int i) {
    const double mib = 1 << 20;
    const Variant *s = &b->variant[i], *all = &b->variant[0];
    Spread time = spread_of(t->arena, s->times.value, s->times.count);
    text_add(t, "%-24s", b->name[i]);
    figure_print(t, (double)s->cost.launches, (double)all->cost.launches);
    figure_print(t, (double)s->cost.bytes / mib, (double)all->cost.bytes / mib);
    figure_print(t, (double)s->plan->arena_bytes / mib,
                 (double)all->plan->arena_bytes / mib);
    text_add(t, "%11.3f  %.3f..%.3f\n", time.median, time.low, time.high);
}

static void ablation_print(Text *t, const Ablation *b) {
    text_add(t,
             "%s on %s, data %s, batch %" PRId64
             "; changes are relative to the first "
             "row\n\n%-24s%12s%9s%12s%9s%12s%9s%11s  95%% interval\n",
             b->variant[0].program->name, b->runs.device, b->runs.data,
             b->runs.batch, "", "launches", "", "MiB moved", "", "MiB arena",
             "", "ms, median");
    for (int i = 0; i < b->count; i++) {
        bool first = b->variant[i].part != PART_NONE &&
                     b->variant[i - 1].part == PART_NONE;
        text_add(t, first
                        ? "\nvariants without a part of the step: they compute "
                          "a different result, so only their cost counts\n"
                        : "");
        variant_print(t, b, i);
    }
}

static void ablation_json(Text *t, const Ablation *b) {
    text_add(t, "{\"schema\": 1");
    json_text(t, "model", b->variant[0].program->name);
    json_count(t, "batch", b->runs.batch);
    json_text(t, "device", b->runs.device);
    text_add(t, ", \"variants\": [");
    for (int i = 0; i < b->count; i++) {
        text_add(t, i ? ",\n {\"name\": \"%s\", " : "\n {\"name\": \"%s\", ",
                 b->name[i]);
        variant_json(t, &b->variant[i]);
        text_add(t, ", \"part\": %s}",
                 b->variant[i].part != PART_NONE ? "true" : "false");
    }
    text_add(t, "]}\n");
}

static int ablation_run(Arena *a, Ablation *b) {
    int status = EXIT_GOOD;
    for (int i = 0; i < b->count && status == EXIT_GOOD; i++)
        status = build_and_run(a, b, i);
    return status;
}

int ablate(Arena *a, const Arguments *arguments) {
    Size size;
    Ablation *b = ARENA_NEW(a, Ablation);
    int status = model_size(arguments, &size);
    b->arguments = arguments;
    if (status != EXIT_GOOD)
        return status;
    int64_t batch =
        arguments->batch.given ? arguments->batch.value : size.batch;
    if (!runs_open(a, arguments, batch, &b->runs))
        return EXIT_IO;
    variants_add(a, b);
    status = ablation_run(a, b);
    runs_close(&b->runs);
    Text t = text_new(a);
    if (status == EXIT_GOOD && arguments->json)
        ablation_json(&t, b);
    else if (status == EXIT_GOOD)
        ablation_print(&t, b);
    lines_print(&t);
    return status;
}
