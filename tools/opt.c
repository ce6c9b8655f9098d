// sinter opt: graph text in, passes, graph text out.
//
// A line --- ends the graph: what follows it in a golden test is the expected
// result.
#include "base/exits.h"
#include "base/source.h"
#include "codegen/codegen.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 64 << 20 };

static size_t graph_length(const Source *s) {
    const char *rule = strstr(s->text, "\n---\n");
    return rule ? (size_t)(rule + 1 - s->text) : s->length;
}

// The line that a message of the reader begins with, as "12: expected ...".
static Span line_span(const Source *s, long line) {
    if (line < 1 || line > s->num_lines)
        line = s->num_lines;
    size_t length, start = s->line_start[line - 1];
    source_line(s, (int)line, &length);
    return (Span){s, (uint32_t)start, (uint32_t)(start + length)};
}

static void graph_report(Arena *a, const Arguments *arguments, const Source *s,
                         const char *read, const char *broken) {
    if (!wants_json(arguments)) {
        fprintf(stderr, "%s: error: %s%s\n", s->path, read ? "line " : "",
                read ? read : broken);
        return;
    }
    Diagnostics diags = diag_new(a);
    char *message = NULL;
    Span at = read ? line_span(s, strtol(read, &message, 10)) : (Span){0};
    diag_add(&diags, DIAG_ERROR, "", at, "%s", read ? message + 2 : broken);
    diagnostics_print(a, arguments, &diags);
}

// Reads and verifies the graph; NULL and *status when it is not one.
static Graph *graph_load(Arena *a, const Arguments *arguments, int *status) {
    const char *error = NULL, *path = arguments->operand[0];
    Source *s = source_read(a, path, MAX_TEXT, &error);
    if (!s) {
        file_report(a, arguments, path, error);
        *status = EXIT_IO;
        return NULL;
    }
    *status = EXIT_MODEL;
    Graph *g = graph_read(a, s->text, graph_length(s), &error);
    if (!g) {
        graph_report(a, arguments, s, error, NULL);
        return NULL;
    }
    const char *broken = graph_verify(g, a);
    if (broken) {
        graph_report(a, arguments, s, NULL, broken);
        return NULL;
    }
    return g;
}

static PassOptions options_of(const Arguments *arguments) {
    PassOptions o = {.device = arguments->target ? arguments->target : "host",
                     .act = F32,
                     .recompute = true,
                     .memory = arguments->memory,
                     .level = 1,
                     .reuse = true,
                     .deep_verify = true};
    if (arguments->level)
        o.level = arguments->level[0] - '0';
    if (arguments->act)
        dtype_find(arguments->act, strlen(arguments->act), &o.act);
    if (arguments->rewrite_limit.given)
        o.rewrite_limit = &arguments->rewrite_limit.value;
    return o;
}

// The passes named in list, set apart by commas; false when one is unknown.
static bool passes_apply(Arena *a, Graph **g, const PassOptions *o,
                         const Arguments *arguments) {
    const char *list = arguments->run;
    while (*list) {
        size_t length = strcspn(list, ",");
        const char *name = arena_string(a, list, length);
        const Pass *pass = pass_find(name);
        if (!pass) {
            complain(arguments, "no pass '%s'; see sinter passes", name);
            return false;
        }
        if (pass->needs & ~(*g)->facts) {
            complain(arguments,
                     "pass %s needs what earlier passes leave; see sinter "
                     "passes",
                     name);
            return false;
        }
        if (pass->gives && !(pass->gives & ~(*g)->facts)) {
            complain(arguments,
                     "the graph has what pass %s leaves: a pass that gives a "
                     "fact is not run twice",
                     name);
            return false;
        }
        *g = pass_run(*g, o, pass);
        list += length + (list[length] == ',');
    }
    return true;
}

static int kernels_print(Arena *a, const Arguments *arguments, const Graph *g) {
    if (!(g->facts & PLANNED)) {
        complain(arguments,
                 "--emit=cu needs a graph that pass memory has left");
        return EXIT_USAGE;
    }
    int number = 0, count;
    Kernel *kernel = codegen_kernels(g, g, a, &number, &count);
    for (int i = 0; i < count; i++)
        if (kernel[i].text)
            fputs(kernel[i].text, stdout);
    return EXIT_GOOD;
}

static int graph_transform(Arena *a, const Arguments *arguments) {
    int status;
    Graph *g = graph_load(a, arguments, &status);
    if (!g)
        return status;
    complain_when_full(arguments, g);
    PassOptions o = options_of(arguments);
    if (arguments->run && !passes_apply(a, &g, &o, arguments))
        return EXIT_USAGE;
    if (arguments->emit)
        return kernels_print(a, arguments, g);
    Text t = text_new(a);
    graph_print(&t, g);
    fputs(text_string(&t), stdout);
    return EXIT_GOOD;
}

int opt_command(const Arguments *arguments) {
    Arena *a = arena_new();
    int status = graph_transform(a, arguments);
    arena_free(a);
    return status;
}
