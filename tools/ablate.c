// sinter compare --ablate: each pass left out by itself, and what that costs.
//
// All start from the same state and take the same batches, of the size that the
// model file asks for.
#include "base/exits.h"
#include "tools/compare.h"
#include "tools/spread.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_VARIANTS = 32 };

typedef struct {
    const Arguments *arguments;
    Runs runs;
    const char *start; // the state that all begin with
    Side side[MOST_VARIANTS];
    const char *name[MOST_VARIANTS];
    int count;
} Ablation;

static void variant_add(Ablation *b, const char *name, const char *options) {
    b->name[b->count] = name;
    b->side[b->count] = (Side){.options = options};
    b->count++;
}

static void variants_add(Arena *a, Ablation *b) {
    const char *own = b->arguments->a ? b->arguments->a : "-O1";
    variant_add(b, "everything", own);
    for (const Pass *p = standard_passes; p->name != NULL; p++)
        if (p->gives == 0 && b->count < MOST_VARIANTS - 1)
            variant_add(b, arena_format(a, "without %s", p->name),
                        arena_format(a, "%s --without=%s", own, p->name));
    variant_add(b, "unfused", "-O0");
}

static int variant_run(Arena *a, Ablation *b, int i) {
    Side *s = &b->side[i];
    s->name = arena_format(a, "v%d", i);
    int status = side_build(a, s, b->arguments, &b->runs);
    if (status == EXIT_GOOD && i == 0)
        status = side_start(a, s, &b->runs, &b->start);
    return status == EXIT_GOOD ? side_run(a, s, &b->runs, b->start) : status;
}

// ---- printing ----

static const Graph *train_of(const Side *s) {
    return plan_graph(s->plan, "train");
}

// A figure, and how much larger it is than with everything.
static void figure_print(Text *t, double own, double all) {
    if (own == all)
        text_add(t, "%12.6g%9s", own, "");
    else
        text_add(t, "%12.6g%+8.1f%%", own, 100 * (own / all - 1));
}

static void variant_print(Text *t, const Ablation *b, int i) {
    const double mib = 1 << 20;
    const Side *s = &b->side[i], *all = &b->side[0];
    Cost own = graph_cost(train_of(s)), whole = graph_cost(train_of(all));
    Spread time = spread_of(t->arena, s->times.value, s->times.count);
    text_add(t, "%-20s", b->name[i]);
    figure_print(t, own.launches, whole.launches);
    figure_print(t, (double)own.bytes / mib, (double)whole.bytes / mib);
    figure_print(t, (double)s->plan->arena_bytes / mib,
                 (double)all->plan->arena_bytes / mib);
    text_add(t, "%11.3f  %.3f..%.3f\n", time.median, time.low, time.high);
}

static void ablation_print(Text *t, const Ablation *b) {
    text_add(t,
             "%s on %s, data %s, batch %" PRId64
             "; each is compared with everything\n\n"
             "%-20s%12s%9s%12s%9s%12s%9s%11s  of 95%%\n",
             b->side[0].program->name, b->runs.device, b->runs.data,
             b->runs.batch, "", "launches", "", "MiB moved", "", "MiB arena",
             "", "ms, median");
    for (int i = 0; i < b->count; i++)
        variant_print(t, b, i);
}

static void ablation_json(Text *t, const Ablation *b) {
    text_add(t, "{\"schema\": 1, \"model\": ");
    json_string(t, b->side[0].program->name);
    text_add(t, ", \"batch\": %" PRId64 ", \"device\": ", b->runs.batch);
    json_string(t, b->runs.device);
    text_add(t, ", \"variants\": [");
    for (int i = 0; i < b->count; i++) {
        text_add(t, i ? ",\n {\"name\": \"%s\", " : "\n {\"name\": \"%s\", ",
                 b->name[i]);
        side_json(t, &b->side[i]);
        text_add(t, "}");
    }
    text_add(t, "]}\n");
}

static int ablation_run(Arena *a, Ablation *b) {
    int status = EXIT_GOOD;
    for (int i = 0; i < b->count && status == EXIT_GOOD; i++)
        status = variant_run(a, b, i);
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
    fputs(text_string(&t), stdout);
    return status;
}
