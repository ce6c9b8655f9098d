// Shrink: see shrink.h.
//
// From the last node to the first, an effect is left out, and another node is
// replaced by one of its operands or by an input of its type.  What nothing
// needs any more goes with it.
#include "tests/random/shrink.h"

typedef enum { BY_NOTHING, BY_OPERAND, BY_INPUT } Cut;

// The node that stands for n, or NO_NODE where it cannot be cut so.
static NodeId replace(Graph *out, const Graph *g, NodeId n, Cut cut,
                      const NodeId *now) {
    const Node *d = &g->node[n];
    for (int i = 0; i < d->num_args && cut == BY_OPERAND; i++)
        if (type_is(g->node[d->arg[i]].type, d->type))
            return now[d->arg[i]];
    if (cut != BY_INPUT)
        return NO_NODE;
    return graph_leaf(out, OP_input, arena_format(out->arena, "cut%u", n),
                      *d->type);
}

static bool fits(const Graph *g, NodeId n, Cut cut) {
    unsigned traits = op_info[g->node[n].op].traits;
    if (traits & (EFFECT | OPTIMIZES))
        return cut == BY_NOTHING;
    return !(traits & LEAF) && cut != BY_NOTHING;
}

// g with node `at` cut, and without what nothing needs; NULL where it cannot
// be.
static Graph *without(const Graph *g, NodeId at, Cut cut) {
    Graph *out = graph_like(g);
    Arena *a = g->arena;
    NodeId *now = ARENA_ARRAY(a, g->count + 1, NodeId);
    bool *needed = ARENA_ARRAY(a, g->count + 1, bool);
    if (!fits(g, at, cut))
        return NULL;
    for (NodeId n = g->count; n-- > 0;) {
        bool effect = op_info[g->node[n].op].traits & (EFFECT | OPTIMIZES);
        needed[n] |= effect && n != at;
        if (needed[n] && (n != at || cut == BY_OPERAND))
            for (int i = 0; i < g->node[n].num_args; i++)
                needed[g->node[n].arg[i]] = true;
    }
    for (NodeId n = 0; n < g->count; n++) {
        if (!needed[n])
            continue;
        now[n] =
            n == at ? replace(out, g, n, cut, now) : graph_copy(out, g, n, now);
        if (now[n] == NO_NODE)
            return NULL;
    }
    return graph_verify(out, a) == NULL ? out : NULL;
}

Graph *shrink_graph(Arena *a, Graph *g, const Setup *s, Mode mode,
                    BatchResult result) {
    (void)a;
    Counts counts = {0};
    bool again = true;
    while (again) {
        again = false;
        for (NodeId n = g->count; n-- > 0;)
            for (int cut = BY_NOTHING; cut <= BY_INPUT; cut++) {
                Graph *less = n < g->count ? without(g, n, (Cut)cut) : NULL;
                if (less == NULL || less->count > g->count ||
                    (less->count == g->count && cut != BY_INPUT) ||
                    batch_graph(less, s, mode, &counts, true) != result)
                    continue;
                g = less;
                again = true;
            }
    }
    return g;
}
