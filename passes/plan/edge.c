// Edges: values that go from one kernel to another through memory, and why.

#include "passes/plan/group.h"

// The reason that lies in the two kernels or that fuse has found for the value;
// none where the value is in memory for some other kernel or for the program.
static Reason own_reason(const Graph *g, const Group *from, NodeId n,
                         const Group *to) {
    const Node *d = &g->node[n];
    if (to->kind == GROUP_CALL && from->kind != GROUP_CALL)
        return group_info[GROUP_CALL].operand;
    if (group_info[from->kind].result != REASON_none)
        return group_info[from->kind].result;
    if ((op_info[d->op].traits & REDUCES) &&
        (from->kind == GROUP_MULTI_REDUCE ||
         reduction_kind(g, n) != ROW_REDUCTION))
        return REASON_sum;
    Reason why = group_info[to->kind].operand;
    return why != REASON_none ? why : d->why;
}

static int count_inputs(const Group *group, int count) {
    int inputs = 0;
    for (int k = 0; k < count; k++)
        inputs += group[k].num_inputs;
    return inputs;
}

Edge *graph_edges(const Graph *g, Arena *a, const Group *group, int count,
                  int *num_edges) {
    const int *owner = group_owners(g, group, count, a);
    bool *result = ARENA_ARRAY(a, (size_t)g->count + 1, bool);
    bool *shared = ARENA_ARRAY(a, (size_t)g->count + 1, bool);
    Edge *edge = ARENA_ARRAY(a, (size_t)count_inputs(group, count) + 1, Edge);
    int found = 0;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_output)
            result[node_base(g, g->node[n].arg[0])] = true;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < group[k].num_inputs; i++) {
            NodeId n = group[k].input[i];
            if (owner[n] < 0)
                continue;
            Reason why = own_reason(g, &group[owner[n]], n, &group[k]);
            shared[n] |= why != REASON_none;
            edge[found++] = (Edge){owner[n], k, n, why};
        }
    for (int i = 0; i < found; i++)
        if (edge[i].why == REASON_none)
            edge[i].why = result[edge[i].node]   ? REASON_result
                          : shared[edge[i].node] ? REASON_shared
                                                 : REASON_none;
    *num_edges = found;
    return edge;
}
