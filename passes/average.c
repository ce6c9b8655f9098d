// Average: merges the average of every step into the step.
//
//   requires   The graph of a step and the graph of the averages are given, in
//              the same types.
//   preserves  The results are those of the two graphs, run one after the
//              other.
//   result     One graph does both.  The averages read the values that the step
//              assigns; if both assign a state, the averages do.
//
// The launch that updates a weight then has it in registers for the average.
// The average costs a read and a write instead of two reads, a write and a
// launch.  This comes after precision and is not part of its check for
// infinities: a skipped step averages the weights that it kept.
#include "passes/passes.h"

static const char *name_of(const Graph *g, NodeId n) {
    return node_text(&g->node[n], ATTR_name);
}

// The node of g that has the name of leaf n of another graph, or NO_NODE.
static NodeId same_leaf(const Graph *g, const Graph *other, NodeId n) {
    const char *name = name_of(other, n);
    return name ? graph_find(g, name) : NO_NODE;
}

// The value that g assigns to each node, or NO_NODE.
static NodeId *find_assigned(const Graph *g, Arena *scratch) {
    NodeId *assigned = graph_map_new(g, scratch);
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_assign)
            assigned[g->node[n].arg[0]] = g->node[n].arg[1];
    return assigned;
}

// The step without assignments that the averages replace; now[] has its nodes
// in `out`.
static void copy_step(Graph *out, const Graph *step, const Graph *average,
                      NodeId *now, Arena *scratch) {
    const NodeId *assigned = find_assigned(average, scratch);
    for (NodeId n = 0; n < step->count; n++) {
        NodeId leaf = step->node[n].op == OP_assign
                          ? same_leaf(average, step, step->node[n].arg[0])
                          : NO_NODE;
        if (leaf == NO_NODE || assigned[leaf] == NO_NODE)
            now[n] = graph_copy(out, step, n, now);
    }
}

// Node n of the averages after the step, in `out`.
static NodeId follow(Graph *out, const Graph *step, const Graph *average,
                     NodeId n, const NodeId *assigned, const NodeId *now,
                     const NodeId *next) {
    const Node *d = &average->node[n];
    NodeId leaf = same_leaf(step, average, n);
    if (leaf != NO_NODE)
        return now[assigned[leaf] != NO_NODE ? assigned[leaf] : leaf];
    if (d->op != OP_assign)
        return graph_copy(out, average, n, next);
    out->origin = d->from;
    return graph_assign(out, same_leaf(out, average, d->arg[0]),
                        next[d->arg[1]]);
}

Graph *step_with_average(const Graph *step, const Graph *average) {
    Graph *out = graph_like(step);
    Arena *scratch = arena_new();
    NodeId *now = ARENA_ARRAY(scratch, step->count, NodeId);
    NodeId *next = ARENA_ARRAY(scratch, average->count, NodeId);
    const NodeId *assigned = find_assigned(step, scratch);
    copy_step(out, step, average, now, scratch);
    for (NodeId n = 0; n < average->count; n++)
        next[n] = follow(out, step, average, n, assigned, now, next);
    out->origin = (Origin){0};
    arena_free(scratch);
    return out;
}
