// Arguments: one table of options makes the parser and the help.
#include "tools/tools.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    FLAG,
    WORD,
    CHOICE,
    COUNT,
    POSITIVE,  // a count of 1 or more
    POSITIVES, // one or more of them
    LINE,      // N, or FILE:N
    RATE,      // a number above 0
    BYTES,
    SETTING,
    PASS,
    RUNS // a file or folder; may be given several times
} OptionKind;

typedef struct {
    const char *name;     // --name
    const char *value;    // how help calls it; CHOICE: what it may be, by |
    const char *commands; // those that take it
    OptionKind kind;
    size_t at; // where in Arguments
    const char *what;
} Option;

#define AT(field) offsetof(Arguments, field)

// clang-format off
static const Option options[] = {
    {"set", "KEY=VALUE", "check build train show compare bisect reduce bench lrfind repeat tune variant report", SETTING, 0,
     "set a model parameter, a key of the recipe, or an argument of a key's "
     "value, as optimizer.lr=1e-2"},
    {"target", "cuda:sm_90,...", "build train", WORD, AT(embed),
     "compile machine code for these GPUs now; the trainer needs no NVRTC for "
     "them"},
    {"target", "cuda|host", "check", CHOICE, AT(target),
     "plan for this device; by default the first GPU here, or the host"},
    {"target", "cuda|host", "show", CHOICE, AT(target),
     "plan for this device; cuda by default"},
    {"target", "cuda|host", "opt", CHOICE, AT(target),
     "plan for this device; host by default"},
    {"device", "NAME", "check build", WORD, AT(device),
     "plan for a described GPU: h200, a100, b200 ..."},
    {"device", "NAME", "show report", WORD, AT(device),
     "plan and estimate for this GPU: h200 by default, a100, b200 ..."},
    {"device-file", "FILE.json", "check build show report", WORD, AT(device_file),
     "the same, for a GPU described in a file"},
    {"a", "OPTIONS", "compare bisect bench", WORD, AT(a),
     "build variant a with these options, also -a OPTIONS: -O0, "
     "--rewrite-limit=N, --memory=BYTES, --without=PASS, --act=recipe, --set "
     "KEY=VALUE; -O1 by default"},
    {"b", "OPTIONS", "compare bisect", WORD, AT(b),
     "build variant b with these options, also -b OPTIONS; -O0 by default"},
    {"batch", "N", "compare bisect", POSITIVE, AT(batch),
     "batch size; by default the file's, or a smaller one so that the "
     "double-precision reference takes seconds"},
    {"batch", "N,...", "bench", POSITIVES, AT(batches),
     "batch size; by default the file's; a list gives a table"},
    {"steps", "K", "compare", COUNT, AT(steps),
     "number of timed steps, whose losses are printed; 10 by default"},
    {"steps", "K", "bench", COUNT, AT(steps),
     "number of timed steps in each run; 10 by default"},
    {"data", "DIR|synthetic", "compare bisect bench tune", WORD, AT(data),
     "training data; synthetic by default, as many samples as the steps need"},
    {"device", "host|cuda:N", "compare bench", WORD, AT(device),
     "run on this device; host by default"},
    {"device", "cuda:N", "tune", WORD, AT(device),
     "measure on this GPU; cuda:0 by default"},
    {"out", "PATH", "tune", WORD, AT(out),
     "write the result to this file, for a trainer's --tuning, also -o PATH; "
     "by default in the user's cache, where trainers find it"},
    {"runs", "R", "bench", COUNT, AT(runs),
     "number of runs of the trainer; 6 by default"},
    {"from", "RATE", "lrfind", RATE, AT(lowest),
     "learning rate of the first step; 1e-6 by default"},
    {"to", "RATE", "lrfind", RATE, AT(highest),
     "learning rate of the last step; 10 by default"},
    {"steps", "K", "lrfind", COUNT, AT(steps),
     "number of steps; 100 by default, or fewer if the recipe has fewer"},
    {"runs", "R", "repeat", COUNT, AT(runs),
     "number of seeds; 5 by default"},
    {"seed", "S", "repeat", COUNT, AT(seed),
     "the first seed; 0 by default"},
    {"data", "DIR|synthetic", "lrfind repeat", WORD, AT(data),
     "training data; by default that of the file"},
    {"validation", "N", "lrfind", WORD, AT(validation),
     "leave out N training samples, or a share as 10%"},
    {"validation", "N", "repeat", WORD, AT(validation),
     "hold out N training samples, or a share as 10%, and evaluate on them "
     "instead of the test set"},
    {"device", "auto|host|cuda:N", "lrfind repeat", WORD, AT(device),
     "run on this device; auto by default"},
    {"out", "DIR", "repeat", WORD, AT(out),
     "keep the checkpoints and metrics of each seed there, also -o DIR; by "
     "default they are deleted"},
    {"ablate", NULL, "compare", FLAG, AT(ablate),
     "ablation: leave out one pass at a time, and print the cost"},
    {"no-eval", NULL, "compare bisect", FLAG, AT(no_eval),
     "skip the double-precision reference; compare a with b"},
    {"compare", "RESULT.json", "report", WORD, AT(compared),
     "add the output of sinter compare --json for this model to the page"},
    {"out", "PATH", "bisect", WORD, AT(out),
     "write the kernel to this folder; by default the file's name and .kernel"},
    {"out", "PATH", "reduce", WORD, AT(out),
     "write this file; by default the file's name and .reduced.net"},
    {"out", "PATH", "build", WORD, AT(out),
     "write this file, also -o PATH; by default the file's name without .net"},
    {"out", "PATH", "report", WORD, AT(out),
     "write this file, also -o PATH, - for standard output; by default the "
     "file's name with .html"},
    {"metrics", "RUN", "report", RUNS, 0,
     "draw the curves of a run: a file of --metrics, or a folder with "
     "metrics.jsonl; may be repeated"},
    {"x", "epoch|step|time", "plot report", CHOICE, AT(axis),
     "the x axis of curves; epoch by default"},
    {"out", "PATH", "plot", WORD, AT(out),
     "write this file, also -o PATH, - for standard output; plot.svg by "
     "default"},
    {"emit", "c", "build", CHOICE, AT(emit),
     "write the trainer's source into folder PATH instead"},
    {"emit", "cu", "opt", CHOICE, AT(emit),
     "print the kernels instead of the graph"},
    {"graph", "NAME", "show", WORD, AT(graph),
     "show this graph, as train, eval or init; by default all for kernels, "
     "ptx, sass and lines, else train"},
    {"run", "PASS,...", "opt", WORD, AT(run),
     "run these passes, in this order"},
    {"from", "STAGE", "show", WORD, AT(from),
     "the file holds a graph as this stage prints it"},
    {"to", "STAGE", "show", WORD, AT(to),
     "print this stage, like the word before the file"},
    {"dump-to", "DIR", "show", WORD, AT(dump),
     "write every stage into a folder, numbered"},
    {"kernel", "GLOB", "show", WORD, AT(kernel),
     "only the kernels whose names match, as 'k0*'"},
    {"line", "N|FILE:N", "show", LINE, AT(line),
     "only the kernels that a line of the model file made, or of one it "
     "imports"},
    {"op", "PATH", "show", WORD, AT(op),
     "only the kernels of a layer, as layer1.conv_1 or 'layer1.*'"},
    {"arch", "sm_90,...", "show", WORD, AT(arch),
     "GPUs to compile for: registers and spills of kernels; for ptx and sass "
     "one"},
    {"arch", "sm_90,...", "report", WORD, AT(arch),
     "GPUs to compile for: registers and spills of kernels"},
    {"at", "N,...", "show", WORD, AT(at),
     "print the schedules of show recipe at these updates, as 0,10,100"},
    {"samples", "N", "show", POSITIVE, AT(samples),
     "number of samples of an epoch, for show recipe"},
    {"samples", "N", "check", POSITIVE, AT(samples),
     "number of samples of an epoch, for its time"},
    {"samples", "N", "report", POSITIVE, AT(samples),
     "number of samples of an epoch, for the schedules"},
    {"lineinfo", "model", "build train show", CHOICE, AT(lineinfo),
     "emit line information, so that profilers and debuggers show lines of the "
     "model file"},
    {"act", "f32|f16|bf16", "opt", CHOICE, AT(act),
     "type of activations; f32 by default"},
    {"act", "f32|f16|bf16", "show", CHOICE, AT(act),
     "type of activations of a graph --from a file; f32 by default"},
    {"act", "recipe", "build train variant", CHOICE, AT(act),
     "store activations on the host in the recipe's precision; slower"},
    {"level", "0|1", "check build train show opt repeat tune variant report", CHOICE, AT(level),
     "1: with fusion, 0: without, also -O0; 1 by default"},
    {"rewrite-limit", "N", "check build train show opt repeat tune variant report", COUNT, AT(rewrite_limit),
     "apply only the first N rewrites of each graph"},
    {"without", "PASS", "check build train show repeat tune variant report", PASS, AT(without),
     "leave out a pass; required passes are refused"},
    {"memory", "BYTES", "check build train show compare bisect bench lrfind repeat opt tune variant report", BYTES, AT(memory),
     "memory limit, as 8GiB; rematerializes values to stay below it"},
    {"max-batch", NULL, "check", FLAG, AT(max_batch),
     "also print the largest batch that fits into --memory, or the device's "
     "memory"},
    {"images", NULL, "new", FLAG, AT(images),
     "images in classes: a small ResNet; the default"},
    {"table", NULL, "new", FLAG, AT(table),
     "rows of numbers in classes: a perceptron"},
    {"text", NULL, "new", FLAG, AT(text),
     "a text: a small GPT"},
    {"json", NULL, "check compare bench lrfind repeat runs show doctor", FLAG, AT(json),
     "print one JSON object"},
    {"check", "CMD", "reduce", WORD, AT(failing),
     "command that fails for the file; the file replaces {} or is appended"},
    {"check", NULL, "fmt", FLAG, AT(check),
     "change nothing; print the files that would change and exit with status "
     "1"},
    {"diagnostics", "text|json", "new check build train show compare bisect reduce bench lrfind repeat tune benchcmp fmt opt report plot runs", CHOICE, AT(diagnostics),
     "format of diagnostics; text by default"},
    {"help", NULL, "new check build train show compare bisect reduce bench lrfind repeat tune benchcmp opt passes fmt explain report plot runs doctor", FLAG, AT(help),
     "print this text"},
};
// clang-format on

enum { NUM_OPTIONS = sizeof options / sizeof options[0] };

// Whether word is one of those in list, which are set apart by `apart`.
static bool among(const char *list, char apart, const char *word,
                  size_t length) {
    while (*list) {
        const char *end = strchr(list, apart);
        size_t here = end ? (size_t)(end - list) : strlen(list);
        if (here == length && strncmp(list, word, length) == 0)
            return true;
        list += here + (end != NULL);
    }
    return false;
}

static const Option *option_find(const Command *command, const char *name,
                                 size_t length) {
    for (int i = 0; i < NUM_OPTIONS; i++)
        if (strlen(options[i].name) == length &&
            strncmp(options[i].name, name, length) == 0 &&
            among(options[i].commands, ' ', command->name,
                  strlen(command->name)))
            return &options[i];
    return NULL;
}

bool setting_add(Arguments *out, Setting set) {
    if (out->num_settings == MAX_SETTINGS) {
        complain(out, "more than %d times --set", MAX_SETTINGS);
        return false;
    }
    out->set[out->num_settings++] = set;
    return true;
}

static bool setting_parse(Arguments *out, const char *value) {
    const char *equals = strchr(value, '=');
    size_t length = equals ? (size_t)(equals - value) : 0;
    if (length == 0 || length >= MAX_KEY) {
        complain(out, "--set needs KEY=VALUE, not '%s'", value);
        return false;
    }
    char *key = out->key[out->num_settings];
    if (!setting_add(out, (Setting){key, equals + 1}))
        return false;
    memcpy(key, value, length);
    key[length] = 0;
    return true;
}

static bool count_read(Count *count, const char *text, int64_t least) {
    char *end;
    errno = 0;
    count->value = strtoll(text, &end, 10);
    count->given = *text >= '0' && *text <= '9' && *end == 0 && errno == 0 &&
                   count->value >= least;
    return count->given;
}

static bool count_set(Arguments *out, const Option *o, const char *value) {
    Count *count = (Count *)((char *)out + o->at);
    if (!count_read(count, value, o->kind == POSITIVE))
        complain(out, "--%s needs a number%s, not '%s'", o->name,
                 o->kind == POSITIVE ? " from 1" : "", value);
    return count->given;
}

static bool line_set(Arguments *out, const Option *o, const char *value) {
    LineOf *line = (LineOf *)((char *)out + o->at);
    const char *colon = strrchr(value, ':');
    line->file = colon != NULL ? value : NULL;
    if (!count_read(&line->number, colon != NULL ? colon + 1 : value, 1))
        complain(out, "--%s needs a number from 1, or FILE:N, not '%s'",
                 o->name, value);
    return line->number.given;
}

bool count_within(const Arguments *arguments, const char *name,
                  const Count *count, int least, int most) {
    if (!count->given || (count->value >= least && count->value <= most))
        return true;
    complain(arguments, "--%s needs a number from %d to %d", name, least, most);
    return false;
}

// Reads what stands before a comma or the end; NULL when that is no count of 1
// or more.
static const char *count_end(const char *text, int64_t *count) {
    char *end;
    errno = 0;
    *count = strtoll(text, &end, 10);
    bool good = *text >= '0' && *text <= '9' && errno == 0 && *count >= 1;
    return good && (*end == ',' || *end == 0) ? end : NULL;
}

static bool repeats_last(const Counts *list) {
    for (int i = 0; i < list->count - 1; i++)
        if (list->value[i] == list->value[list->count - 1])
            return true;
    return false;
}

static bool counts_set(Arguments *out, const Option *o, const char *value) {
    Counts *list = (Counts *)((char *)out + o->at);
    list->count = 0;
    for (const char *at = value; at != NULL && list->count < MAX_COUNTS;) {
        at = count_end(at, &list->value[list->count++]);
        if (repeats_last(list))
            break;
        if (at != NULL && *at++ == 0)
            return true;
    }
    complain(out,
             "--%s needs a number from 1, or up to %d different ones as "
             "64,128, not '%s'",
             o->name, MAX_COUNTS, value);
    return false;
}

static bool rate_set(Arguments *out, const Option *o, const char *value) {
    double *rate = (double *)((char *)out + o->at);
    char *end;
    *rate = strtod(value, &end);
    if (*rate >= 1e-30 && *rate <= 1e30 && *end == 0)
        return true;
    complain(out, "--%s needs a rate from 1e-30 to 1e30, not '%s'", o->name,
             value);
    return false;
}

static bool bytes_set(Arguments *out, const Option *o, const char *value) {
    if (bytes_parse(value, (int64_t *)((char *)out + o->at)))
        return true;
    complain(out, "--%s needs a size as 8GiB or 500MB, not '%s'", o->name,
             value);
    return false;
}

static bool pass_add(Arguments *out, const Option *o, const char *value) {
    const Pass *pass = pass_find(value);
    Nearest near = nearest_to(value);
    if (pass && pass->gives == 0) {
        *(uint32_t *)((char *)out + o->at) |= 1u << (pass - standard_passes);
        return true;
    }
    for (const Pass *p = standard_passes; p->name; p++)
        if (p->gives == 0)
            nearest_offer(&near, p->name);
    if (pass)
        complain(out, "--%s=%s: no plan can be made without this pass", o->name,
                 value);
    else if (near.best)
        complain(out, "no pass '%s'; did you mean %s?", value, near.best);
    else
        complain(out, "no pass '%s'; sinter passes lists them", value);
    return false;
}

static bool run_add(Arguments *out, const char *path) {
    if (out->num_metrics == MAX_RUNS) {
        complain(out, "more than %d times --metrics", MAX_RUNS);
        return false;
    }
    out->metrics[out->num_metrics++] = path;
    return true;
}

static bool choice_refused(const Arguments *out, const Option *o,
                           const char *value) {
    if (strchr(o->value, '|'))
        complain(out, "--%s is one of %s, not '%s'", o->name, o->value, value);
    else
        complain(out, "no --%s=%s, only --%s=%s: %s", o->name, value, o->name,
                 o->value, o->what);
    return false;
}

static bool option_set(Arguments *out, const Option *o, const char *value) {
    if (o->kind == SETTING)
        return setting_parse(out, value);
    if (o->kind == COUNT || o->kind == POSITIVE)
        return count_set(out, o, value);
    if (o->kind == POSITIVES)
        return counts_set(out, o, value);
    if (o->kind == LINE)
        return line_set(out, o, value);
    if (o->kind == RATE)
        return rate_set(out, o, value);
    if (o->kind == BYTES)
        return bytes_set(out, o, value);
    if (o->kind == PASS)
        return pass_add(out, o, value);
    if (o->kind == RUNS)
        return run_add(out, value);
    if (o->kind == FLAG) {
        *(bool *)((char *)out + o->at) = true;
        return true;
    }
    if (o->kind == CHOICE && !among(o->value, '|', value, strlen(value)))
        return choice_refused(out, o, value);
    *(const char **)((char *)out + o->at) = value;
    return true;
}

// What a side of a comparison takes is no command that can be run.
static const char *called(const Command *command) {
    return command->run ? command->name : "-a or -b";
}

static bool command_trains(const Command *command) {
    return command->run == train_command;
}

// Leaves an option that only trainers have, and its value, to the trainer.
static bool option_pass(Arguments *out, const Command *command, int count,
                        char **word, int *at) {
    int words = 1;
    if (!command_trains(command) ||
        !trainer_option_is(word[*at], *at + 1 < count, &words))
        return false;
    for (int i = 0; i < words; i++)
        out->passed[out->num_passed++] = word[*at + i];
    *at += words - 1;
    return true;
}

static void option_unknown(const Arguments *out, const Command *command,
                           const char *word, const char *name, size_t length) {
    char text[MAX_KEY] = "";
    memcpy(text, name, length < MAX_KEY ? length : 0);
    Nearest near = nearest_to(text);
    const char *who = called(command);
    bool sets = false;
    for (int i = 0; i < NUM_OPTIONS; i++)
        if (among(options[i].commands, ' ', command->name,
                  strlen(command->name))) {
            nearest_offer(&near, options[i].name);
            sets |= options[i].kind == SETTING;
        }
    if (command_trains(command))
        trainer_options_offer(&near);
    if (near.best)
        complain(out, "%s has no option '%s'; did you mean --%s?", who, word,
                 near.best);
    else
        complain(out, "%s has no option '%s'; see sinter %s --help%s", who,
                 word, command->run ? command->name : "compare",
                 sets ? ", and --set KEY=VALUE for a key of the recipe" : "");
}

// Some options have a short form, two of them that of C compilers; their other
// levels are there to be told which exist.
static const char *long_form(const char *word) {
    static const struct {
        const char *brief, *full;
    } forms[] = {{"-o", "--out"},      {"-a", "--a"},
                 {"-b", "--b"},        {"-O0", "--level=0"},
                 {"-O1", "--level=1"}, {"-O2", "--level=2"},
                 {"-O3", "--level=3"}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(word, forms[i].brief) == 0)
            return forms[i].full;
    return word;
}

// Takes the option in word[*at], and its value from the next word if it is not
// in this one.
static bool option_parse(Arguments *out, const Command *command, int count,
                         char **word, int *at) {
    const char *text = long_form(word[*at]);
    const char *name = text + (text[1] == '-' ? 2 : 1);
    size_t length = strcspn(name, "=");
    const Option *o = option_find(command, name, length);
    if (!o && option_pass(out, command, count, word, at))
        return true;
    if (!o) {
        option_unknown(out, command, word[*at], name, length);
        return false;
    }
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    if (o->kind != FLAG && !value && *at + 1 < count)
        value = word[++*at];
    if ((o->kind == FLAG) != (value == NULL)) {
        complain(out, "--%s %s", o->name,
                 value ? "takes no value" : "needs a value");
        return false;
    }
    return option_set(out, o, value);
}

const char *diagnostics_wanted(int count, char **word) {
    static const char option[] = "--diagnostics";
    const size_t length = sizeof option - 1;
    for (int i = 0; i < count; i++) {
        const char *value = word[i] + length;
        if (strncmp(word[i], option, length) != 0)
            continue;
        if (*value == 0 && i + 1 < count)
            value = word[i + 1];
        if (strcmp(value + (*value == '='), "json") == 0)
            return "json";
    }
    return NULL;
}

bool arguments_parse(Arguments *out, const Command *command, int count,
                     char **word) {
    const char *wanted = diagnostics_wanted(count, word);
    *out = (Arguments){.operand = word,
                       .passed = out->passed,
                       .diagnostics = wanted ? wanted : out->diagnostics};
    int given = command->num_operands;
    int least = given == AT_LEAST_ONE ? 1 : given == AT_MOST_TWO ? 0 : given;
    int most = given == AT_LEAST_ONE ? count : given == AT_MOST_TWO ? 2 : given;
    for (int i = 0; i < count; i++) {
        if (command_trains(command) && strcmp(word[i], "--") == 0) {
            while (++i < count)
                out->passed[out->num_passed++] = word[i];
        } else if (word[i][0] == '-' && word[i][1]) {
            if (!option_parse(out, command, count, word, &i))
                return false;
        } else if (out->num_operands < most) {
            out->operand[out->num_operands++] = word[i];
        } else {
            complain(out, "%s: unexpected '%s'", called(command), word[i]);
            return false;
        }
    }
    if (out->num_operands < least && !out->help) {
        complain(out, "%s needs %s; usage: sinter %s [option...] %s",
                 command->name, command->operands, command->name,
                 command->operands);
        return false;
    }
    return true;
}

void arguments_help(Text *t, const Command *command) {
    enum { COLUMN = 28 };
    text_add(t, "usage: sinter %s [option...] %s\n\n%s\n\n", command->name,
             command->operands, command->what);
    for (int i = 0; i < NUM_OPTIONS; i++) {
        const Option *o = &options[i];
        if (!among(o->commands, ' ', command->name, strlen(command->name)))
            continue;
        size_t start = t->length;
        text_add(t, "  --%s%s%s", o->name, o->value ? "=" : "",
                 o->value ? o->value : "");
        int wide = (int)(t->length - start);
        text_add(t, "%*s%s\n", wide < COLUMN ? COLUMN - wide : 2, "", o->what);
    }
}
