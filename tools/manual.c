// sinter manual: a manual page of each command, from the tables of commands and
// options.
#include "base/exits.h"
#include "runtime/runtime.h"
#include "tools/tools.h"

#include <string.h>

// Writes words of a page.  troff reads a hyphen, a backslash, and a point at
// the start of a line.
static void escape(Text *t, const char *s) {
    for (bool first = true; *s; first = *s++ == '\n')
        if (*s == '\\')
            text_add(t, "\\e");
        else
            text_add(t, "%s%c",
                     *s == '-'                            ? "\\"
                     : first && (*s == '.' || *s == '\'') ? "\\&"
                                                          : "",
                     *s);
}

// An entry: a term, and the text below it.
static void entry_write(Text *t, const char *term, const char *text) {
    text_add(t, ".TP\n.B ");
    escape(t, term);
    text_add(t, "\n");
    escape(t, text);
    text_add(t, "\n");
}

static void option_write(void *to, const Option *o) {
    char form[OPTION_ROOM];
    option_form(o, '=', form);
    entry_write(to, form, o->help);
}

static void head_write(Text *t, const char *name, const char *what,
                       const char *usage) {
    text_add(t, ".TH %s 1 \"\" \"sinter " SINTER_VERSION "\"\n.SH NAME\n",
             name);
    escape(t, name);
    text_add(t, " \\- ");
    escape(t, what);
    text_add(t, "\n.SH SYNOPSIS\n");
    escape(t, usage);
    text_add(t, "\n");
}

static void command_write(Text *t, const Command *c) {
    Arena *a = t->arena;
    head_write(
        t, arena_format(a, "sinter-%s", c->name), c->what,
        arena_format(a, "sinter %s [option...] %s", c->name, c->operands));
    if (c->run == show_command) {
        Text stages = text_new(a);
        show_stages(&stages);
        text_add(t, ".SH STAGES\n.nf\n");
        escape(t, text_string(&stages));
        text_add(t, ".fi\n");
    }
    text_add(t, ".SH OPTIONS\n");
    options_each(c, option_write, t);
    text_add(t, ".SH SEE ALSO\n.BR sinter (1)\n");
}

static void sinter_write(Text *t) {
    head_write(t, "sinter", "a compiler for training", "sinter COMMAND ...");
    text_add(t, "A model file becomes a trainer.\n.SH COMMANDS\n");
    for (const Command *c = commands; c->name; c++)
        entry_write(t, arena_format(t->arena, "sinter-%s(1)", c->name),
                    c->what);
}

// Writes a page; an exit status.
static int page_save(Arena *a, const Arguments *arguments, const char *name,
                     const Command *c) {
    Text t = text_new(a);
    if (c)
        command_write(&t, c);
    else
        sinter_write(&t);
    return text_write(
        arguments, arena_format(a, "%s/%s.1", arguments->operand[0], name), &t);
}

int manual_command(Arena *a, const Arguments *arguments) {
    int status = folder_make(arguments, arguments->operand[0]);
    if (status == EXIT_GOOD)
        status = page_save(a, arguments, "sinter", NULL);
    for (const Command *c = commands; c->name && status == EXIT_GOOD; c++)
        status =
            page_save(a, arguments, arena_format(a, "sinter-%s", c->name), c);
    return status;
}
