// Embedded graphs: the training steps as text.  A trainer carries it to find
// the operation of a kernel that failed.
#include "codegen/codegen.h"

#include <string.h>

// Leaves out facts that differ between the devices' plans.
static Graph graph_bare(Arena *a, const Graph *g) {
    Graph bare = *g;
    bare.facts &= ~(unsigned)PLANNED;
    bare.act = F32;
    bare.node = ARENA_ARRAY(a, (size_t)g->count + 1, Node);
    memcpy(bare.node, g->node, g->count * sizeof *g->node);
    for (NodeId n = 0; n < g->count; n++) {
        bare.node[n].offset = -1;
        bare.node[n].why = REASON_none;
        bare.node[n].from.full_precision = false;
    }
    return bare;
}

void codegen_graphs(const Plan *plan, Text *t) {
    Arena *scratch = arena_new();
    for (int i = 0; i < plan->num_steps; i++) {
        const Step *s = &plan->step[i];
        if (s->kind < STEP_TRAIN || s->kind > STEP_ACCUMULATE)
            continue;
        Graph bare = graph_bare(scratch, s->graph);
        graph_print(t, &bare);
    }
    arena_free(scratch);
}
