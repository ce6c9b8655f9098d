// Model: loads a model file for a command, and prints its diagnostics.
#include "base/exits.h"
#include "base/source.h"
#include "tools/tools.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

const char *target_of(const Arguments *arguments) {
    return arguments->target ? arguments->target : "cuda";
}

PassOptions plan_options(const Program *p, const Arguments *arguments,
                         const char *device) {
    PassOptions o = pass_options(&p->recipe, device);
    if (arguments->level)
        o.level = arguments->level[0] - '0';
    if (arguments->rewrite_limit.given)
        o.rewrite_limit = &arguments->rewrite_limit.value;
    o.left_out = arguments->without;
    o.no_updates = arguments->no_updates;
    o.memory = arguments->memory;
    o.multiprocessors = arguments->multiprocessors;
    o.time_model = arguments->time_model;
    o.time_model.act = o.act;
    if (o.memory > 0 && p->recipe.recompute == RECOMPUTE_FOR_LIMIT)
        o.rematerialize = true;
    return o;
}

char *stem_of(Arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t length = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    return arena_string(a, base, length);
}

// Whether the file can be opened: a mistyped name is an error of the command
// line, not of a model.
static bool file_opens(Arena *a, const Arguments *arguments, const char *path) {
    if (access(path, R_OK) == 0)
        return true;
    file_report(a, arguments, path, strerror(errno));
    return false;
}

bool graph_refused(const Arguments *arguments, const char *path) {
    Arena *a = arena_new();
    const char *error = NULL;
    const Source *s = source_read(a, path, MAX_TEXT, &error);
    bool graph = s && text_is_graph(s->text);
    if (graph)
        complain(arguments,
                 "%s is a graph, and no model: sinter show reads it with "
                 "--from=STAGE, the stage that printed it, and sinter opt",
                 path);
    arena_free(a);
    return graph;
}

Program *model_load(Arena *a, const Arguments *arguments, Diagnostics *diags,
                    int *status) {
    const char *path = arguments->operand[arguments->num_operands - 1];
    *status = EXIT_IO;
    if (!file_opens(a, arguments, path))
        return NULL;
    *status = EXIT_MODEL;
    if (graph_refused(arguments, path))
        return NULL;
    Program *p =
        frontend_load(a, path, arguments->set, arguments->num_settings, diags);
    diagnostics_print(a, arguments, diags);
    int count = 0;
    const Step *step = p ? program_steps(p, a, &count) : NULL;
    for (int i = 0; i < count; i++)
        complain_when_full(arguments, step[i].graph);
    return p;
}
