// sinter bench: how long a step of a model takes, over several runs of its
// trainer, so that what differs from run to run is seen too.
#include "base/exits.h"
#include "tools/compare/compare.h"
#include "tools/compare/spread.h"

#include <inttypes.h>
#include <string.h>

// RUNS: the fewest of which some interval has the median with 95% confidence;
// WARM: steps of each run that do not count.
enum { RUNS = 6, WARM = 2 };

typedef struct {
    Side side;
    Runs runs;
    Series steps, medians; // of all runs; of each
    int num_runs;
} Bench;

// The first steps of a process find caches and pages cold.
static void steps_take(Arena *a, Bench *b, const Series *times) {
    int count = times->count - WARM;
    if (count <= 0)
        return;
    const double *step = times->value + WARM;
    memcpy(b->steps.value + b->steps.count, step, (size_t)count * sizeof *step);
    b->steps.count += count;
    b->medians.value[b->medians.count++] = spread_of(a, step, count).median;
}

static int bench_run(Arena *a, const Arguments *arguments, Bench *b) {
    const char *start;
    int status = side_build(a, &b->side, arguments, &b->runs);
    if (status == EXIT_GOOD)
        status = side_start(a, &b->side, &b->runs, &start);
    b->steps.value = ARENA_ARRAY(
        a, (size_t)b->num_runs * (size_t)(b->runs.steps + 1), double);
    b->medians.value = ARENA_ARRAY(a, (size_t)b->num_runs, double);
    for (int i = 0; i < b->num_runs && status == EXIT_GOOD; i++) {
        status = side_run(a, &b->side, &b->runs, start);
        steps_take(a, b, &b->side.times);
    }
    b->side.times = b->steps;
    b->side.run_times = b->medians;
    return status;
}

static void bench_print(Text *t, const Bench *b) {
    Spread s = spread_of(t->arena, b->medians.value, b->medians.count);
    int64_t steps = b->runs.steps - WARM;
    int64_t samples = b->runs.batch * b->side.program->recipe.accumulate;
    text_add(t,
             "%s on %s, data %s, batch %" PRId64 ", %s\n"
             "a step takes %.3f ms, %.0f samples/s; the median is in %.3f .. "
             "%.3f with %.1f%% confidence, from %d run%s of %" PRId64
             " step%s\n",
             b->side.program->name, b->runs.device, b->runs.data, b->runs.batch,
             b->side.options, s.median, (double)samples / s.median * 1e3, s.low,
             s.high, 100 * s.confidence, b->num_runs,
             b->num_runs == 1 ? "" : "s", steps, steps == 1 ? "" : "s");
}

static void bench_json(Text *t, const Bench *b) {
    text_add(t, "{\"schema\": 1, \"model\": ");
    json_string(t, b->side.program->name);
    text_add(t, ", \"batch\": %" PRId64 ", \"data\": ", b->runs.batch);
    json_string(t, b->runs.data);
    text_add(t, ", \"device\": ");
    json_string(t, b->runs.device);
    text_add(t, ", \"runs\": %d, ", b->num_runs);
    side_json(t, &b->side);
    text_add(t, "}\n");
}

static int model_bench(Arena *a, const Arguments *arguments) {
    Size size;
    Bench b = {.side = {.name = "bench",
                        .options = arguments->a ? arguments->a : "-O1"},
               .num_runs =
                   arguments->runs.given ? (int)arguments->runs.value : RUNS};
    int status = model_size(arguments, &size);
    if (status != EXIT_GOOD)
        return status;
    if (!runs_open(a, arguments,
                   arguments->batch.given ? arguments->batch.value : size.batch,
                   &b.runs))
        return EXIT_IO;
    b.runs.steps += WARM;
    status = bench_run(a, arguments, &b);
    runs_close(&b.runs);
    Text t = text_new(a);
    if (status == EXIT_GOOD && arguments->json)
        bench_json(&t, &b);
    else if (status == EXIT_GOOD)
        bench_print(&t, &b);
    fputs(text_string(&t), stdout);
    return status;
}

int bench_command(const Arguments *arguments) {
    if (!runs_possible(arguments))
        return EXIT_USAGE;
    Arena *a = arena_new();
    if (arguments->runs.given &&
        (arguments->runs.value < 1 || arguments->runs.value > MOST_RUNS)) {
        complain(arguments, "--runs needs a number from 1 to %d", MOST_RUNS);
        arena_free(a);
        return EXIT_USAGE;
    }
    int status = model_bench(a, arguments);
    arena_free(a);
    return status;
}
