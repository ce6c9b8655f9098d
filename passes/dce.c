// DCE: drops nodes that no effect needs.
//
//   requires   Nothing.
//   preserves  Effects stay, and so does the value of every node that one of
//              them uses.
//   result     All other nodes are removed, unused inputs, params and states
//              included.
#include "passes/passes.h"

static bool *find_needed(const Graph *g, Arena *scratch) {
    bool *needed = ARENA_ARRAY(scratch, g->count, bool);
    for (NodeId n = g->count; n-- > 0;) {
        needed[n] |= (op_info[g->node[n].op].traits & EFFECT) != 0;
        for (int i = 0; needed[n] && i < g->node[n].num_args; i++)
            needed[g->node[n].arg[i]] = true;
    }
    return needed;
}

static bool all_needed(const bool *needed, NodeId count) {
    for (NodeId n = 0; n < count; n++)
        if (!needed[n])
            return false;
    return true;
}

Graph *pass_dce(Graph *g, Arena *scratch, const PassOptions *o) {
    (void)o;
    bool *needed = find_needed(g, scratch);
    if (all_needed(needed, g->count))
        return g;
    Graph *out = graph_like(g);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    for (NodeId n = 0; n < g->count; n++)
        now[n] = needed[n] ? graph_copy(out, g, n, now) : NO_NODE;
    return out;
}
