// sinter lrfind: the range test of learning rates (Smith, "Cyclical Learning
// Rates for Training Neural Networks", 2017). A run begins like any other, but
// its rate rises by one factor from step to step, until the loss rises, too.
// The rates of the steepest and of the least loss are those to try.
#include "base/exits.h"
#include "base/round_up.h"
#include "tools/compare/variant.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { STEPS = 100, LINES = 20 };
static const double LOWEST = 1e-6, HIGHEST = 10;

// A loss above this multiple of the least one has diverged.
static const double DIVERGED = 4;

typedef struct {
    int64_t step; // from 1
    double rate, loss, smooth;
} Point;

typedef struct {
    const Arguments *arguments;
    Arena *a;
    Variant variant;
    Runs runs;
    const char *key;  // the setting of the rate
    const char *data; // training data
    double lowest, highest;
    double smoothing;    // smoothing factor of the mean
    double mean;         // of the losses so far, with the initial 0
    double low;          // the least without the initial 0
    FILE *rows;          // that the trainer writes; NULL: none yet
    Point *point;        // of each step, until the loss diverges
    int count, skipped;  // skipped: steps that were skipped until then
    int64_t diverged_at; // the step in which the loss diverged; 0: none
    bool by_scale;       // skipped at a loss scale of 1
    int fastest, least;  // -1: the loss never fell
} Search;

// ---- analysis ----

// The exponential mean of the losses, corrected for its initial 0.
static double smooth_next(Search *s, double loss) {
    s->mean = s->smoothing * s->mean + (1 - s->smoothing) * loss;
    return s->mean / (1 - pow(s->smoothing, s->count + 1));
}

// A step that is skipped for a large loss scale changes nothing, and its loss
// need not be finite.  A step that is skipped at a scale of 1 has diverged, and
// ends the run.
static void step_add(Search *s, const JsonRow *row) {
    double loss = row_number(row, "loss");
    int64_t step = s->count + s->skipped + 1;
    if (row_number(row, "skipped") > 0) {
        s->skipped++;
        s->by_scale = row_number(row, "loss_scale") < 1;
        if (s->by_scale)
            s->diverged_at = step;
    } else if (!isfinite(loss)) {
        s->diverged_at = step;
    } else {
        double smooth = smooth_next(s, loss);
        s->point[s->count++] =
            (Point){step, row_number(row, "lr"), loss, smooth};
        s->low = fmin(s->low, smooth);
        if (s->low > 0 && smooth > DIVERGED * s->low)
            s->diverged_at = step;
    }
}

static bool is_over(const Search *s) {
    return s->diverged_at > 0 || s->count + s->skipped >= s->runs.steps;
}

// Reads new rows; whether the run should go on.
static bool run_continues(void *whose) {
    Search *s = whose;
    char line[LINE_BYTES];
    JsonRow row;
    if (s->rows == NULL)
        s->rows = fopen(variant_rows(s->a, &s->variant, &s->runs), "r");
    while (s->rows != NULL && !is_over(s) && line_next(s->rows, line))
        if (row_read(line, &row) && row_is(&row, "step"))
            step_add(s, &row);
    return !is_over(s);
}

// The number of losses that contribute to the mean, about.
static int memory(const Search *s) {
    return (int)lround(1 / (1 - s->smoothing));
}

// The change of the mean around a point, for a factor e of the rate.
static double slope_at(const Point *p, int reach) {
    return (p[reach].smooth - p[-reach].smooth) /
           log(p[reach].rate / p[-reach].rate);
}

// The error of a mean: five deviations, as this is the least of many.  The
// variance follows from the differences of neighbours, also where the losses
// fall (von Neumann, 1941).
static double noise_of(const Search *s, int count) {
    double sum = 0;
    for (int i = 1; i < count; i++)
        sum += pow(s->point[i].loss - s->point[i - 1].loss, 2);
    double variance = sum / (2 * fmax(1, count - 1));
    return 5 * sqrt(variance * (1 - s->smoothing) / (1 + s->smoothing));
}

// A mean of few losses jumps, so the first points are left out.
static void extremes_find(Search *s) {
    int first = memory(s), least = first;
    double steepest = 0;
    s->fastest = s->least = -1;
    for (int i = first; i < s->count; i++)
        if (s->point[i].smooth < s->point[least].smooth)
            least = i;
    if (least == first || s->point[first].smooth - s->point[least].smooth <=
                              noise_of(s, least + 1))
        return;
    int reach = least - first < first / 2 ? least - first : first / 2;
    for (int i = first; i + reach <= least; i++) {
        double slope = slope_at(&s->point[i], reach);
        if (slope >= steepest)
            continue;
        steepest = slope;
        s->fastest = i;
        s->least = least;
    }
}

// ---- the run ----

static bool range_set(Search *s) {
    const Arguments *arguments = s->arguments;
    s->lowest = arguments->lowest > 0 ? arguments->lowest : LOWEST;
    s->highest = arguments->highest > 0 ? arguments->highest : HIGHEST;
    if (s->lowest < s->highest)
        return true;
    complain(arguments, "--from=%g must be below --to=%g", s->lowest,
             s->highest);
    return false;
}

// Enough batches for the run not to end early.
static int64_t batches_of(const Recipe *r, int64_t steps) {
    double least = r->length.unit == IN_EPOCHS
                       ? ceil((double)steps * r->accumulate / r->length.count)
                       : 0;
    return least > DRAWN_BATCHES ? (int64_t)least : DRAWN_BATCHES;
}

// Generated data say nothing about rates, so only --data selects them.
static void data_set(Arena *a, Search *s, const Recipe *r) {
    s->data = *r->data_path ? r->data_path : r->data_format;
    s->runs.data = NULL;
    s->runs.validation = s->arguments->validation;
    if (s->arguments->data != NULL)
        s->data = s->runs.data = runs_data(a, s->arguments, recipe_batch(r),
                                           batches_of(r, s->runs.steps));
}

static bool run_open(Arena *a, Search *s, const Recipe *r) {
    if (!runs_open(a, s->arguments, recipe_batch(r), &s->runs))
        return false;
    if (!s->arguments->steps.given)
        s->runs.steps = STEPS;
    if (s->arguments->device == NULL)
        s->runs.device = "auto"; // the default of trainers
    if (r->length.unit == IN_STEPS && r->length.count < (double)s->runs.steps)
        s->runs.steps = (int64_t)r->length.count;
    data_set(a, s, r);
    s->point = ARENA_ARRAY(a, (size_t)s->runs.steps, Point);
    // A mean of about a fifth of the losses, at most of 50.
    s->smoothing = fmin(0.98, 1 - 5.0 / (double)s->runs.steps);
    s->key = r->rate;
    return true;
}

// The schedule is the last setting, so that it takes effect.
static int run_build(Arena *a, Search *s) {
    Arguments copy = *s->arguments;
    double factor =
        pow(s->highest / s->lowest, 1 / fmax(1, (double)s->runs.steps - 1));
    const char *schedule = arena_format(
        a, "exponential(%.9g, %.17g, every=1 step)", s->lowest, factor);
    if (!setting_add(&copy, (Setting){s->key, schedule}))
        return EXIT_USAGE;
    return variant_build(a, &s->variant, &copy, &s->runs);
}

static int search(Arena *a, Search *s) {
    int status;
    Diagnostics diags = diag_new(a);
    const Program *p = model_load(a, s->arguments, &diags, &status);
    if (p == NULL)
        return status;
    if (!run_open(a, s, &p->recipe))
        return EXIT_IO;
    status = inputs_named_check(a, s->arguments, p, s->runs.device,
                                s->runs.data, s->runs.validation);
    if (status == EXIT_GOOD)
        status = run_build(a, s);
    if (status == EXIT_GOOD)
        status = variant_watch(a, &s->variant, &s->runs, run_continues, s);
    if (run_continues(s) && status == EXIT_DIVERGED) // in no row
        s->diverged_at = s->count + s->skipped > 0 ? s->count + s->skipped : 1;
    if (s->rows != NULL)
        fclose(s->rows);
    runs_close(&s->runs);
    if (status != EXIT_GOOD && status != EXIT_DIVERGED && status != ENDED)
        return status;
    extremes_find(s);
    return EXIT_GOOD;
}

// ---- printing ----

static void table_print(Text *t, const Search *s) {
    int each = (int)divide_up(s->count, LINES);
    text_add(t, "%8s%12s%12s%12s\n", "step", "rate", "loss", "smoothed");
    for (int i = 0; i < s->count; i++) {
        const Point *p = &s->point[i];
        if (i % each == 0 || i == s->count - 1)
            text_add(t, "%8" PRId64 "%12.3g%12.5g%12.5g\n", p->step, p->rate,
                     p->loss, p->smooth);
    }
}

// Prints why the table ends, and the steps that are missing in it.
static void end_print(Text *t, const Search *s) {
    int64_t seen = s->count + s->skipped;
    if (s->diverged_at > 0)
        text_add(t, "the loss %s in step %" PRId64 ", which ends the test\n",
                 s->by_scale ? "scale reached its minimum" : "diverged",
                 s->diverged_at);
    else if (seen < s->runs.steps)
        text_add(t,
                 "the recipe ends the run after %" PRId64
                 " steps; --set epochs=N makes it longer\n",
                 seen);
    if (s->skipped > 0)
        text_add(t, "left out: %d step%s skipped because of the loss scale\n",
                 s->skipped, s->skipped == 1 ? "" : "s");
}

static void suggestion_print(Text *t, const Search *s) {
    if (s->least < 0) {
        text_add(t, "at no rate did the loss fall by more than its noise\n");
        return;
    }
    const Point *fastest = &s->point[s->fastest], *least = &s->point[s->least];
    text_add(
        t,
        "the loss fell from %.4g, fastest at rate %.3g, to its minimum, %.4g, "
        "at %.3g%s\ntry %.2g, the rate of the fastest fall, or %.2g, a tenth "
        "of the rate at the minimum\nthis is one short run from the start: "
        "noise, batch size and length of the run change the result\n",
        s->point[memory(s)].smooth, fastest->rate, least->smooth, least->rate,
        s->least == s->count - 1 ? ", the end of the test: see --to" : "",
        fastest->rate, least->rate / 10);
}

static void search_print(Text *t, const Search *s) {
    const char *device = s->arguments->device;
    text_add(t,
             "%s%s%s, data %s, batch %" PRId64
             ": %s rises from %g to %g in %" PRId64
             " steps\nthe loss is smoothed by an exponential average with "
             "factor %.3g\n\n",
             s->variant.program->name, device ? " on " : "",
             device ? device : "", s->data, s->runs.batch, s->key, s->lowest,
             s->highest, s->runs.steps, s->smoothing);
    table_print(t, s);
    text_add(t, "\n");
    end_print(t, s);
    suggestion_print(t, s);
}

static void rate_json(Text *t, const char *name, const Search *s, int i,
                      double share) {
    json_number(t, name, i < 0 ? (double)NAN : s->point[i].rate * share);
}

static void search_json(Text *t, const Search *s) {
    text_add(t, "{\"schema\": 2");
    json_text(t, "model", s->variant.program->name);
    json_count(t, "batch", s->runs.batch);
    json_text(t, "data", s->data);
    json_text(t, "device", s->runs.device);
    json_text(t, "key", s->key);
    json_number(t, "from", s->lowest);
    json_number(t, "to", s->highest);
    json_count(t, "steps", s->runs.steps);
    json_number(t, "smoothing", s->smoothing);
    text_add(t, ", \"diverged\": %s", s->diverged_at > 0 ? "true" : "false");
    json_count(t, "skipped", s->skipped);
    rate_json(t, "fastest", s, s->fastest, 1);
    rate_json(t, "least", s, s->least, 1);
    rate_json(t, "tenth", s, s->least, 0.1);
    text_add(t, ", \"points\": [");
    for (int i = 0; i < s->count; i++) {
        const Point *p = &s->point[i];
        text_add(t, "%s{\"step\": %" PRId64, i ? ",\n " : "\n ", p->step);
        json_number(t, "rate", p->rate);
        json_number(t, "loss", p->loss);
        json_number(t, "smoothed", p->smooth);
        text_add(t, "}");
    }
    text_add(t, "]}\n");
}

int lrfind_command(Arena *a, const Arguments *arguments) {
    Search s = {.arguments = arguments,
                .a = a,
                .variant = {.name = "trainer", .options = "-O1"},
                .low = INFINITY};
    if (!range_set(&s))
        return EXIT_USAGE;
    int status = search(a, &s);
    Text t = text_new(a);
    if (status == EXIT_GOOD)
        (arguments->json ? search_json : search_print)(&t, &s);
    lines_print(&t);
    return status;
}
