// sinter compare: builds a model in two variants, runs both from the same state
// on the same batches, and compares every tensor that both store.
#include "tools/compare/compare.h"
#include "base/exits.h"
#include "tools/compare/spread.h"
#include "tools/load.h"

#include <math.h>

// Limits of the evaluation in double: multiply-adds and bytes.
static const double MAX_FLOPS = 4e10;
static const double MAX_BYTES = 4e9;
enum { MAX_BATCH = 32, LEAST_BATCH = 2 };

// ---- sizes ----

static int64_t stored_bytes(const Graph *g) {
    int64_t bytes = 0;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].offset >= 0)
            bytes += type_count(g->node[n].type) * (int64_t)sizeof(double);
    return bytes;
}

int model_size(const Arguments *arguments, Size *size) {
    int status;
    Arena *a = arena_new();
    Diagnostics diags = diag_new(a);
    Program *p = model_load(a, arguments, &diags, &status);
    if (p != NULL) {
        PassOptions o = plan_options(p, arguments, "host");
        const Step *train = plan_step(program_plan(p, &o), "train");
        *size = (Size){.batch = recipe_batch(&p->recipe),
                       .shards = p->recipe.shards,
                       .flops = graph_cost(train->plan).flops,
                       .bytes = stored_bytes(train->graph),
                       .whole = p->recipe.whole_train != NULL ||
                                p->recipe.whole_eval != NULL};
        status = inputs_named_check(
            a, arguments, p, arguments->device ? arguments->device : "host",
            runs_data(a, arguments, size->batch, DRAWN_BATCHES), NULL);
    }
    arena_free(a);
    return status;
}

// The samples of a shard that can be judged in double, of so many.
static int64_t judged_samples(const Size *size, int64_t own) {
    double share = fmin(MAX_FLOPS / (double)(size->flops + 1),
                        MAX_BYTES / (double)(size->bytes + 1));
    int64_t batch = (int64_t)((double)own * fmin(share, 1));
    if (batch < LEAST_BATCH)
        batch = LEAST_BATCH;
    batch = batch < MAX_BATCH ? batch : MAX_BATCH;
    if (batch >= own)
        return own;
    while (size->whole && own % batch != 0)
        batch--;
    return batch;
}

int64_t comparison_batch(const Arguments *arguments, const Size *size) {
    int64_t shards = size->shards > 0 ? size->shards : 1;
    if (arguments->batch.given)
        return arguments->batch.value;
    if (arguments->no_eval)
        return size->batch;
    return shards * judged_samples(size, size->batch / shards);
}

bool is_judged(const Arguments *arguments, const Snapshot *s) {
    const Graph *g = s->step->graph;
    return !arguments->no_eval && (double)stored_bytes(g) <= MAX_BYTES &&
           (arguments->batch.given ||
            (double)graph_cost(s->step->plan).flops <= 2 * MAX_FLOPS);
}

// ---- the course of a comparison ----

// Both start from b's initial state; models of different widths cannot.
static int variants_run(Arena *a, Comparison *c) {
    const char *start;
    int status = variant_start(a, &c->b, &c->runs, &start);
    if (status == EXIT_GOOD && c->a.text.fingerprint != c->b.text.fingerprint) {
        complain(&c->a.arguments,
                 "-a and -b make different models of %s, which cannot share a "
                 "start state: use options that change only how it is compiled",
                 c->a.arguments.operand[0]);
        return EXIT_USAGE;
    }
    if (status == EXIT_GOOD)
        status = variant_look(a, &c->a, &c->runs, start, NULL);
    if (status == EXIT_GOOD)
        status = variant_look(a, &c->b, &c->runs, start, &c->a.snapshot);
    if (status == EXIT_GOOD)
        status = variant_run(a, &c->a, &c->runs, start);
    if (status == EXIT_GOOD)
        status = variant_run(a, &c->b, &c->runs, start);
    return status;
}

// Builds, runs and compares both variants, whose names and options are set.
// Returns an exit status, after a message if it failed.
static int variants_compare(Arena *a, const Arguments *arguments,
                            Comparison *c) {
    Size size;
    int status = model_size(arguments, &size);
    if (status != EXIT_GOOD)
        return status;
    c->own_batch = arguments->batch.given ? arguments->batch.value : size.batch;
    if (!runs_open(a, arguments, comparison_batch(arguments, &size), &c->runs))
        return EXIT_IO;
    status = variant_build(a, &c->a, arguments, &c->runs);
    if (status == EXIT_GOOD)
        status = variant_build(a, &c->b, arguments, &c->runs);
    if (status == EXIT_GOOD)
        status = variants_run(a, c);
    runs_close(&c->runs);
    if (status != EXIT_GOOD)
        return status;
    bool judged = is_judged(arguments, &c->a.snapshot);
    c->rows = rows_compare(a, &c->a, &c->b, judged);
    return EXIT_GOOD;
}

static double differ(Arena *a, const Comparison *c) {
    double of_a = spread_range(a, c->a.times.value, c->a.times.count);
    double of_b = spread_range(a, c->b.times.value, c->b.times.count);
    return of_a > of_b ? of_a : of_b;
}

static int compare(Arena *a, const Arguments *arguments) {
    Comparison c = {
        .a = {.name = "a", .options = arguments->a ? arguments->a : "-O1"},
        .b = {.name = "b", .options = arguments->b ? arguments->b : "-O0"}};
    Load load = load_begin();
    int status = variants_compare(a, arguments, &c);
    if (status != EXIT_GOOD)
        return status;
    Text t = text_new(a);
    (arguments->json ? comparison_json : comparison_print)(&t, &c);
    lines_print(&t);
    load_report(&load, differ(a, &c));
    return c.rows.wrong ? EXIT_COMPARE : EXIT_GOOD;
}

int compare_command(Arena *a, const Arguments *arguments) {
    if (arguments->ablate && arguments->b) {
        complain(arguments,
                 "--ablate makes its own variants of a: it takes no -b");
        return EXIT_USAGE;
    }
    return (arguments->ablate ? ablate : compare)(a, arguments);
}
