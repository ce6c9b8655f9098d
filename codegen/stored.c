// Stored: the table of the tensors that launches write, for inspection of a
// step.

#include "codegen/emit.h"

static void row_add(Text *t, Arena *a, const Graph *g, NodeId n, int step,
                    int launch) {
    const Node *d = &g->node[n];
    Text what = text_new(a);
    node_tell(&what, d);
    text_add(t, "    {%d, %d, %u, %s, %lld, %lld, ", step, launch, n,
             rt_type_text(d->type->dtype, g->act),
             (long long)type_count(d->type), (long long)d->offset);
    quoted_add(t, text_string(&what));
    text_add(t, "},\n");
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
