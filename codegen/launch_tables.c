// Launch tables: a trainer has a row for each launch, with the layer and the
// lines of the model file that it computes, and the bytes that it accesses.

#include "codegen/emit.h"

enum { MAX_LINES = 12 };

// The layer of its outputs, or else of any of its nodes.  A multi-tensor launch
// has no layer.
static const char *group_path(const Graph *g, const Group *group) {
    const char *path = NULL;
    if (group_is_multi_tensor(group->kind))
        return "";
    for (int i = group->num_outputs - 1; i >= 0 && path == NULL; i--)
        path = g->node[group->output[i]].from.path;
    for (NodeId n = group->first; n <= group->last && path == NULL; n++)
        path = g->node[n].from.path;
    return path != NULL ? path : "";
}

// Counts the launches that prepare the input: up to the first kernel that reads
// images.
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
    bool backward = *path != '\0' && group->backward;
    text_add(t,
             k->text != NULL ? "    {.kernel = %s_id, .call = -1"
                             : "    {.kernel = -1, .call = %s",
             k->name);
    text_add(t, ",\n     .path = \"%s%s\"", path, backward ? ", backward" : "");
    text_add(t, ",\n     .lines = \"%s\"%s},\n",
             group_lines(g, t->arena, group, ",", MAX_LINES),
             augments ? ", .augments = true" : "");
}

void launches_write(Text *t, const char *name,
                    const GraphPlan *const plan[NUM_PLANS], const Launches *l) {
    const Graph *g = plan[HOST_PLAN]->graph;
    int augmenting = count_augmenting(g, l->kernel, l->count);
    if (l->count == 0)
        return;
    text_add(t,
             "\n// Launches, and the bytes that they access on the host and on "
             "CUDA.\n"
             "static const RtLaunch %s_launches[] = {\n",
             name);
    for (int i = 0; i < l->count; i++)
        launch_write(t, g, &l->kernel[i], i < augmenting);
    text_add(t, "};\n\nstatic const int64_t %s_bytes[%d][%d] = {\n", name,
             NUM_PLANS, l->count);
    for (int d = 0; d < NUM_PLANS; d++) {
        text_add(t, "    {");
        for (int i = 0; i < l->count; i++)
            text_add(t, "%s%lld",
                     i == 0  ? ""
                     : i % 6 ? ", "
                             : ",\n     ",
                     (long long)plan[d]->group[i].bytes);
        text_add(t, "},\n");
    }
    text_add(t, "};\n");
}
