// Prepare: hoists batch-invariant operands of library calls out of the batches
// of an evaluation.
//
//   requires   The graph is for evaluation or prediction, and typed.  Other
//              graphs stay as they are.
//   preserves  Every output stays the same.
//   result     A state of kind "derived" replaces an operand of a library call
//              that has the same value in all batches.
//
// Examples are weights with batch_norm's factor and f16 copies of averages.
// prepare_graph returns the graph that computes them once, before the first
// batch.

#include "passes/batch_invariant.h"
#include "passes/passes.h"

// Operands of library calls that are invariant and not in memory yet.
static bool *find_prepared(const Graph *g, Arena *scratch) {
    bool *prepared = ARENA_ARRAY(scratch, g->count, bool);
    const bool *invariant = find_invariant(g, scratch);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        for (int i = 0; i < d->num_args; i++) {
            NodeId base = node_base(g, d->arg[i]);
            prepared[d->arg[i]] |= (op_info[d->op].traits & CALLS) &&
                                   invariant[d->arg[i]] && !invariant[n] &&
                                   !(op_info[g->node[base].op].traits & LEAF);
        }
    }
    return prepared;
}

// The state for a value, which is the number-th that is prepared.
static NodeId add_state(Graph *g, Type type, int number) {
    const char *name = arena_format(g->arena, "eval.prepared_%d", number);
    return graph_state(g, name, STATE_DERIVED, type, 0);
}

Graph *pass_prepare(Graph *g, Arena *scratch, const PassOptions *o) {
    (void)o;
    if (!is_evaluation(g))
        return g;
    Graph *out = graph_like(g);
    const bool *prepared = find_prepared(g, scratch);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    int number = 0;
    for (NodeId n = 0; n < g->count; n++) {
        out->origin = g->node[n].from;
        now[n] = prepared[n] ? add_state(out, *g->node[n].type, number++)
                             : graph_copy(out, g, n, now);
    }
    return out;
}

// g's node for a value of another graph.
static NodeId value_in(Graph *g, const Graph *other, NodeId n, NodeId *now) {
    const Node *d = &other->node[n];
    if (now[n] != NO_NODE)
        return now[n];
    for (int i = 0; i < d->num_args; i++)
        value_in(g, other, d->arg[i], now);
    const char *name = node_text(d, ATTR_name);
    now[n] = name != NULL ? graph_find(g, name) : NO_NODE;
    if (now[n] == NO_NODE)
        now[n] = graph_copy(g, other, n, now);
    return now[n];
}

bool prepares_first(const Graph *g, const Graph *part) {
    Arena *scratch = arena_new();
    Graph *all = graph_clone(g);
    const bool *prepared = find_prepared(g, scratch);
    const bool *wanted = find_prepared(part, scratch);
    NodeId *now = graph_map_new(part, scratch), next = 0;
    bool same = true;
    for (NodeId n = 0; same && n < part->count; n++) {
        if (!wanted[n])
            continue;
        while (next < g->count && !prepared[next])
            next++;
        same = next < g->count && value_in(all, part, n, now) == next;
        next++;
    }
    graph_free(all);
    arena_free(scratch);
    return same;
}

Graph *prepare_graph(Graph *g) {
    Arena *scratch = arena_new();
    const bool *prepared = find_prepared(g, scratch);
    bool *needed = ARENA_ARRAY(scratch, g->count, bool);
    NodeId *now = ARENA_ARRAY(scratch, g->count, NodeId);
    Graph *out = graph_like(g);
    int number = 0;
    out->name = "prepare";
    for (NodeId n = g->count; n-- > 0;) {
        needed[n] |= prepared[n];
        for (int i = 0; needed[n] && i < g->node[n].num_args; i++)
            needed[g->node[n].arg[i]] = true;
    }
    for (NodeId n = 0; n < g->count; n++) {
        if (!needed[n])
            continue;
        now[n] = graph_copy(out, g, n, now);
        out->origin = g->node[n].from;
        if (prepared[n])
            graph_assign(out, add_state(out, *g->node[n].type, number++),
                         now[n]);
    }
    arena_free(scratch);
    return number > 0 ? out : NULL;
}
