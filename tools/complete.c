// sinter complete: the words that a shell offers for the last one, from the
// tables of commands and options.  The shells' files in tools/completions run
// it.
#include "base/exits.h"
#include "tools/tools.h"

#include <string.h>

typedef struct {
    Text text;
    const char *start;  // of the word
    const char *option; // whose value it is; NULL: of none
    int before;         // length of --option= in the same word
} Completion;

// Adds a word, and a sentence for shells that show one.
static void offer(Completion *c, const char *word, int length, const char *sign,
                  const char *what) {
    const char *start = c->start + c->before;
    if (strncmp(word, start, strlen(start)) == 0)
        text_add(&c->text, "%.*s%.*s%s\t%s\n", c->before, c->start, length,
                 word, sign, what);
}

static void option_offer(void *to, const Option *o) {
    Completion *c = to;
    char form[OPTION_ROOM];
    if (c->option == NULL) {
        option_form(o, '=', form);
        bool signs = o->value != NULL && o->value[0] != '[';
        offer(c, form, (int)strlen(o->name) + 2, signs ? "=" : "", o->help);
    } else if (strcmp(c->option, o->name) == 0 && o->kind == &option_choice) {
        for (const char *at = o->value; *at; at += strspn(at, "|")) {
            int length = (int)strcspn(at, "|");
            offer(c, at, length, "", "");
            at += length;
        }
    }
}

static void command_offer(Completion *c, const Command *command, int count,
                          char **word) {
    char option[OPTION_ROOM];
    const char *before = word[count - 2], *sign = strchr(c->start, '=');
    if (strcmp(before, "=") == 0 && count > 2) // bash takes words apart
        before = word[count - 3];
    if (c->start[0] == '-' && sign != NULL) {
        before = c->start;
        c->before = (int)(sign + 1 - c->start);
    }
    bool name = c->start[0] == '-' && c->before == 0;
    if (!name && before[0] == '-') {
        option_name(before, option);
        c->option = option;
    }
    if (name || c->option != NULL)
        options_each(command, option_offer, c);
    const char *stage, *what;
    bool first = command->run == show_command && count == 2;
    for (int i = 0; first && (stage = show_stage(i, &what)) != NULL; i++)
        if (what != NULL)
            offer(c, stage, (int)strlen(stage), "", what);
}

int complete_command(Arena *a, const Arguments *arguments) {
    int count = arguments->num_passed;
    char **word = arguments->passed;
    if (count == 0)
        return EXIT_GOOD;
    Completion c = {.text = text_new(a), .start = word[count - 1]};
    if (strcmp(c.start, "=") == 0)
        c.start = "";
    for (const Command *command = commands; command->name; command++)
        if (count == 1)
            offer(&c, command->name, (int)strlen(command->name), "",
                  command->what);
        else if (strcmp(command->name, word[0]) == 0)
            command_offer(&c, command, count, word);
    fputs(text_string(&c.text), stdout);
    return EXIT_GOOD;
}
