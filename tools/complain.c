// Prints diagnostics, and errors that are not in a file, on stderr as text or
// JSON.
#define _POSIX_C_SOURCE 200809L // isatty

#include "base/exits.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Colours are for terminals, unless NO_COLOR is set.
static bool wants_color(int file) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(file) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

bool wants_json(const Arguments *arguments) {
    return arguments->diagnostics &&
           strcmp(arguments->diagnostics, "json") == 0;
}

static bool line_has_begun;

void line_begin(const char *text) {
    fputs(text, stderr);
    line_has_begun = true;
}

void line_end(void) {
    if (line_has_begun)
        fputc('\n', stderr);
    line_has_begun = false;
}

void diagnostics_print(Arena *a, const Arguments *arguments,
                       Diagnostics *diags) {
    Text t = text_new(a);
    diags->color = wants_color(STDERR_FILENO);
    if (wants_json(arguments))
        diag_json(&t, diags);
    else
        diag_print(&t, diags);
    line_end();
    fputs(text_string(&t), stderr);
}

void complain(const Arguments *arguments, const char *format, ...) {
    Arena *a = arena_new();
    Diagnostics diags = diag_new(a);
    va_list list;
    va_start(list, format);
    Diagnostic *d = diag_addv(&diags, DIAG_ERROR, "", (Span){0}, format, list);
    va_end(list);
    if (wants_json(arguments))
        diagnostics_print(a, arguments, &diags);
    else {
        line_end();
        fprintf(stderr, "sinter: %s\n", text_escaped(a, d->message));
    }
    arena_free(a);
}

void file_report(Arena *a, const Arguments *arguments, const char *path,
                 const char *why) {
    if (!wants_json(arguments)) {
        complain(arguments, "%s: %s", path, why);
        return;
    }
    Diagnostics diags = diag_new(a);
    diag_add(&diags, DIAG_ERROR, "E0105", (Span){0}, "cannot read %s: %s", path,
             why);
    diagnostics_print(a, arguments, &diags);
}

// A graph has the name of its file, not its path.
static void report_full(const Graph *g) {
    const Arguments arguments = {.diagnostics = "json"};
    Arena *a = arena_new();
    Diagnostics diags = diag_new(a);
    Diagnostic *d = diag_add(&diags, DIAG_ERROR, "E0318", (Span){0},
                             "the model has more than %lu operations",
                             (unsigned long)g->max_nodes);
    if (g->origin.file)
        diag_note(d, "%s:%d adds the last of them", g->origin.file,
                  g->origin.line);
    diagnostics_print(a, &arguments, &diags);
    exit(EXIT_MODEL);
}

void complain_when_full(const Arguments *arguments, Graph *g) {
    if (wants_json(arguments))
        g->on_full = report_full;
}

void complain_uncounted(const Arguments *arguments, const Program *p) {
    complain(arguments,
             "the cost of a step of %d batches overflows a counter: lower "
             "`accumulate`",
             p->recipe.accumulate);
}
