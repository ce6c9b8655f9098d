// sinter repeat: trains from several seeds, and prints the spread of the
// results: a single accuracy may be luck.
//
// A run is a function of the trainer, its seed, data, device and number of
// threads.  So a finished run is reused if its folder records the same ones.
#define _POSIX_C_SOURCE 200809L // getcwd

#include "base/exits.h"
#include "base/source.h"
#include "tools/compare/spread.h"
#include "tools/compare/variant.h"
#include "tools/load.h"
#include "tools/process.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 5, PATH_BYTES = 4096 };

// Results of a run, from its rows.
enum { ACCURACY, LOSS, TRAINING, WHOLE, NUM_RESULTS };

static const struct {
    const char *key, *title;
    int width, digits;
} column[NUM_RESULTS] = {{"accuracy", "accuracy %", 10, 2},
                         {"loss", "loss", 9, 4},
                         {"training_s", "training s", 11, 2},
                         {"total_s", "whole run s", 12, 2}};

typedef struct {
    Scratch scratch;
    const char *trainer, *name, *folder;
    const char *device, *data; // data NULL: of the model file
    const char *validation;    // held-out samples; NULL: none
    const char *launcher;      // that starts the ranks; NULL: one process
    const char *record;        // trainer, data, device and launcher of all runs
    FILE *log;                 // errors and warnings of the current run
    Text printed;              // the lines of all runs
    int64_t seed;              // first seed
    int wanted, diverged, ended;
    int reused; // finished runs that were reused
    int64_t *ended_seed;
    Series result[NUM_RESULTS]; // of finished runs; NAN: not measured
} Repeat;

// ---- a run ----

// The number of a key in the last row of a split; NAN if there is none.
static double last_of(Arena *a, const char *rows, const char *kind,
                      const char *key) {
    Series s = rows_series(a, rows, kind, key);
    return s.count > 0 ? s.value[s.count - 1] : (double)NAN;
}

static void results_take(Arena *a, Repeat *r, const char *rows) {
    double whole = last_of(a, rows, "time", "total");
    const double result[NUM_RESULTS] = {
        [ACCURACY] = 100 * last_of(a, rows, "test", "accuracy"),
        [LOSS] = last_of(a, rows, "test", "loss"),
        [TRAINING] = whole - last_of(a, rows, "time", "start") -
                     last_of(a, rows, "time", "evaluation") -
                     last_of(a, rows, "time", "checkpoints"),
        [WHOLE] = whole,
    };
    for (int k = 0; k < NUM_RESULTS; k++)
        r->result[k].value[r->result[k].count++] = result[k];
}

// The record has the current folder, for relative paths, and the number of
// processors, which is a trainer's number of threads.
static int record_make(Arena *a, const Arguments *arguments, Repeat *r) {
    char folder[PATH_BYTES] = "";
    uint64_t hash = trainer_file_hash(r->trainer);
    if (hash == 0)
        return io_failed(arguments, r->trainer);
    if (getcwd(folder, sizeof folder) == NULL)
        return io_failed(arguments, ".");
    const char *held =
        r->validation ? arena_format(a, " without %s", r->validation) : "";
    const char *by =
        r->launcher ? arena_format(a, " by %s", r->launcher) : "";
    r->record = arena_format(
        a, "%016" PRIx64 " on %s%s, threads %d, data %s%s, in %s\n", hash,
        r->device, by, processors(), r->data ? r->data : "of the file", held,
        folder);
    return EXIT_GOOD;
}

static bool is_recorded(Arena *a, const Repeat *r, const char *path) {
    const char *why;
    const Source *s = source_read(a, path, 2 * PATH_BYTES, &why);
    return s != NULL && strcmp(s->text, r->record) == 0;
}

// The folder of a seed's run.  An earlier run there is renamed: SEED-1, SEED-2
// and so on.
static const char *folder_free(Arena *a, const Repeat *r, int64_t seed) {
    const char *path = arena_format(a, "%s/%" PRId64, r->folder, seed);
    const char *other = path;
    for (int i = 1; access(other, F_OK) == 0; i++)
        other = arena_format(a, "%s-%d", path, i);
    if (other != path)
        rename(path, other); // else the trainer refuses the folder
    return path;
}

// Copies the new lines of a run's log to stderr.  A line that an earlier run
// has printed, such as a warning about the recipe, would only split the table.
static bool log_copy(void *whose) {
    enum { ROOM = 4096 };
    Repeat *r = whose;
    char line[ROOM] = "\n";
    while (fgets(line + 1, sizeof line - 1, r->log) != NULL) {
        if (strstr(text_string(&r->printed), line) != NULL)
            continue;
        text_add(&r->printed, "%s", line);
        fputs(line + 1, stderr);
    }
    clearerr(r->log); // it grows
    return true;
}

// Trains once.
static int train(Arena *a, Repeat *r, int64_t seed, const char *rows) {
    Words w = {.a = a};
    if (r->launcher != NULL)
        words_split(&w, r->launcher);
    words_add(&w, r->trainer);
    words_add(&w, "--quiet");
    words_add(&w, arena_format(a, "--device=%s", r->device));
    words_add(&w, arena_format(a, "--seed=%" PRId64, seed));
    words_add(&w, arena_format(a, "--metrics=%s", rows));
    words_add(&w, arena_format(a, "--out=%s", folder_free(a, r, seed)));
    if (r->data != NULL)
        words_add(&w, arena_format(a, "--data=%s", r->data));
    if (r->validation != NULL)
        words_add(&w, arena_format(a, "--validation=%s", r->validation));
    const char *said = arena_format(a, "%s/said", r->scratch.path);
    const char *log = arena_format(a, "%s/log", r->scratch.path);
    r->log = fopen(log, "w+");
    if (r->log == NULL)
        return program_run(&w, ".", said, NULL);
    int status = program_run_while(&w, ".", said, log, log_copy, r);
    int error = errno; // of a program that has not started
    fclose(r->log);
    errno = error;
    return status;
}

// Whether the program has written metrics, as trainers do.
static bool has_metrics(Arena *a, const Arguments *arguments, const Repeat *r,
                        const char *rows) {
    if (!isnan(last_of(a, rows, "time", "total")))
        return true;
    complain(arguments,
             "%s is not a trainer: it exited with status 0 but reported no run",
             r->trainer);
    return false;
}

// The record is written last: an incomplete one never matches.
static int run(Arena *a, const Arguments *arguments, Repeat *r, int64_t seed) {
    const char *name = arena_format(a, "%s/%" PRId64, r->folder, seed);
    const char *rows = arena_format(a, "%s.rows", name);
    const char *record = arena_format(a, "%s.ended", name);
    bool reused = is_recorded(a, r, record) && access(rows, R_OK) == 0;
    if (!reused) {
        unlink(record);
        unlink(rows);
    }
    int status = reused ? EXIT_GOOD : train(a, r, seed, rows);
    if (status != EXIT_GOOD)
        return trainer_end_report(arguments, r->trainer, status);
    if (!has_metrics(a, arguments, r, rows))
        return EXIT_USAGE;
    if (!reused)
        file_write(record, r->record, strlen(r->record));
    r->reused += reused;
    r->ended_seed[r->ended++] = seed;
    results_take(a, r, rows);
    return status;
}

// ---- results of all runs ----

static double mean_of(const Series *s) {
    double sum = 0;
    for (int i = 0; i < s->count; i++)
        sum += s->value[i];
    return sum / s->count;
}

// The sample's standard deviation.
static double deviation_of(const Series *s) {
    double mean = mean_of(s), sum = 0;
    for (int i = 0; i < s->count; i++)
        sum += (s->value[i] - mean) * (s->value[i] - mean);
    return sqrt(sum / (s->count - 1));
}

static void cell_print(int k, double value) {
    if (isnan(value))
        printf(" %*s", column[k].width, "-");
    else
        printf(" %*.*f", column[k].width, column[k].digits, value);
}

static void row_print(const char *name, const double *value) {
    printf("%-9s", name);
    for (int k = 0; k < NUM_RESULTS; k++)
        cell_print(k, value[k]);
    putchar('\n');
}

static void head_print(Arena *a, const Repeat *r) {
    printf("%s, %d run%s from seed %" PRId64 "%s\n%-9s",
           text_escaped(a, r->name), r->wanted, r->wanted == 1 ? "" : "s",
           r->seed, r->validation ? ", evaluated on held-out samples" : "",
           "seed");
    for (int k = 0; k < NUM_RESULTS; k++)
        printf(" %*s", column[k].width, column[k].title);
    putchar('\n');
    fflush(stdout);
}

static void seed_print(Arena *a, const Repeat *r, int64_t seed, int status) {
    double value[NUM_RESULTS];
    for (int k = 0; k < NUM_RESULTS; k++)
        value[k] = status == EXIT_GOOD ? r->result[k].value[r->ended - 1]
                                       : (double)NAN;
    const char *name = arena_format(a, "%" PRId64, seed);
    if (status == EXIT_GOOD)
        row_print(name, value);
    else
        printf("%-9s diverged\n", name);
    fflush(stdout);
}

static void summary_print(Arena *a, const Repeat *r) {
    enum { ROWS = 5 };
    static const char *const name[ROWS] = {"mean", "deviation", "median",
                                           "least", "most"};
    double row[ROWS][NUM_RESULTS];
    if (r->reused > 0)
        printf("results reused from an earlier call: %d\n", r->reused);
    for (int k = 0; k < NUM_RESULTS; k++) {
        const Series *s = &r->result[k];
        Spread spread = spread_of(a, s->value, s->count);
        const double is[ROWS] = {mean_of(s), deviation_of(s), spread.median,
                                 spread.least, spread.most};
        for (int i = 0; i < ROWS; i++)
            row[i][k] = is[i];
    }
    for (int i = 0; i < ROWS && r->ended > 1; i++)
        row_print(name[i], row[i]);
}

static void repeat_json(Text *t, const Repeat *r) {
    text_add(t, "{\"schema\": 2");
    json_text(t, "model", r->name);
    json_text(t, "device", r->device);
    json_text(t, "data", r->data);
    if (r->validation != NULL)
        json_text(t, "validation", r->validation);
    json_count(t, "runs", r->wanted);
    json_count(t, "diverged", r->diverged);
    json_count(t, "reused", r->reused);
    text_add(t, ", \"seeds\": [");
    for (int i = 0; i < r->ended; i++)
        text_add(t, "%s%" PRId64, i > 0 ? ", " : "", r->ended_seed[i]);
    text_add(t, "]");
    for (int k = 0; k < NUM_RESULTS; k++)
        json_numbers(t, column[k].key, r->result[k].value, r->result[k].count);
    text_add(t, "}\n");
}

// ---- the command ----

static int runs_make(Arena *a, const Arguments *arguments, Repeat *r) {
    int status = EXIT_GOOD;
    Load load = load_begin();
    r->ended_seed = ARENA_ARRAY(a, (size_t)r->wanted, int64_t);
    for (int k = 0; k < NUM_RESULTS; k++)
        r->result[k].value = ARENA_ARRAY(a, (size_t)r->wanted, double);
    if (!arguments->json)
        head_print(a, r);
    for (int i = 0; i < r->wanted; i++) {
        status = run(a, arguments, r, r->seed + i);
        if (status != EXIT_GOOD && status != EXIT_DIVERGED)
            return status;
        r->diverged += status == EXIT_DIVERGED;
        if (!arguments->json)
            seed_print(a, r, r->seed + i, status);
    }
    if (arguments->json) {
        Text t = text_new(a);
        repeat_json(&t, r);
        fputs(text_string(&t), stdout);
    } else {
        summary_print(a, r);
    }
    // The machine's load during reused runs is not known.
    const Series *whole = &r->result[WHOLE];
    if (r->reused < r->ended)
        load_report(&load, spread_range(a, whole->value, whole->count));
    return r->diverged > 0 ? EXIT_DIVERGED : EXIT_GOOD;
}

// Uses the given trainer, or builds the model's.
static int trainer_make(Arena *a, const Arguments *arguments, Repeat *r) {
    int status;
    TrainerText t;
    if (trainer_file_is(arguments->operand[0])) {
        r->trainer = trainer_file_path(a, arguments->operand[0]);
        r->name = arguments->operand[0];
        return trainer_file_suits(arguments) ? EXIT_GOOD : EXIT_USAGE;
    }
    const Program *p = trainer_load(a, arguments, &t, &status);
    if (p == NULL)
        return status;
    r->name = p->name;
    r->trainer = arena_format(a, "%s/trainer", r->scratch.path);
    status =
        inputs_named_check(a, arguments, p, r->device, r->data, r->validation);
    return status != EXIT_GOOD ? status
                               : trainer_build(a, arguments, &t, r->trainer);
}

int repeat_command(Arena *a, const Arguments *arguments) {
    Repeat r = {
        .printed = text_new(a),
        .device = arguments->device ? arguments->device : "auto",
        .data = arguments->data ? runs_data(a, arguments, 0, 0) : NULL,
        .validation = arguments->validation,
        .launcher = arguments->launcher,
        .seed = arguments->seed.given ? arguments->seed.value : 0,
        .wanted = arguments->runs.given ? (int)arguments->runs.value : RUNS,
    };
    int status = EXIT_IO;
    if (scratch_open(a, arguments, &r.scratch)) {
        r.folder = arguments->out ? arguments->out : r.scratch.path;
        status = folder_make(arguments, r.folder);
        if (status == EXIT_GOOD)
            status = trainer_make(a, arguments, &r);
        if (status == EXIT_GOOD)
            status = record_make(a, arguments, &r);
        if (status == EXIT_GOOD)
            status = runs_make(a, arguments, &r);
        scratch_close(&r.scratch);
    }
    return status;
}
