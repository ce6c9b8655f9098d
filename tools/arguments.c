// Arguments: the command line of a command, read with the table of options.
#include "runtime/runtime.h"
#include "tools/tools.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// ---- kinds of values ----
//
// A kind without `expects` reports its own mistakes.

bool setting_add(Arguments *out, Setting set) {
    if (out->num_settings == MAX_SETTINGS) {
        complain(out, "more than %d times --set", MAX_SETTINGS);
        return false;
    }
    out->set[out->num_settings++] = set;
    return true;
}

static bool setting_read(const Option *o, const char *text, void *to) {
    Arguments *out = to;
    size_t length = strcspn(text, "=");
    if (length == 0 || length >= MAX_KEY || text[length] == 0) {
        complain(out, "--%s needs KEY=VALUE, not '%s'", o->name, text);
        return false;
    }
    char *key = out->key[out->num_settings];
    if (!setting_add(out, (Setting){key, text + length + 1}))
        return false;
    memcpy(key, text, length);
    key[length] = 0;
    return true;
}

static bool count_read(const Option *o, const char *text, void *to) {
    Count *count = OPTION_FIELD(o, to);
    count->given = option_whole(o, text, &count->value);
    return count->given;
}

static bool line_read(const Option *o, const char *text, void *to) {
    LineOf *line = OPTION_FIELD(o, to);
    const char *colon = strrchr(text, ':');
    line->file = colon != NULL ? text : NULL;
    line->number.given = option_whole(o, colon != NULL ? colon + 1 : text,
                                      &line->number.value) &&
                         line->number.value >= 1;
    return line->number.given;
}

// Reads a count of 1 or more that ends at a comma or the end; NULL if it is
// none.
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

static bool counts_read(const Option *o, const char *text, void *to) {
    Counts *list = OPTION_FIELD(o, to);
    list->count = 0;
    for (const char *at = text; at != NULL && list->count < MAX_COUNTS;) {
        at = count_end(at, &list->value[list->count++]);
        if (repeats_last(list))
            return false;
        if (at != NULL && *at++ == 0)
            return true;
    }
    return false;
}

static bool rate_read(const Option *o, const char *text, void *to) {
    double *rate = OPTION_FIELD(o, to);
    char *end;
    *rate = strtod(text, &end);
    return *rate >= 1e-30 && *rate <= 1e30 && *end == 0;
}

static bool bytes_read(const Option *o, const char *text, void *to) {
    return bytes_parse(text, OPTION_FIELD(o, to));
}

static bool link_read(const Option *o, const char *text, void *to) {
    return rate_parse(text, OPTION_FIELD(o, to));
}

static bool seconds_read(const Option *o, const char *text, void *to) {
    return time_parse(text, OPTION_FIELD(o, to));
}

static bool pass_read(const Option *o, const char *text, void *to) {
    const Pass *pass = pass_find(text);
    Nearest near = nearest_to(text);
    if (pass && pass->gives == 0) {
        *(uint32_t *)OPTION_FIELD(o, to) |= 1u << (pass - standard_passes);
        return true;
    }
    for (const Pass *p = standard_passes; p->name; p++)
        if (p->gives == 0)
            nearest_offer(&near, p->name);
    if (pass)
        complain(to, "--%s=%s: no plan can be made without this pass", o->name,
                 text);
    else if (near.best)
        complain(to, "no pass '%s'; did you mean %s?", text, near.best);
    else
        complain(to, "no pass '%s'; sinter passes lists them", text);
    return false;
}

static bool run_read(const Option *o, const char *text, void *to) {
    Arguments *out = to;
    if (out->num_metrics == MAX_RUNS) {
        complain(out, "more than %d times --%s", MAX_RUNS, o->name);
        return false;
    }
    out->metrics[out->num_metrics++] = text;
    return true;
}

static bool choice_read(const Option *o, const char *text, void *to) {
    if (option_among(o->value, '|', text))
        return option_text.read(o, text, to);
    if (strchr(o->value, '|'))
        complain(to, "--%s is one of %s, not '%s'", o->name, o->value, text);
    else
        complain(to, "no --%s=%s, only --%s=%s: %s", o->name, text, o->name,
                 o->value, o->help);
    return false;
}

static const OptionKind
    option_bytes = {"a size as 8GiB or 500MB", bytes_read},
    option_count = {"a number", count_read},
    option_counts = {"a number from 1, or up to 32 different ones as 64,128",
                     counts_read},
    option_link = {"a rate as 400Gb (bits per second) or 50GB (bytes)",
                   link_read},
    option_line = {"a number from 1, or FILE:N", line_read},
    option_pass = {NULL, pass_read},
    option_rate = {"a rate from 1e-30 to 1e30", rate_read},
    option_run = {NULL, run_read},
    option_seconds = {"a time as 14us, from 1ns to 3600s", seconds_read},
    option_setting = {NULL, setting_read};
const OptionKind option_choice = {NULL, choice_read};

#define OPTION(field, letter, name, value, kind, commands, help)               \
    {                                                                          \
        name, value, &option_##kind, offsetof(Arguments, field),               \
        0,    0,     letter,         commands,                                 \
        help},
#define NUMBER(field, name, value, least, most, commands, help)                \
    {name, value,    &option_count, offsetof(Arguments, field), least, most,   \
     0,    commands, help},
const Option tool_options[] = {
#include "tools/options.def"
    {.name = NULL}};

// ---- words ----

// A variant of compare is no command that can be run.
static const char *called(const Command *command) {
    return command->run ? command->name : "-a or -b";
}

static bool command_trains(const Command *command) {
    return command->run == train_command;
}

static bool command_has(const Command *command, const char *name) {
    for (const Option *o = tool_options; o->name; o++)
        if (strcmp(o->name, name) == 0 && option_suits(o, command->name))
            return true;
    return false;
}

// Leaves an option that only trainers have, and its value, to the trainer.
static bool option_pass_on(Arguments *out, OptionReader *r) {
    OptionReader trainer = *r;
    trainer.table = rt_options;
    trainer.command = NULL;
    OptionStep step = option_step(&trainer);
    if (step == OPTION_UNKNOWN || step == OPTION_OPERAND)
        return false;
    while (r->count > trainer.count) {
        out->passed[out->num_passed++] = *r->word++;
        r->count--;
    }
    return true;
}

// The same for a letter, such as -o, which the reader has passed.
static bool letter_pass_on(Arguments *out, OptionReader *r) {
    OptionReader before = *r;
    before.word--;
    before.count++;
    if (!option_pass_on(out, &before))
        return false;
    *r = before;
    return true;
}

// The setting that an option is taken for: a key of the recipe, or the rate of
// its optimizer; NULL: none.
static const char *setting_of(const Command *command, const char *name) {
    const char *key = NULL;
    if (!command_has(command, "set"))
        return NULL;
    for (int i = 0; (key = frontend_key(i)) != NULL; i++)
        if (strcmp(key, name) == 0)
            return key;
    return strcmp(name, "lr") == 0 ? "optimizer.lr" : NULL;
}

static bool option_unknown(const Arguments *out, const Command *command,
                           const char *word) {
    char name[OPTION_ROOM];
    option_name(word, name);
    const char *setting = setting_of(command, name), *value = strchr(word, '=');
    if (setting != NULL) {
        complain(out, "%s has no option '%s'; use --set %s%s", called(command),
                 word, setting, value != NULL ? value : "=VALUE");
        return false;
    }
    Nearest near = nearest_to(name);
    options_offer(tool_options, command->name, &near);
    if (command_trains(command))
        options_offer(rt_options, NULL, &near);
    if (near.best)
        complain(out, "%s has no option '%s'; did you mean --%s?",
                 called(command), word, near.best);
    else
        complain(out, "%s has no option '%s'; see sinter %s --help%s",
                 called(command), word,
                 command->run ? command->name : "compare",
                 command_has(command, "set")
                     ? ", and --set KEY=VALUE for a key of the recipe"
                     : "");
    return false;
}

// Whether the trainer is to predict for the paths that follow.
static bool is_predicting(const Arguments *out) {
    static const char option[] = "--predict";
    for (int i = 0; i < out->num_passed; i++) {
        const char *word = out->passed[i];
        size_t length = strcspn(word, "=");
        if (length == sizeof option - 1 && memcmp(word, option, length) == 0)
            return true;
    }
    return false;
}

static bool operand_take(Arguments *out, const Command *command,
                         OptionReader *r) {
    bool passes =
        command_trains(command) || strcmp(command->name, "complete") == 0;
    if (passes && strcmp(r->value, "--") == 0) {
        for (; r->count > 0; r->count--)
            out->passed[out->num_passed++] = *r->word++;
        return true;
    }
    if (r->value[0] == '-' && r->value[1])
        return (command_trains(command) && letter_pass_on(out, r)) ||
               option_unknown(out, command, r->value);
    if (out->num_operands < command->most) {
        out->operand[out->num_operands++] = (char *)r->value;
        return true;
    }
    if (command_trains(command) && is_predicting(out)) {
        out->passed[out->num_passed++] = (char *)r->value;
        return true;
    }
    complain(out, "%s: unexpected '%s'", called(command), r->value);
    return false;
}

static bool value_take(Arguments *out, const OptionReader *r) {
    const Option *o = r->option;
    if (o->kind->read(o, r->value, out))
        return true;
    if (o->kind->expects == NULL)
        return false;
    char expected[OPTION_ROOM];
    option_expected(o, expected);
    complain(out, "--%s needs %s, not '%s'", o->name, expected, r->value);
    return false;
}

static bool word_take(Arguments *out, const Command *command, OptionReader *r,
                      OptionStep step) {
    switch (step) {
    case OPTION_TAKEN:
        return value_take(out, r);
    case OPTION_OPERAND:
        return operand_take(out, command, r);
    case OPTION_UNKNOWN:
        return (command_trains(command) && option_pass_on(out, r)) ||
               option_unknown(out, command, r->word[0]);
    default:
        complain(out, "--%s %s", r->option->name,
                 step == OPTION_TAKES_NONE ? "takes no value"
                                           : "needs a value");
        return false;
    }
}

const char *diagnostics_format(int count, char **word) {
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
    const char *wanted = diagnostics_format(count, word);
    *out = (Arguments){.operand = word,
                       .passed = out->passed,
                       .diagnostics = wanted ? wanted : out->diagnostics};
    OptionReader r = {.table = tool_options,
                      .command = command->name,
                      .word = word,
                      .count = count};
    for (OptionStep step; (step = option_step(&r)) != OPTION_END;)
        if (!word_take(out, command, &r, step))
            return false;
    if (out->num_operands < command->least && !out->help) {
        complain(out, "%s needs %s; usage: sinter %s [option...] %s",
                 command->name, command->operands, command->name,
                 command->operands);
        return false;
    }
    return true;
}

// ---- help ----

void options_each(const Command *command,
                  void (*call)(void *to, const Option *o), void *to) {
    for (const Option *o = tool_options; o->name; o++)
        if (option_suits(o, command->name))
            call(to, o);
    for (const Option *o = rt_options; command_trains(command) && o->name; o++)
        if (!command_has(command, o->name))
            call(to, o);
}

static void options_list(Text *t, const Option *table, const char *command) {
    enum { COLUMN = 28 };
    char form[OPTION_ROOM];
    for (const Option *o = table; o->name; o++) {
        if (!option_suits(o, command))
            continue;
        option_form(o, '=', form);
        int wide = (int)strlen(form) + 2;
        text_add(t, "  %s%*s%s\n", form, wide < COLUMN ? COLUMN - wide : 2, "",
                 o->help);
    }
}

void arguments_help(Text *t, const Command *command) {
    text_add(t, "usage: sinter %s [option...] %s\n\n%s\n\n", command->name,
             command->operands, command->what);
    options_list(t, tool_options, command->name);
    if (!command_trains(command))
        return;
    text_add(t, "\nOptions of the trainer, also in one word as --data=DIR; all "
                "words after -- are its own:\n\n");
    options_list(t, rt_options, NULL);
}
