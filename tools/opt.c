// sinter opt: reads a graph, runs passes, prints the graph or its kernels; or
// reads kernels, runs passes on them, and prints them.
#include "base/exits.h"
#include "base/source.h"
#include "codegen/codegen.h"
#include "tools/device.h"
#include "tools/tools.h"

#include <string.h>

// Runs the passes of a comma-separated list; false, after a message, if one is
// unknown.
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
                     "pass %s must run after an earlier pass; see sinter "
                     "passes for the order",
                     name);
            return false;
        }
        if (pass->gives && !(pass->gives & ~(*g)->facts)) {
            complain(arguments, "pass %s has already run on this graph", name);
            return false;
        }
        *g = pass_run(*g, o, pass);
        list += length + (list[length] == ',');
    }
    return true;
}

static int kernels_print(Arena *a, const Arguments *arguments, const Graph *g) {
    if (!(g->facts & PLANNED)) {
        complain(arguments, "--emit=%s needs a graph after pass memory",
                 arguments->emit);
        return EXIT_USAGE;
    }
    Text t = text_new(a);
    kernels_add(a, &t, g, strcmp(arguments->emit, "kernel-ir") == 0);
    lines_print(&t);
    return EXIT_GOOD;
}

static bool is_kernel_ir(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".kir") == 0;
}

static int kernels_optimize(Arena *a, const Arguments *arguments) {
    const char *error = NULL;
    const Source *s = source_read(a, arguments->operand[0], MAX_TEXT, &error);
    if (!s) {
        file_report(a, arguments, arguments->operand[0], error);
        return EXIT_IO;
    }
    Text t = text_new(a);
    error = codegen_optimize(a, &t, s->text,
                             arguments->run ? arguments->run : "");
    if (error) {
        complain(arguments, "%s: %s", arguments->operand[0], error);
        return EXIT_MODEL;
    }
    lines_print(&t);
    return EXIT_GOOD;
}

int opt_command(Arena *a, const Arguments *arguments) {
    int status;
    Arguments own = *arguments;
    if (is_kernel_ir(arguments->operand[0]))
        return kernels_optimize(a, arguments);
    if (!device_plan(a, &own, &status))
        return status;
    Graph *g = graph_load(a, arguments, &status);
    if (!g)
        return status;
    complain_when_full(arguments, g);
    PassOptions o = graph_options(&own);
    if (arguments->run && !passes_apply(a, &g, &o, arguments))
        return EXIT_USAGE;
    if (arguments->emit)
        return kernels_print(a, arguments, g);
    Text t = text_new(a);
    graph_print(&t, g);
    lines_print(&t);
    return EXIT_GOOD;
}
