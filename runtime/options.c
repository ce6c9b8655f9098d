// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Options of a trainer: its table, and the combinations that it refuses.
#include "base/terminal.h"
#include "runtime/runtime.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- kinds of values ----

static bool whole_read(const Option *o, const char *text, void *to) {
    return option_whole(o, text, OPTION_FIELD(o, to));
}

// A number in decimal digits; strtod takes other digits and words, too.
static bool number(const char *text, char **end, double *value) {
    size_t most = strspn(text, "0123456789+-.eE");
    *value = strtod(text, end);
    return *end != text && (size_t)(*end - text) <= most;
}

// Epochs of a run, or seconds.
static bool above_0_read(const Option *o, const char *text, void *to) {
    double *value = OPTION_FIELD(o, to);
    char *end;
    return number(text, &end, value) && *end == '\0' && *value > 0 &&
           *value <= 1e9;
}

static bool from_0_read(const Option *o, const char *text, void *to) {
    double *value = OPTION_FIELD(o, to);
    char *end;
    return number(text, &end, value) && *end == '\0' && *value >= 0 &&
           *value <= 1e9;
}

static bool share_read(const Option *o, const char *text, void *to) {
    double *value = OPTION_FIELD(o, to);
    return above_0_read(o, text, to) && *value <= 1;
}

// Samples, or with a sign a share of them.
static bool validation_read(const Option *o, const char *text, void *to) {
    char *end;
    double value;
    bool good = number(text, &end, &value);
    bool share = good && *end == '%';
    *(RtValidation *)OPTION_FIELD(o, to) =
        (RtValidation){share ? 0 : value, share ? value : 0};
    return good && end[share] == '\0' &&
           (share ? value > 0 && value < 100
                  : value >= 1 && value <= INT32_MAX && value == floor(value));
}

static bool bad_samples_read(const Option *o, const char *text, void *to) {
    static const char skip[] = "skip:";
    int64_t *most = OPTION_FIELD(o, to);
    *most = 0;
    return strcmp(text, "stop") == 0 ||
           (strncmp(text, skip, sizeof skip - 1) == 0 &&
            option_whole(o, text + sizeof skip - 1, most));
}

static bool resident_read(const Option *o, const char *text, void *to) {
    *(const char **)OPTION_FIELD(o, to) = text;
    return option_among("auto|yes|no", '|', text);
}

static bool collectives_read(const Option *o, const char *text, void *to) {
    *(const char **)OPTION_FIELD(o, to) = text;
    return option_among("auto|shared|mpi|nccl", '|', text);
}

static bool decode_read(const Option *o, const char *text, void *to) {
    *(const char **)OPTION_FIELD(o, to) = text;
    return option_among("cpu|nvjpeg", '|', text);
}

static bool reduce_read(const Option *o, const char *text, void *to) {
    *(const char **)OPTION_FIELD(o, to) = text;
    return option_among("fixed|fast", '|', text);
}

static bool resume_read(const Option *o, const char *text, void *to) {
    ((RtOptions *)to)->resume_path = text;
    return option_flag.read(o, text, to);
}

static bool without_read(const Option *o, const char *text, void *to) {
    return rt_without_parse(OPTION_FIELD(o, to), text);
}

static const OptionKind
    option_above_0 = {"a number above 0, at most 1000000000", above_0_read},
    option_bad_samples = {"stop, or skip:N with a number", bad_samples_read},
    option_collectives = {"auto, shared, mpi or nccl", collectives_read},
    option_count = {"a number", whole_read},
    option_decode = {"cpu or nvjpeg", decode_read},
    option_from_0 = {"a number from 0 to 1000000000", from_0_read},
    option_share = {"a number above 0, at most 1", share_read},
    option_pixels = {"a number of pixels", whole_read},
    option_reduce = {"fixed or fast", reduce_read},
    option_resident = {"auto, yes or no", resident_read},
    option_resume = {"a path", resume_read},
    option_seed = {"a whole number", whole_read},
    option_steps = {"a number of steps", whole_read},
    option_validation = {"a number of samples from 1, or a share of them, as "
                         "10%",
                         validation_read},
    option_without = {"a comma-separated list of graph, library-fusions, "
                      "merged-launches, programmatic-launches, forks, "
                      "timing-events, tile-kernels, step-groups",
                      without_read};

// ---- the table ----

enum {
#define OPTION(field, ...) NUMBER_##field,
#include "runtime/options.def"
#undef OPTION
};

const Option rt_options[] = {
#define OPTION(field, name, value, kind, least, most, help)                    \
    {name,                                                                     \
     value,                                                                    \
     &option_##kind,                                                           \
     offsetof(RtOptions, field),                                               \
     least,                                                                    \
     most,                                                                     \
     NUMBER_##field == NUMBER_out    ? 'o'                                     \
     : NUMBER_##field == NUMBER_help ? 'h'                                     \
                                     : '\0',                                   \
     NULL,                                                                     \
     help},
#include "runtime/options.def"
#undef OPTION
    {.name = NULL}};

#define GIVEN(field) ((uint64_t)1 << NUMBER_##field)

// ---- combinations ----

static const char *first_of(uint64_t given) {
    return rt_options[__builtin_ctzll(given)].name;
}

static bool apart(uint64_t given, RtError *e) {
    static const struct {
        uint64_t one, others;
        const char *why;
    } rule[] = {
        {GIVEN(load_only),
         GIVEN(init_only) | GIVEN(eval_only) | GIVEN(resume) | GIVEN(init) |
             GIVEN(tune) | GIVEN(steps) | GIVEN(log_every) | GIVEN(times) |
             GIVEN(snapshot) | GIVEN(profile) | GIVEN(repeat_batch) |
             GIVEN(verify_every) | GIVEN(load_cuda) | GIVEN(without) |
             GIVEN(nvtx) | GIVEN(decode),
         ""},
        {GIVEN(init_only), GIVEN(eval_only) | GIVEN(resume), ""},
        {GIVEN(predict),
         GIVEN(init_only) | GIVEN(eval_only) | GIVEN(load_only) |
             GIVEN(resume) | GIVEN(init) | GIVEN(tune) | GIVEN(steps) |
             GIVEN(epochs) | GIVEN(log_every) | GIVEN(times) | GIVEN(snapshot) |
             GIVEN(profile) | GIVEN(repeat_batch) | GIVEN(verify_every) |
             GIVEN(validation) | GIVEN(data) | GIVEN(metrics) |
             GIVEN(tensorboard) | GIVEN(bad_samples),
         ""},
        {GIVEN(generate),
         GIVEN(init_only) | GIVEN(eval_only) | GIVEN(load_only) |
             GIVEN(resume) | GIVEN(init) | GIVEN(tune) | GIVEN(steps) |
             GIVEN(epochs) | GIVEN(log_every) | GIVEN(times) | GIVEN(snapshot) |
             GIVEN(profile) | GIVEN(repeat_batch) | GIVEN(verify_every) |
             GIVEN(validation) | GIVEN(data) | GIVEN(metrics) |
             GIVEN(tensorboard) | GIVEN(bad_samples) | GIVEN(predict) |
             GIVEN(out),
         ""},
        {GIVEN(init), GIVEN(resume),
         ": a run that goes on has its weights in its checkpoint"},
    };
    for (size_t i = 0; i < sizeof rule / sizeof *rule; i++)
        if ((given & rule[i].one) && (given & rule[i].others))
            return rt_fail(e, EXIT_USAGE, "--%s and --%s exclude each other%s",
                           first_of(rule[i].one),
                           first_of(given & rule[i].others), rule[i].why);
    return true;
}

static bool together(uint64_t given, RtError *e) {
    if ((given & GIVEN(profile)) &&
        (given & (GIVEN(init_only) | GIVEN(eval_only) | GIVEN(tune))))
        return rt_fail(e, EXIT_USAGE,
                       "--profile traces steps of training; --init-only, "
                       "--eval-only and --tune take none");
    if ((given & GIVEN(profile_steps)) && !(given & GIVEN(profile)))
        return rt_fail(e, EXIT_USAGE, "--profile-steps needs --profile FILE");
    uint64_t predicts = GIVEN(top) | GIVEN(logits);
    uint64_t generates = GIVEN(tokens) | GIVEN(temperature) | GIVEN(top_k) |
                         GIVEN(top_p) | GIVEN(tokenizer);
    if ((given & predicts) && !(given & GIVEN(predict)))
        return rt_fail(e, EXIT_USAGE, "--%s needs --predict PATH",
                       first_of(given & predicts));
    if ((given & generates) && !(given & GIVEN(generate)))
        return rt_fail(e, EXIT_USAGE, "--%s needs --generate TEXT",
                       first_of(given & generates));
    if ((given & GIVEN(weights)) &&
        !(given & (GIVEN(predict) | GIVEN(generate))))
        return rt_fail(e, EXIT_USAGE,
                       "--weights needs --predict PATH or --generate TEXT");
    if ((given & GIVEN(init_except)) && !(given & GIVEN(init)))
        return rt_fail(e, EXIT_USAGE, "--init-except needs --init=FILE");
    if ((given & GIVEN(map)) && !(given & (GIVEN(init) | GIVEN(weights))))
        return rt_fail(e, EXIT_USAGE,
                       "--map needs --init=FILE or "
                       "--weights=FILE");
    return true;
}

// Only one of these can be standard output.
static bool print_apart(const RtOptions *o, RtError *e) {
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

// ---- words ----

static bool assigns(const char *at, const char *name) {
    size_t length = strlen(name);
    return strncmp(at, name, length) == 0 &&
           at[length + strspn(at + length, " ")] == '=';
}

// Whether the call that a key has as its value has this argument.
static bool has_argument(const char *line, const char *name) {
    int depth = 0;
    for (const char *at = line; *at != '\0' && *at != '\n'; at++) {
        depth += (*at == '(') - (*at == ')');
        if (depth == 1 && (*at == '(' || *at == ' ') && assigns(at + 1, name))
            return true;
    }
    return false;
}

// Finds the setting of the model file's train block that a name stands for:
// a key, or an argument of its value, as optimizer.lr.  *key and *length are
// then the part before the point.
static bool setting_find(const RtTrainer *t, const char *name, const char **key,
                         int *length) {
    if (t == NULL || t->num_sources == 0)
        return false;
    const char *at = strstr(t->source[0].text, "\ntrain ");
    for (; at != NULL && at[1] != '}'; at = strchr(at + 1, '\n')) {
        *key = at + 1 + strspn(at + 1, " ");
        *length = 0;
        if (assigns(*key, name))
            return true;
        *length = (int)strcspn(*key, " =({\n");
        if (assigns(*key + *length, "") && has_argument(*key, name))
            return true;
    }
    return false;
}

static bool unknown(const OptionReader *r, const RtTrainer *t, RtError *e) {
    char name[OPTION_ROOM];
    const char *key;
    int length;
    option_name(r->word[0], name);
    const char *value = "VALUE", *sign = strchr(r->word[0], '=');
    if (sign != NULL)
        value = sign + 1;
    else if (r->count > 1 && r->word[1][0] != '-')
        value = r->word[1];
    if (setting_find(t, name, &key, &length))
        return rt_fail(e, EXIT_USAGE,
                       "unknown option --%.100s; it is set when the trainer is "
                       "built: sinter build %.100s --set %.*s%s%.100s=%.100s",
                       name, t->file, length, key, length ? "." : "", name,
                       value);
    Nearest near = nearest_to(name);
    options_offer(rt_options, NULL, &near);
    if (near.best != NULL)
        return rt_fail(e, EXIT_USAGE,
                       "unknown option --%.100s; did you mean --%s?", name,
                       near.best);
    return rt_fail(e, EXIT_USAGE,
                   "unknown option --%.100s; see --help. The compiler sets "
                   "keys of the recipe: sinter build FILE.net --set KEY=VALUE",
                   name);
}

// A path after --resume is no value of it, as it may go without.
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

static bool value_take(RtOptions *to, const OptionReader *r, RtError *e) {
    const Option *o = r->option;
    if (r->value != NULL && *r->value == '\0')
        return o->value[0] == '['
                   ? rt_fail(e, EXIT_USAGE, "--%s= needs a path", o->name)
                   : rt_fail(e, EXIT_USAGE, "--%s needs a value: %s", o->name,
                             o->value);
    if (o->kind->read(o, r->value, to))
        return true;
    char expected[OPTION_ROOM];
    option_expected(o, expected);
    return rt_fail(e, EXIT_USAGE, "--%s %.100s: expected %s", o->name, r->value,
                   expected);
}

static bool word_take(RtOptions *to, const OptionReader *r, OptionStep step,
                      const RtTrainer *t, RtError *e) {
    switch (step) {
    case OPTION_TAKEN:
        return value_take(to, r, e);
    case OPTION_UNKNOWN:
        return unknown(r, t, e);
    case OPTION_OPERAND:
        if (to->predict == NULL || r->value[0] == '-')
            return unexpected(r->value, r->word[-2], e);
        return true; // rt_options_path finds it
    case OPTION_TAKES_NONE:
        return rt_fail(e, EXIT_USAGE, "--%s takes no value", r->option->name);
    default:
        return rt_fail(e, EXIT_USAGE, "--%s needs a value: %s", r->option->name,
                       r->option->value);
    }
}

bool rt_options_parse(RtOptions *o, int argc, char **argv, const RtTrainer *t,
                      RtError *e) {
    OptionReader r = {.table = rt_options, .word = argv + 1, .count = argc - 1};
    uint64_t given = 0;
    *o = (RtOptions){.device = "auto",
                     .resident = "auto",
                     .collectives = "auto",
                     .decode = "cpu",
                     .reduce = "fixed",
                     .seed = -1,
                     .temperature = 1};
    for (OptionStep step; (step = option_step(&r)) != OPTION_END;) {
        if (!word_take(o, &r, step, t, e))
            return false;
        if (step == OPTION_TAKEN)
            given |= (uint64_t)1 << (r.option - rt_options);
    }
    o->eval_only |= o->predict != NULL || o->generate != NULL;
    return apart(given, e) && together(given, e) && print_apart(o, e);
}

const char *rt_options_path(OptionReader *r) {
    for (OptionStep step; (step = option_step(r)) != OPTION_END;)
        if (step == OPTION_OPERAND || r->option == &rt_options[NUMBER_predict])
            return r->value;
    return NULL;
}

// ---- help ----

enum { MAX_SHOWN = 1000 };

static const char *shown(char to[MAX_SHOWN], const char *s) {
    terminal_text(to, MAX_SHOWN, s);
    return to;
}

void rt_options_help(const RtTrainer *t, const char *program) {
    char name[MAX_SHOWN], file[MAX_SHOWN], data[MAX_SHOWN];
    char form[OPTION_ROOM];
    printf("%s trains %s (%s, compiled by sinter %s)\n\n", shown(name, program),
           t->model, shown(file, t->file), t->version);
    printf("usage: %s [options]\n\n", name);
    for (const Option *o = rt_options; o->name; o++) {
        option_form(o, ' ', form);
        printf("  %-18s %s\n", form, o->help);
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
