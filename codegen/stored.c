// Stored: the table of what launches leave in memory, for who looks at a step.

#include "codegen/emit.h"

// What a tensor is: its operation, its layer and the model's line.
static void what_add(Text *t, Arena *a, const Node *d) {
    text_add(t, "%s", op_info[d->op].name);
    if (d->from.path != NULL)
        text_add(t, " of %s", d->from.path);
    if (d->from.file != NULL)
        text_add(t, "%s, %s:%d", d->from.backward ? ", backward" : "",
                 file_text(a, d->from.file), d->from.line);
}

static void row_add(Text *t, Arena *a, const Graph *g, NodeId n, int step,
                    int launch) {
    const Node *d = &g->node[n];
    text_add(t, "    {%d, %d, %s, %lld, %lld, \"", step, launch,
             rt_type_text(d->type.dtype, g->act),
             (long long)type_count(d->type), (long long)d->offset);
    what_add(t, a, d);
    text_add(t, "\"},\n");
}

void stored_emit(Text *t, Arena *a, const Graph *g, const Launches *l,
                 int step) {
    for (int k = 0; k < l->count; k++) {
        const Group *group = l->kernel[k].group;
        for (int i = 0; i < group->num_outputs; i++)
            if (!(op_info[g->node[group->output[i]].op].facts & LEAF))
                row_add(t, a, g, group->output[i], step, k);
    }
}
