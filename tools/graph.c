// Graphs from files: reads an operand, and makes the options for passes on it.
// A line --- ends the graph; in a golden test the expected result follows it.
#include "base/exits.h"
#include "base/source.h"
#include "codegen/codegen.h"
#include "passes/plan/group.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

bool text_is_graph(const char *text) {
    text += strspn(text, " \t\r\n");
    while (*text == '#') {
        text += strcspn(text, "\n");
        text += strspn(text, " \t\r\n");
    }
    return strncmp(text, "graph ", 6) == 0;
}

static size_t graph_length(const Source *s) {
    const char *rule = strstr(s->text, "\n---\n");
    return rule ? (size_t)(rule + 1 - s->text) : s->length;
}

// The location of a reader's message, which begins with the line, as "12:
// expected
// ...".
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
        fprintf(stderr, "%s: error: %s%s\n", text_escaped(a, s->path),
                read ? "line " : "", text_escaped(a, read ? read : broken));
        return;
    }
    Diagnostics diags = diag_new(a);
    char *message = NULL;
    Span at = read ? line_span(s, strtol(read, &message, 10)) : (Span){0};
    diag_add(&diags, DIAG_ERROR, "", at, "%s", read ? message + 2 : broken);
    diagnostics_print(a, arguments, &diags);
}

Graph *graph_load(Arena *a, const Arguments *arguments, int *status) {
    const char *path = arguments->operand[arguments->num_operands - 1];
    const char *error = NULL;
    Source *s = source_read(a, path, MAX_TEXT, &error);
    if (!s) {
        file_report(a, arguments, path, error);
        *status = EXIT_IO;
        return NULL;
    }
    *status = EXIT_MODEL;
    Graph *g = graph_read(a, s->text, graph_length(s), &error);
    if (!g && !text_is_graph(s->text))
        error = arena_format(a,
                             "%s: the file is no graph; sinter show graph "
                             "FILE.net prints that of a model",
                             error);
    if (!g) {
        graph_report(a, arguments, s, error, NULL);
        return NULL;
    }
    const char *broken = graph_verify(g, a);
    if (!broken)
        broken = groups_verify(g, a);
    if (broken) {
        graph_report(a, arguments, s, NULL, broken);
        return NULL;
    }
    return g;
}

PassOptions graph_options(const Arguments *arguments) {
    PassOptions o = {.device = arguments->target ? arguments->target : "host",
                     .act = F32,
                     .rematerialize = true,
                     .memory = arguments->memory,
                     .multiprocessors = arguments->multiprocessors,
                     .time_model = arguments->time_model,
                     .level = 1,
                     .reuse = true,
                     .deep_verify = true};
    if (arguments->level)
        o.level = arguments->level[0] - '0';
    if (arguments->act)
        dtype_find(arguments->act, strlen(arguments->act), &o.act);
    o.time_model.act = o.act;
    if (arguments->rewrite_limit.given)
        o.rewrite_limit = &arguments->rewrite_limit.value;
    return o;
}

void kernels_add(Arena *a, Text *t, const Graph *g, bool ir) {
    int number = 0;
    const GraphPlan *plan = graph_plan(g, false, a);
    Kernel *kernel = codegen_kernels(plan, plan, a, &number);
    for (int i = 0; i < plan->num_groups; i++) {
        if (kernel[i].text && ir)
            codegen_kernel_ir(t, plan, plan, i, kernel[i].name);
        else if (kernel[i].text)
            text_add(t, "%s", kernel[i].text);
    }
}
