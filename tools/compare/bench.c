// sinter bench: measures the time of a step over several runs of its trainer,
// which shows the variation between runs.  Each batch size has a trainer.  Runs
// of several sizes alternate, so that a busy period of the machine affects all.
#include "base/exits.h"
#include "tools/compare/compare.h"
#include "tools/compare/spread.h"
#include "tools/load.h"

#include <inttypes.h>
#include <string.h>

// RUNS: the fewest runs for which an interval has 95% confidence.  WARM: steps
// of each run that are not counted.
enum { RUNS = 6, WARM = 2 };

// One batch size.
typedef struct {
    Variant variant;
    Runs runs;
    const char *start;     // initial state of its runs
    Series steps, medians; // of all runs; of each
    int status;
} Bench;

typedef struct {
    const Arguments *arguments;
    Bench *bench;
    int count;
    int num_runs;
} Benches;

// ---- running ----

// Drops the first steps of a process, with cold caches and pages.
static bool steps_take(Arena *a, Bench *b, const Series *times) {
    int count = times->count - WARM;
    if (count <= 0)
        return false;
    const double *step = times->value + WARM;
    memcpy(b->steps.value + b->steps.count, step, (size_t)count * sizeof *step);
    b->steps.count += count;
    b->medians.value[b->medians.count++] = spread_of(a, step, count).median;
    return true;
}

static int bench_build(Arena *a, const Benches *all, Bench *b) {
    int status = variant_build(a, &b->variant, all->arguments, &b->runs);
    if (status == EXIT_GOOD)
        status = variant_start(a, &b->variant, &b->runs, &b->start);
    b->steps.value = ARENA_ARRAY(
        a, (size_t)all->num_runs * (size_t)(b->runs.steps + 1), double);
    b->medians.value = ARENA_ARRAY(a, (size_t)all->num_runs, double);
    return status;
}

static int bench_run(Arena *a, const Benches *all, Bench *b) {
    int status = variant_run(a, &b->variant, &b->runs, b->start);
    if (status != EXIT_GOOD || steps_take(a, b, &b->variant.times))
        return status;
    complain(all->arguments, "the run ends before a step can be measured; "
                             "--set epochs=N makes it longer");
    return EXIT_USAGE;
}

// Whether such an end concerns only this batch size.
static bool is_its_own(const Benches *all, int status) {
    return status == EXIT_GOOD ||
           (all->count > 1 && (status == EXIT_MODEL || status == EXIT_MEMORY));
}

// Collects the numbers of all runs of a batch size.
static void series_keep(Bench *b) {
    b->variant.times = b->steps;
    b->variant.run_times = b->medians;
}

// Returns the status that ends all, or the last one if no batch succeeds.
static int benches_run(Arena *a, Benches *all) {
    int status = EXIT_MODEL;
    for (int i = 0; i < all->count; i++) {
        Bench *b = &all->bench[i];
        b->status = bench_build(a, all, b);
        if (!is_its_own(all, b->status))
            return b->status;
    }
    for (int i = 0; i < all->num_runs * all->count; i++) {
        Bench *b = &all->bench[i % all->count];
        if (b->status == EXIT_GOOD)
            b->status = bench_run(a, all, b);
        if (!is_its_own(all, b->status))
            return b->status;
    }
    for (int i = 0; i < all->count; i++) {
        series_keep(&all->bench[i]);
        if (status != EXIT_GOOD)
            status = all->bench[i].status;
    }
    return status;
}

// ---- printing ----

// Steps of each run, which ends with its recipe at the latest.
static int steps_of(const Bench *b) {
    return b->steps.count / b->medians.count;
}

static int64_t samples_of(const Bench *b) {
    return b->runs.batch * b->variant.program->recipe.accumulate;
}

static void bench_print(Text *t, const Benches *all, const Bench *b) {
    Spread s = spread_of(t->arena, b->medians.value, b->medians.count);
    int steps = steps_of(b);
    text_add(t,
             "%s on %s, data %s, batch %" PRId64 ", %s\n"
             "a step takes %.3f ms, %.0f samples/s; the median is in %.3f .. "
             "%.3f with %.1f%% confidence, from %d run%s of %d "
             "step%s\n",
             b->variant.program->name, b->runs.device, b->runs.data,
             b->runs.batch, b->variant.options, s.median,
             (double)samples_of(b) / s.median * 1e3, s.low, s.high,
             100 * s.confidence, all->num_runs, all->num_runs == 1 ? "" : "s",
             steps, steps == 1 ? "" : "s");
}

// The reason why there are no numbers.
static const char *refusal(const Bench *b) {
    return b->status == EXIT_MEMORY ? "does not fit" : "does not compile";
}

static void row_print(Text *t, const Bench *b) {
    const double kib = 1 << 10, mib = 1 << 20;
    if (b->status != EXIT_GOOD) {
        text_add(t, "%10" PRId64 "  %s\n", b->runs.batch, refusal(b));
        return;
    }
    Spread s = spread_of(t->arena, b->medians.value, b->medians.count);
    double samples = (double)samples_of(b);
    double bytes = (double)b->variant.plan->arena_bytes;
    text_add(t, "%10" PRId64 "%12.3f%12.3f .. %-10.3f%12.0f%12.4g%14.4g\n",
             b->runs.batch, s.median, s.low, s.high, samples / s.median * 1e3,
             bytes / mib, bytes / kib / (double)b->runs.batch);
}

static const Bench *first_good(const Benches *all) {
    const Bench *b = all->bench;
    while (b->status != EXIT_GOOD)
        b++;
    return b;
}

static void table_print(Text *t, const Benches *all) {
    const Bench *b = first_good(all);
    Spread s = spread_of(t->arena, b->medians.value, b->medians.count);
    int steps = steps_of(b);
    text_add(t,
             "%s on %s, data %s, %s: %d run%s of %d "
             "step%s of each batch, in turns; the median is in its range with "
             "%.1f%% confidence\n\n"
             "%10s%12s%12s    %-10s%12s%12s%14s\n",
             b->variant.program->name, b->runs.device,
             all->arguments->data ? all->arguments->data : "synthetic",
             b->variant.options, all->num_runs, all->num_runs == 1 ? "" : "s",
             steps, steps == 1 ? "" : "s", 100 * s.confidence, "batch",
             "ms, median", "range", "", "samples/s", "MiB arena",
             "KiB a sample");
    for (int i = 0; i < all->count; i++)
        row_print(t, &all->bench[i]);
}

// ---- JSON ----

static void head_json(Text *t, const Benches *all, const Bench *b) {
    text_add(t, "{\"schema\": 1");
    json_text(t, "model", b->variant.program->name);
    if (all->count == 1) {
        json_count(t, "batch", b->runs.batch);
        json_text(t, "data", b->runs.data);
    }
    json_text(t, "device", b->runs.device);
    json_count(t, "runs", all->num_runs);
}

static void bench_json(Text *t, const Benches *all, const Bench *b) {
    head_json(t, all, b);
    text_add(t, ", ");
    variant_json(t, &b->variant);
    text_add(t, "}\n");
}

static void row_json(Text *t, const Bench *b) {
    text_add(t, "{\"batch\": %" PRId64, b->runs.batch);
    json_text(t, "data", b->runs.data);
    json_text(t, "failed", b->status == EXIT_GOOD ? NULL : refusal(b));
    if (b->status == EXIT_GOOD) {
        text_add(t, ", ");
        variant_json(t, &b->variant);
    }
    text_add(t, "}");
}

static void table_json(Text *t, const Benches *all) {
    head_json(t, all, first_good(all));
    text_add(t, ", \"batches\": [");
    for (int i = 0; i < all->count; i++) {
        text_add(t, i ? ",\n " : "\n ");
        row_json(t, &all->bench[i]);
    }
    text_add(t, "]}\n");
}

static void benches_print(Text *t, const Benches *all) {
    bool json = all->arguments->json;
    if (all->count == 1)
        (json ? bench_json : bench_print)(t, all, all->bench);
    else
        (json ? table_json : table_print)(t, all);
}

// ---- the command ----

// The widest range of all batches, as a share of its median.
static double differ(Arena *a, const Benches *all) {
    double most = 0;
    for (int i = 0; i < all->count; i++) {
        const Series *series = &all->bench[i].medians;
        if (all->bench[i].status != EXIT_GOOD)
            continue;
        double range = spread_range(a, series->value, series->count);
        most = range > most ? range : most;
    }
    return most;
}

// Sets the batches of --batch, or else the model file's.
static void benches_set(Arena *a, Benches *all, const Runs *runs,
                        const Counts *batches) {
    for (int i = 0; i < all->count; i++) {
        Bench *b = &all->bench[i];
        b->runs = *runs;
        b->runs.steps += WARM;
        b->runs.batch = batches->value[i];
        b->runs.data =
            runs_data(a, all->arguments, b->runs.batch, DRAWN_BATCHES);
        b->variant.name =
            all->count == 1 ? "bench"
                            : arena_format(a, "batch-%" PRId64, b->runs.batch);
        b->variant.options = all->arguments->a ? all->arguments->a : "-O1";
    }
}

int bench_command(Arena *a, const Arguments *arguments) {
    Size size;
    Runs runs;
    int status = model_size(arguments, &size);
    if (status != EXIT_GOOD)
        return status;
    const Counts own = {.count = 1, .value = {size.batch}};
    const Counts *batches =
        arguments->batches.count ? &arguments->batches : &own;
    Benches all = {
        .arguments = arguments,
        .bench = ARENA_ARRAY(a, (size_t)batches->count, Bench),
        .count = batches->count,
        .num_runs = arguments->runs.given ? (int)arguments->runs.value : RUNS};
    if (!runs_open(a, arguments, size.batch, &runs))
        return EXIT_IO;
    Load load = load_begin();
    benches_set(a, &all, &runs, batches);
    status = benches_run(a, &all);
    runs_close(&runs);
    Text t = text_new(a);
    if (status == EXIT_GOOD)
        benches_print(&t, &all);
    lines_print(&t);
    if (status == EXIT_GOOD)
        load_report(&load, differ(a, &all));
    return status;
}
