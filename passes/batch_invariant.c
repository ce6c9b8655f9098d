// Batch-invariant values: those that all batches of an evaluation share.
//
// No batch of an evaluation changes a parameter, an average or a statistic.

#include "passes/batch_invariant.h"

#include <string.h>

bool is_evaluation(const Graph *g) {
    return strcmp(g->name, "eval") == 0 || strcmp(g->name, "predict") == 0 ||
           strcmp(g->name, "decode") == 0;
}

bool *find_invariant(const Graph *g, Arena *scratch) {
    bool *invariant = ARENA_ARRAY(scratch, g->count, bool);
    bool *assigned = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign)
            assigned[g->node[n].arg[0]] = true;
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        bool leaf = op_info[d->op].traits & LEAF;
        invariant[n] = leaf ? d->op != OP_input && !assigned[n]
                            : !(op_info[d->op].traits & EFFECT);
        for (int i = 0; i < d->num_args; i++)
            invariant[n] &= invariant[d->arg[i]];
    }
    return invariant;
}
