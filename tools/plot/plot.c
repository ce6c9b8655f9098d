// sinter plot: draws the curves of runs as one SVG file.
#include "tools/plot/plot.h"
#include "base/exits.h"
#include "base/metrics.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static const char *const usual[] = {"loss", "accuracy", "lr"};
enum { NUM_USUAL = sizeof usual / sizeof usual[0] };

static bool any_has(const Curves *c, const char *metric) {
    for (int r = 0; r < c->num_runs; r++)
        if (run_has(&c->run[r], metric))
            return true;
    return false;
}

static void metric_unknown(const Arguments *arguments, const Curves *c,
                           const char *metric) {
    Nearest near = nearest_to(metric);
    for (int r = 0; r < c->num_runs; r++)
        for (int i = 0; i < c->run[r].count; i++)
            nearest_offer(&near, c->run[r].series[i].metric);
    if (near.best)
        complain(arguments,
                 "'%s' is neither a file nor a number in these rows; did you "
                 "mean %s?",
                 metric, near.best);
    else
        complain(arguments, "'%s' is neither a file nor a number in these rows",
                 metric);
}

// Takes the given metrics, or else the usual ones that the rows have.  Returns
// an exit status.
static int metrics_choose(Arena *a, const Arguments *arguments,
                          const char *const *given, int count, Curves *c) {
    const char **metric =
        ARENA_ARRAY(a, (size_t)count + NUM_USUAL, const char *);
    c->metric = metric;
    for (int i = 0; i < count; i++) {
        if (!any_has(c, given[i])) {
            metric_unknown(arguments, c, given[i]);
            return EXIT_USAGE;
        }
        metric[c->num_metrics++] = given[i];
    }
    for (int i = 0; count == 0 && i < NUM_USUAL; i++)
        if (any_has(c, usual[i]))
            metric[c->num_metrics++] = usual[i];
    if (c->num_metrics > 0)
        return EXIT_GOOD;
    complain(arguments, "no row has a finite loss, accuracy or lr");
    return EXIT_DATA;
}

static int runs_read(Arena *a, const Arguments *arguments,
                     const char *const *path, int count, Curves *c) {
    PlotRun *run = ARENA_ARRAY(a, (size_t)count + 1, PlotRun);
    c->run = run;
    c->x = arguments->axis ? arguments->axis : "epoch";
    int status = EXIT_GOOD;
    if (count > MAX_RUNS) {
        complain(arguments, "%d runs, but a plot has colours for %d", count,
                 MAX_RUNS);
        return EXIT_USAGE;
    }
    while (c->num_runs < count && status == EXIT_GOOD) {
        status = curves_read(a, arguments, path[c->num_runs], c->x,
                             &run[c->num_runs]);
        c->num_runs++;
    }
    return status;
}

int plot_add(Arena *a, const Arguments *arguments, Text *t) {
    Curves c = {0};
    if (arguments->num_metrics == 0)
        return EXIT_GOOD;
    int status =
        runs_read(a, arguments, arguments->metrics, arguments->num_metrics, &c);
    if (status == EXIT_GOOD)
        status = metrics_choose(a, arguments, NULL, 0, &c);
    if (status != EXIT_GOOD)
        return status;
    curves_add(t, &c);
    for (int i = 0; i < arguments->num_metrics; i++)
        confusion_add(a, t, arguments->metrics[i]);
    return status;
}

// An operand that is not a file is a metric, or OUTPUT.METRIC, unless it looks
// like a file.
static bool is_metric(const char *word) {
    struct stat s;
    return stat(word, &s) != 0 && errno == ENOENT &&
           (strpbrk(word, "/.") == NULL || metric_find(word) >= 0);
}

// Runs come before metrics in the operands; returns how many there are.
static int operands_part(Arena *a, const Arguments *arguments,
                         const char **word) {
    int count = arguments->num_operands, runs = 0, k = 0;
    const char **metric = ARENA_ARRAY(a, (size_t)count + 1, const char *);
    for (int i = 0; i < count; i++)
        if (is_metric(arguments->operand[i]))
            metric[k++] = arguments->operand[i];
        else
            word[runs++] = arguments->operand[i];
    memcpy(word + runs, metric, (size_t)k * sizeof *word);
    return runs;
}

static int drawing_write(Arena *a, const Arguments *arguments,
                         const char *const *run, int count, const Text *t) {
    const char *out = arguments->out ? arguments->out : "plot.svg";
    if (strcmp(out, "-") == 0) {
        fwrite(text_string(t), 1, t->length, stdout);
        return EXIT_GOOD;
    }
    int status = EXIT_USAGE;
    if (run_is_out(a, arguments, run, count, out) ||
        !output_check(arguments, NULL, out, &status))
        return status;
    status = text_write(arguments, out, t);
    if (status == EXIT_GOOD)
        wrote_print(arguments, out, "open it in a browser");
    return status;
}

int plot_command(Arena *a, const Arguments *arguments) {
    int count = arguments->num_operands;
    const char **word = ARENA_ARRAY(a, (size_t)count + 1, const char *);
    int runs = operands_part(a, arguments, word);
    Curves c = {0};
    if (runs == 0) {
        complain(arguments, "no file or folder of a run is named '%s'",
                 word[0]);
        return EXIT_USAGE;
    }
    int status = runs_read(a, arguments, word, runs, &c);
    if (status == EXIT_GOOD)
        status = metrics_choose(a, arguments, word + runs, count - runs, &c);
    if (status != EXIT_GOOD)
        return status;
    Text t = text_new(a);
    curves_add(&t, &c);
    return drawing_write(a, arguments, word, runs, &t);
}
