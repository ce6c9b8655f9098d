// Sliced: a kernel that reads nothing but a slice of a tensor in memory has a
// pointer to the slice's first element.  See passes/plan/slice.c.

#include "codegen/emit.h"

// The node of the group that reads tensor `base`; NO_NODE if there are several.
static NodeId only_reader(const Graph *g, const Group *group, NodeId base) {
    NodeId reader = NO_NODE;
    for (NodeId n = group->first; n <= group->last; n++)
        for (int i = 0; i < g->node[n].num_args; i++) {
            if (node_base(g, g->node[n].arg[i]) != base)
                continue;
            if (reader != NO_NODE)
                return NO_NODE;
            reader = n;
        }
    return reader;
}

NodeId slice_pointed(const Graph *g, const Group *group, NodeId base) {
    if (group_has(group, base) || group_is_multi_tensor(group->kind) ||
        node_immediate(&g->node[base]))
        return NO_NODE;
    NodeId n = only_reader(g, group, base);
    return n != NO_NODE && slice_takes_index(g, n) ? n : NO_NODE;
}

int64_t slice_address(const Graph *g, NodeId n) {
    Type one = type_scalar(g->node[n].type->dtype);
    return g->node[node_base(g, g->node[n].arg[0])].offset +
           slice_start(g, n) * graph_bytes(g, &one);
}

Index slice_index(const Emit *e, NodeId n, Index p) {
    Type outer = *e->g->node[e->g->node[n].arg[0]].type;
    for (int i = 0; i < p.rank; i++)
        p.dim[i] = outer.dim[i];
    p.is_identity = false;
    return p;
}
