// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Options: one table for the parser and for --help.
#define _POSIX_C_SOURCE 200809L

#include "base/terminal.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    FLAG,
    TEXT,
    SEED,
    STEPS,
    THREADS,
    LOADERS,
    ABOVE_0,
    RESUME,
    BAD_SAMPLES,
    PIXELS,
    VALIDATION,
    WITHOUT
} Kind;

typedef struct {
    const char *name, *value;
    Kind kind;
    size_t field; // in RtOptions
    const char *help;
} Option;

// clang-format off
#define FIELD(name) offsetof(RtOptions, name)
static const Option options[] = {
    {"data",      "DIR",    TEXT,    FIELD(data),      "the data set; synthetic generates one, synthetic:N one of N samples"},
    {"validation", "N",     VALIDATION, FIELD(validation), "hold out N training samples, or a share as 10%, and evaluate on them instead of the test set"},
    {"out",       "DIR",    TEXT,    FIELD(out),       "folder of this run (default: the next of runs/MODEL/001, 002, ...)"},
    {"device",    "NAME",   TEXT,    FIELD(device),    "auto, host, or cuda:N (default auto)"},
    {"epochs",    "X",      ABOVE_0, FIELD(epochs),    "length of the run in epochs, whole or not"},
    {"steps",     "N",      STEPS,   FIELD(steps),     "stop after N more steps and save; --resume continues the same run"},
    {"seed",      "N",      SEED,    FIELD(seed),      "seed of all random numbers"},
    {"resume",    "[=PATH]",RESUME,  FIELD(resume),    "continue the newest run, the one in --out, or the one in folder PATH; of a file PATH, start a new run from its step"},
    {"init",      "PATH",   TEXT,    FIELD(init),      "start with the weights, or their averages, of a checkpoint, a run's folder or another program's safetensors file"},
    {"init-except", "GLOBS", TEXT,   FIELD(init_except), "with --init, names to leave out, separated by commas: these are initialized as in any run"},
    {"metrics",   "FILE",   TEXT,    FIELD(metrics),   "write the rows of metrics.jsonl also to FILE, - for standard output"},
    {"log-every", "N",      STEPS,   FIELD(log_every), "write a row of metrics for every N steps, too"},
    {"init-only", NULL,     FLAG,    FIELD(init_only), "save the initial state of the run, and end"},
    {"times",     "FILE",   TEXT,    FIELD(times),     "write the milliseconds of each step to FILE, - for standard output; waits for each step"},
    {"snapshot",  "FILE",   TEXT,    FIELD(snapshot),  "write all tensors that the first update reads and writes to FILE"},
    {"tune",      NULL,     FLAG,    FIELD(tune),      "measure which library plans, fusions and merged launches are fastest, store the result, and end"},
    {"tuning",    "FILE",   TEXT,    FIELD(tuning),    "use the tuning result in FILE; with --tune, write it there"},
    {"repeat-batch", NULL,  FLAG,    FIELD(repeat_batch), "use the first batch for every step, which shows the cost of loading"},
    {"without",   "LIST",   WITHOUT, FIELD(without),   "on a GPU, switch off some of graph,joins,marks,rides, to measure their effect"},
    {"eval-only", NULL,     FLAG,    FIELD(eval_only), "evaluate the newest checkpoint, the one of --resume, or the weights of --init, and end"},
    {"load-only", NULL,     FLAG,    FIELD(load_only), "load one epoch, or --epochs X, without a device, print the speed, and end"},
    {"list-kernels", NULL,  FLAG,    FIELD(list_kernels), "list the launches of each step, with the model's lines, and end"},
    {"print-plan", NULL,    FLAG,    FIELD(print_plan), "print the offset of each tensor and the arguments of each launch, and end"},
    {"resident",  "WORD",   TEXT,    FIELD(resident),  "auto, yes or no: keep all images in GPU memory (default auto: if they fit)"},
    {"profile",   "FILE",   TEXT,    FIELD(profile),   "write a trace of some steps to FILE, - for standard output, for Perfetto or chrome://tracing, and print the longest launches"},
    {"profile-steps", "N",  STEPS,   FIELD(profile_steps), "steps of that trace, after the first three (default 8)"},
    {"nvtx",      NULL,     FLAG,    FIELD(nvtx),      "emit NVTX ranges; automatic under a profiler"},
    {"dump-cuda", "DIR",    TEXT,    FIELD(dump_cuda), "write the CUDA text of the kernels to DIR, and end"},
    {"load-cuda", "DIR",    TEXT,    FIELD(load_cuda), "on a GPU, compile the CUDA text in DIR instead of the trainer's own"},
    {"quiet",     NULL,     FLAG,    FIELD(quiet),     "print only errors, warnings, the result and the weights' file"},
    {"time",      NULL,     FLAG,    FIELD(time),      "at the end, print a table of where the time went"},
    {"threads",   "N",      THREADS, FIELD(threads),   "threads of the host device (default: one for each core)"},
    {"loaders",   "N",      LOADERS, FIELD(loaders),   "threads that load data (default: few; one for each core to decode images for a GPU)"},
    {"bad-samples", "WORD", BAD_SAMPLES, FIELD(bad_samples), "stop, or skip:N to skip up to N image files that cannot be decoded (default stop)"},
    {"max-image-pixels", "N", PIXELS, FIELD(max_image_pixels), "treat an image file of more pixels as one that cannot be decoded (default 89478485)"},
    {"verify-every", "N",   STEPS,   FIELD(verify_every), "run every Nth step twice, and end with status 4 if the results differ"},
    {"stall-timeout", "SECONDS", ABOVE_0, FIELD(stall_timeout), "save and end with status 74 if no batch arrives for so long (default: wait)"},
    {"help",      NULL,     FLAG,    FIELD(help),      "show this and end"},
    {"version",   NULL,     FLAG,    FIELD(version),   "show the version and end"},
};
// clang-format on
enum { NUM_OPTIONS = sizeof options / sizeof options[0] };

static int least(int a, int b) {
    return a < b ? a : b;
}

// Edits (insert, delete, replace) between two words of at most 31 letters.
static int distance(const char *a, const char *b) {
    enum { ROOM = 32 };
    int row[ROOM], m = (int)strlen(b);
    for (int k = 0; k <= m; k++)
        row[k] = k;
    for (int i = 1; a[i - 1] != '\0'; i++) {
        int corner = row[0];
        row[0] = i;
        for (int k = 1; k <= m; k++) {
            int change = corner + (a[i - 1] != b[k - 1]);
            corner = row[k];
            row[k] = least(change, 1 + least(row[k], row[k - 1]));
        }
    }
    return row[m];
}

static bool unknown(const char *name, RtError *e) {
    const char *nearest = NULL;
    int fewest = least(4, (int)strlen(name) / 2 + 1);
    for (int i = 0; i < NUM_OPTIONS; i++) {
        int edits = distance(name, options[i].name);
        if (edits < fewest) {
            fewest = edits;
            nearest = options[i].name;
        }
    }
    if (nearest == NULL)
        return rt_fail(e, EXIT_USAGE,
                       "unknown option --%.100s; see --help. The compiler sets "
                       "keys of the recipe: sinter build FILE.net --set "
                       "KEY=VALUE",
                       name);
    return rt_fail(e, EXIT_USAGE, "unknown option --%.100s; did you mean --%s?",
                   name, nearest);
}

static bool whole(const char *text, int64_t most, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *text != ' ' &&
           *value >= 0 && *value <= most;
}

// A number in decimal digits; strtod also accepts other digits and words.
static bool number(const char *text, char **end, double *value) {
    size_t most = strspn(text, "0123456789+-.eE");
    *value = strtod(text, end);
    return *end != text && (size_t)(*end - text) <= most;
}

// A number of samples, or a percentage.
static bool set_validation(RtValidation *v, const char *text, RtError *e) {
    char *end;
    double value;
    bool good = number(text, &end, &value);
    bool share = good && *end == '%';
    *v = (RtValidation){share ? 0 : value, share ? value : 0};
    if (good && end[share] == '\0' &&
        (share ? value > 0 && value < 100
               : value >= 1 && value <= INT32_MAX && value == floor(value)))
        return true;
    return rt_fail(e, EXIT_USAGE,
                   "--validation %.100s: expected a number of samples from 1, "
                   "or a share of them, as 10%%",
                   text);
}

// `stop` for none, or `skip:N`.
static bool set_bad_samples(int64_t *most, const char *text, RtError *e) {
    static const char skip[] = "skip:";
    *most = 0;
    if (strcmp(text, "stop") == 0 ||
        (strncmp(text, skip, sizeof skip - 1) == 0 &&
         whole(text + sizeof skip - 1, INT32_MAX, most) && *most > 0))
        return true;
    return rt_fail(e, EXIT_USAGE,
                   "--bad-samples %.100s: expected stop, or skip:N with a "
                   "number from 1",
                   text);
}

// Epochs, or seconds.
enum { MAX_NUMBER = 1000000000 };

static bool set_number(const Option *o, void *field, const char *text,
                       RtError *e) {
    int64_t value;
    char *end;
    int most;
    switch (o->kind) {
    case SEED:
        if (!whole(text, INT32_MAX, &value))
            return rt_fail(e, EXIT_USAGE,
                           "--seed %.100s: expected a whole number from 0 to "
                           "%d",
                           text, INT32_MAX);
        *(int64_t *)field = value;
        return true;
    case STEPS:
        if (!whole(text, INT32_MAX, &value) || value == 0)
            return rt_fail(e, EXIT_USAGE,
                           "--%s %.100s: expected a number of steps from 1 "
                           "to %d",
                           o->name, text, INT32_MAX);
        *(int64_t *)field = value;
        return true;
    case PIXELS:
        if (!whole(text, INT32_MAX, &value) || value == 0)
            return rt_fail(e, EXIT_USAGE,
                           "--%s %.100s: expected a number of pixels from 1 "
                           "to %d",
                           o->name, text, INT32_MAX);
        *(int64_t *)field = value;
        return true;
    case THREADS:
    case LOADERS:
        most = o->kind == LOADERS ? RT_MAX_LOADERS : 1024;
        if (!whole(text, most, &value) || value == 0)
            return rt_fail(e, EXIT_USAGE,
                           "--%s %.100s: expected a number from 1 to %d",
                           o->name, text, most);
        *(int *)field = (int)value;
        return true;
    default:
        if (!number(text, &end, field) || *end != '\0' ||
            !(*(double *)field > 0) || *(double *)field > MAX_NUMBER)
            return rt_fail(e, EXIT_USAGE,
                           "--%s %.100s: expected a number above 0, at most %d",
                           o->name, text, MAX_NUMBER);
        return true;
    }
}

// `value` follows '=', or is NULL. *used: the following argument is the value.
static bool set(RtOptions *to, const Option *o, const char *value,
                const char *following, bool *used, RtError *e) {
    void *field = (char *)to + o->field;
    if (o->kind == FLAG || o->kind == RESUME) {
        if (o->kind == FLAG && value != NULL)
            return rt_fail(e, EXIT_USAGE, "--%s takes no value", o->name);
        if (value != NULL && *value == '\0')
            return rt_fail(e, EXIT_USAGE, "--%s= needs a path", o->name);
        if (o->kind == RESUME)
            to->resume_path = value;
        *(bool *)field = true;
        return true;
    }
    *used = value == NULL;
    if (*used)
        value = following;
    if (value == NULL || *value == '\0')
        return rt_fail(e, EXIT_USAGE, "--%s needs a value: %s", o->name,
                       o->value);
    if (o->kind == WITHOUT)
        return rt_without_parse(field, value, e);
    if (o->kind == VALIDATION)
        return set_validation(field, value, e);
    if (o->kind == BAD_SAMPLES)
        return set_bad_samples(field, value, e);
    if (o->kind != TEXT)
        return set_number(o, field, value, e);
    *(const char **)field = value;
    return true;
}

// The value of --resume is optional, so a path after a space is none.
static bool unexpected(const char *argument, const char *before, RtError *e) {
    if (strcmp(before, "--resume") == 0)
        return rt_fail(e, EXIT_USAGE,
                       "unexpected argument %.100s; a checkpoint is named by "
                       "--resume=%.100s",
                       argument, argument);
    return rt_fail(e, EXIT_USAGE,
                   "unexpected argument %.100s; options begin with --",
                   argument);
}

static bool parse_one(RtOptions *to, const char *before, const char *argument,
                      const char *following, bool *used, RtError *e) {
    if (strncmp(argument, "--", 2) != 0 || argument[2] == '\0')
        return unexpected(argument, before, e);
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)least((int)length, 31), name);
    for (int i = 0; i < NUM_OPTIONS; i++)
        if (strcmp(word, options[i].name) == 0)
            return set(to, &options[i], value, following, used, e);
    return unknown(word, e);
}

// Only one of these can be standard output.
static bool check_stdout(const RtOptions *o, RtError *e) {
    const struct {
        const char *path, *name;
    } to[] = {
        {o->metrics, "metrics"}, {o->times, "times"}, {o->profile, "profile"}};
    const char *name = NULL;
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        if (!rt_is_stdout(to[i].path))
            continue;
        if (name != NULL)
            return rt_fail(e, EXIT_USAGE,
                           "--%s=- and --%s=- exclude each other", name,
                           to[i].name);
        name = to[i].name;
    }
    return true;
}

// Options of training or of a device exclude --load-only.
static bool check_load_only(const RtOptions *o, RtError *e) {
    const struct {
        bool given;
        const char *name;
    } other[] = {
        {o->init_only, "init-only"},
        {o->eval_only, "eval-only"},
        {o->resume, "resume"},
        {o->init != NULL, "init"},
        {o->tune, "tune"},
        {o->steps > 0, "steps"},
        {o->log_every > 0, "log-every"},
        {o->times != NULL, "times"},
        {o->snapshot != NULL, "snapshot"},
        {o->profile != NULL, "profile"},
        {o->repeat_batch, "repeat-batch"},
        {o->verify_every > 0, "verify-every"},
        {o->load_cuda != NULL, "load-cuda"},
        {o->without != 0, "without"},
        {o->nvtx, "nvtx"},
    };
    for (size_t i = 0; o->load_only && i < sizeof other / sizeof *other; i++)
        if (other[i].given)
            return rt_fail(e, EXIT_USAGE,
                           "--load-only and --%s exclude each other",
                           other[i].name);
    return true;
}

bool rt_options_parse(RtOptions *o, int argc, char **argv, RtError *e) {
    *o = (RtOptions){.device = "auto", .resident = "auto", .seed = -1};
    for (int i = 1; i < argc; i++) {
        bool used = false;
        const char *following = i + 1 < argc ? argv[i + 1] : NULL;
        if (!parse_one(o, argv[i - 1], argv[i], following, &used, e))
            return false;
        i += used;
    }
    if (o->init_only && o->eval_only)
        return rt_fail(e, EXIT_USAGE,
                       "--init-only and --eval-only exclude each other");
    if (strcmp(o->resident, "auto") != 0 && strcmp(o->resident, "yes") != 0 &&
        strcmp(o->resident, "no") != 0)
        return rt_fail(e, EXIT_USAGE,
                       "--resident %.100s: expected auto, yes or no",
                       o->resident);
    if (o->profile != NULL && (o->init_only || o->eval_only || o->tune))
        return rt_fail(e, EXIT_USAGE,
                       "--profile traces steps of training; --init-only, "
                       "--eval-only and --tune take none");
    if (o->profile_steps > 0 && o->profile == NULL)
        return rt_fail(e, EXIT_USAGE, "--profile-steps needs --profile FILE");
    if (o->init_only && o->resume)
        return rt_fail(e, EXIT_USAGE,
                       "--init-only and --resume exclude each other");
    if (o->init != NULL && o->resume)
        return rt_fail(e, EXIT_USAGE,
                       "--init and --resume exclude each other: a run that "
                       "goes on has its weights in its checkpoint");
    if (o->init_except != NULL && o->init == NULL)
        return rt_fail(e, EXIT_USAGE, "--init-except needs --init=FILE");
    return check_stdout(o, e) && check_load_only(o, e);
}

bool rt_option_text(int i, RtOptionText *out) {
    if (i < 0 || i >= NUM_OPTIONS)
        return false;
    *out = (RtOptionText){options[i].name, options[i].value, options[i].help};
    return true;
}

enum { MAX_SHOWN = 1000 };

static const char *shown(char to[MAX_SHOWN], const char *s) {
    terminal_text(to, MAX_SHOWN, s);
    return to;
}

void rt_options_help(const RtTrainer *t, const char *program) {
    char name[MAX_SHOWN], file[MAX_SHOWN], data[MAX_SHOWN];
    printf("%s trains %s (%s, compiled by sinter %s)\n\n", shown(name, program),
           t->model, shown(file, t->file), t->version);
    printf("usage: %s [options]\n\n", name);
    for (int i = 0; i < NUM_OPTIONS; i++) {
        const Option *o = &options[i];
        char left[40];
        snprintf(left, sizeof left, "--%s%s%s", o->name,
                 o->value && o->value[0] != '[' ? " " : "",
                 o->value ? o->value : "");
        printf("  %-18s %s\n", left, o->help);
    }
    printf("\nWithout options: data %s:%s, %g %s%s, batch %d, seed %lld, "
           "out runs/%s/001, 002, ...\n",
           t->data_format, shown(data, t->data_path), t->length.count,
           t->length.unit == RT_STEPS ? "step" : "epoch",
           t->length.count == 1 ? "" : "s", t->batch, (long long)t->seed,
           t->model);
    printf(
        "Exit status: 0 success, 2 usage, 3 data or checkpoint, 4 device, "
        "5 memory,\n6 diverged, 70 internal error, 74 input or output. Ctrl-C, "
        "SIGTERM and SIGHUP\nwrite a checkpoint; then the trainer ends by "
        "that signal: 130, 143 or 129.\n");
}
