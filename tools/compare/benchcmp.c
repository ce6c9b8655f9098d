// sinter benchcmp: compares two results of sinter bench --json.
//
// The medians of runs decide whether a difference is real.  The speed of a
// machine changes from run to run, so thousands of steps in two runs are two
// measurements, not thousands.
#include "base/exits.h"
#include "tools/compare/compare.h"
#include "tools/compare/ranks.h"
#include "tools/compare/result.h"
#include "tools/compare/spread.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double LEVEL = 0.05;

typedef struct {
    const char *what;
    Series runs; // the median of each, in milliseconds
    Spread spread;
} Measured;

static bool times_read(Arena *a, const char *text, Series *out) {
    const char *at = result_behind(a, text, "run_ms");
    if (at == NULL || *at++ != '[')
        return false;
    *out = (Series){ARENA_ARRAY(a, MOST_RUNS, double), 0};
    for (char *end; *at != ']' && *at != 0; at = end + strspn(end, ", ")) {
        double ms = strtod(at, &end);
        if (end == at || !(ms > 0) || isinf(ms) || out->count == MOST_RUNS)
            return false;
        out->value[out->count++] = ms;
    }
    return out->count > 0 && *at == ']';
}

static int bench_read(Arena *a, const Arguments *arguments, const char *path,
                      Measured *out) {
    Result r;
    int status = result_read(a, arguments, "bench", "runs", path, &r);
    if (status != EXIT_GOOD)
        return status;
    if (result_behind(a, r.text, "batches") != NULL) {
        complain(arguments,
                 "%s has results for several batch sizes: run sinter bench "
                 "with one --batch",
                 path);
        return EXIT_DATA;
    }
    if (!times_read(a, r.text, &out->runs)) {
        complain(arguments,
                 "%s: \"run_ms\" has no times of 1 to %d runs; measure again "
                 "with this sinter bench",
                 path, MOST_RUNS);
        return EXIT_DATA;
    }
    out->spread = spread_of(a, out->runs.value, out->runs.count);
    const char *what = arena_format(a, "%s, batch %" PRId64 ", on %s", r.model,
                                    r.batch, r.device);
    out->what = text_escaped(a, what);
    return EXIT_GOOD;
}

static void change_print(Text *t, const Spread *a, const Spread *b, bool real) {
    bool less = b->median < a->median;
    bool colour = real && wants_color(STDOUT_FILENO);
    text_add(t, "B relative to A: %s%+.1f%%%s",
             colour ? less ? "\033[32m" : "\033[31m" : "",
             100 * (b->median / a->median - 1), colour ? "\033[0m" : "");
}

// The result whose runs became steadily faster or slower, which would explain
// the difference; 0 for none.
static char unsteady(Arena *a, const Measured *m) {
    for (int i = 0; i < 2; i++)
        if (ranks_trend_chance(a, m[i].runs.value, m[i].runs.count) <= LEVEL)
            return (char)('A' + i);
    return 0;
}

static void difference_print(Text *t, const Measured *m) {
    const Series *a = &m[0].runs, *b = &m[1].runs;
    double chance =
        ranks_chance(t->arena, a->value, a->count, b->value, b->count);
    char changing = unsteady(t->arena, m);
    bool apart = chance <= LEVEL;
    change_print(t, &m[0].spread, &m[1].spread, apart && !changing);
    if (ranks_least_chance(t->arena, a->count, b->count) > LEVEL)
        text_add(t, ", too few runs for a verdict: take at least 4 of each\n");
    else if (apart && changing)
        text_add(t,
                 ", inconclusive: the times of %c drift from run to run; "
                 "measure both again\n",
                 changing);
    else
        text_add(t, ", %s: p = %.2g (rank test)\n",
                 apart ? "significant" : "within the noise", chance);
}

int benchcmp_command(Arena *a, const Arguments *arguments) {
    Measured m[2];
    Text t = text_new(a);
    for (int i = 0; i < 2; i++) {
        int status = bench_read(a, arguments, arguments->operand[i], &m[i]);
        if (status != EXIT_GOOD)
            return status;
    }
    if (strcmp(m[0].what, m[1].what) != 0)
        text_add(&t, "the results are for different settings: %s; %s\n",
                 m[0].what, m[1].what);
    for (int i = 0; i < 2; i++) {
        const Spread *s = &m[i].spread;
        text_add(&t, "%c %10.3f ms  %.3f .. %.3f (%.1f%%, %d run%s)\n", 'A' + i,
                 s->median, s->low, s->high, 100 * s->confidence, s->count,
                 s->count == 1 ? "" : "s");
    }
    difference_print(&t, m);
    fputs(text_string(&t), stdout);
    return EXIT_GOOD;
}
