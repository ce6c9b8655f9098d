// Launch: what a launch is for, in the words of the model file.  A trainer
// carries a row for each, so that it can say which lines a kernel comes from.

#include "codegen/emit.h"
#include "ir/reach.h"

#include <string.h>

enum { MOST_LINES = 12 };

// Lines of one file in ascending order, without repetition; more than there is
// room for are counted.
typedef struct {
    const char *file;
    int line[MOST_LINES], count, more;
} Lines;

static void line_add(Lines *l, int line) {
    int at = l->count;
    for (int i = 0; i < l->count; i++)
        if (l->line[i] == line)
            return;
    if (l->count == MOST_LINES) {
        l->more++;
        return;
    }
    for (; at > 0 && l->line[at - 1] > line; at--)
        l->line[at] = l->line[at - 1];
    l->line[at] = line;
    l->count++;
}

static void lines_print(Text *t, const Lines *l) {
    text_add(t, "%s%s:", t->length > 0 ? " " : "",
             file_text(t->arena, l->file));
    for (int i = 0; i < l->count; i++)
        text_add(t, "%s%d", i ? "," : "", l->line[i]);
    if (l->more > 0)
        text_add(t, ",...");
}

// The first file among nodes from n on that `done` does not have yet.
static const char *next_file(const Graph *g, const Group *group,
                             const char *const *done, int count) {
    for (NodeId n = group->first; n <= group->last; n++) {
        const char *file = g->node[n].from.file;
        bool seen = file == NULL;
        for (int i = 0; i < count && !seen; i++)
            seen = strcmp(done[i], file) == 0;
        if (!seen)
            return file;
    }
    return NULL;
}

const char *group_lines(const Graph *g, Arena *a, const Group *group) {
    enum { MOST_FILES = 4 };
    const char *done[MOST_FILES];
    Text t = text_new(a);
    for (int files = 0; files < MOST_FILES; files++) {
        Lines l = {.file = next_file(g, group, done, files)};
        if (l.file == NULL)
            break;
        for (NodeId n = group->first; n <= group->last; n++) {
            const Origin *from = &g->node[n].from;
            if (from->file != NULL && strcmp(from->file, l.file) == 0)
                line_add(&l, from->line);
        }
        lines_print(&t, &l);
        done[files] = l.file;
    }
    return text_string(&t);
}

// The layer of what it stores, else of anything in it.  What updates many
// tensors is of no layer.
static const char *group_path(const Graph *g, const Group *group) {
    const char *path = NULL;
    if (group_has_parts(group->kind))
        return "";
    for (int i = group->num_outputs - 1; i >= 0 && path == NULL; i--)
        path = g->node[group->output[i]].from.path;
    for (NodeId n = group->first; n <= group->last && path == NULL; n++)
        path = g->node[n].from.path;
    return path != NULL ? path : "";
}

// Launches that make of what was loaded what the model sees: up to the first
// that reads images, if that is a kernel.
static int count_augmenting(const Graph *g, const Kernel *kernel, int count) {
    NodeId image = graph_find(g, "image");
    for (int k = 0; k < count && image != NO_NODE; k++)
        for (int i = 0; i < kernel[k].group->num_inputs; i++)
            if (kernel[k].group->input[i] == image)
                return kernel[k].text != NULL ? k + 1 : 0;
    return 0;
}

static void launch_write(Text *t, const Graph *g, const Kernel *k,
                         bool augments) {
    const Group *group = k->group;
    const char *path = group_path(g, group);
    bool backward = *path != '\0' && group_backward(g, group);
    text_add(t,
             k->text != NULL ? "    {.kernel = %s_id, .call = -1"
                             : "    {.kernel = -1, .call = %s",
             k->name);
    text_add(t, ",\n     .path = \"%s%s\"", path, backward ? ", backward" : "");
    text_add(t, ",\n     .lines = \"%s\"%s},\n",
             group_lines(g, t->arena, group),
             augments ? ", .augments = true" : "");
}

void launches_write(Text *t, const char *name, const Graph *host,
                    const Graph *device, const Kernel *kernel, int count) {
    const Graph *const graph[2] = {host, device};
    int augmenting = count_augmenting(host, kernel, count);
    if (count == 0)
        return;
    text_add(t,
             "\n// What each launch is for, and the bytes that it reads and "
             "writes on the host\n// and on CUDA.\n"
             "static const RtLaunch %s_launches[] = {\n",
             name);
    for (int i = 0; i < count; i++)
        launch_write(t, host, &kernel[i], i < augmenting);
    text_add(t, "};\n\nstatic const int64_t %s_bytes[2][%d] = {\n", name,
             count);
    for (int d = 0; d < 2; d++) {
        text_add(t, "    {");
        for (int i = 0; i < count; i++)
            text_add(t, "%s%lld",
                     i == 0  ? ""
                     : i % 6 ? ", "
                             : ",\n     ",
                     (long long)group_bytes(graph[d], kernel[i].group));
        text_add(t, "},\n");
    }
    text_add(t, "};\n");
}
