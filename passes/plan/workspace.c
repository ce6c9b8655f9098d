// The workspace: memory for partial results of blocks, and its
// block counters.
//
// Each block leaves its share of a reduction in a row of the workspace, and
// each chunk of tensors, or a block for its chunks, leaves one number.
// Reductions follow each other there in the order of their nodes.  The last
// block makes the results; a counter tells it that it is the last.

#include "passes/plan/group.h"

#include "base/round_up.h"

int reduce_slots(const Graph *g, NodeId n) {
    return g->node[n].op == OP_var ? 2 : 1;
}

bool sums_blocks(const Graph *g, NodeId n) {
    unsigned traits = op_info[g->node[n].op].traits;
    return (traits & REDUCES) && !(traits & REDUCES_ALL) &&
           reduction_kind(g, n) != ROW_REDUCTION;
}

// One for each chunk; all_finite depends on no order, and has one for each
// block.  n is a node of g, which need not be the graph of the workspace.
static int64_t slots_of(const Workspace *s, const Graph *g, NodeId n) {
    int blocks = device_grid(s->graph);
    if (g->node[n].op != OP_all_finite)
        return reduction_chunks(g, n);
    return blocks > HOST_GRID ? blocks : HOST_GRID;
}

Workspace workspace_new(const Graph *g, GroupKind kind, const Type *space) {
    return (Workspace){.graph = g, .kind = kind, .space = space};
}

void workspace_add(Workspace *s, const Graph *g, NodeId n, bool result) {
    const Node *d = &g->node[n];
    if (result && s->kind == GROUP_UPDATE)
        s->scalar |= type_count(d->type) == 1;
    if (!(op_info[d->op].traits & REDUCES))
        return;
    if (group_is_multi_tensor(s->kind)) {
        s->any = true;
        s->slots += slots_of(s, g, n);
    } else if (sums_blocks(g, n)) {
        s->any = true;
        s->slots += reduce_slots(g, n) * type_count(d->type);
        s->mixed |= type_count(d->type) != space_columns(s->space);
    }
}

const int64_t *workspace_offsets(const Graph *g, const Group *group, Arena *a) {
    Workspace s = workspace_new(g, group->kind, group->iteration_space);
    int64_t *offset =
        ARENA_ARRAY(a, (size_t)(group->last - group->first) + 1, int64_t);
    for (NodeId n = group->first; n <= group->last; n++) {
        offset[n - group->first] = s.slots;
        workspace_add(&s, g, n, false);
    }
    return offset;
}

// Rows for the blocks of whichever device has more.
static int64_t workspace_rows(const Workspace *s) {
    int host = space_grid(s->graph, s->space, true);
    int device = space_division(s->graph, s).chunks;
    return host > device ? host : device;
}

Type workspace_type(const Workspace *s) {
    if (group_is_multi_tensor(s->kind))
        return type_of(F32, 1, &s->slots);
    return type_of(F32, 2, (int64_t[]){workspace_rows(s), s->slots});
}

int workspace_counters(const Workspace *s) {
    if (!s->any)
        return s->scalar;
    if (group_is_multi_tensor(s->kind)) // a second one counts at the barrier
        return s->kind == GROUP_MULTI_REDUCE ? 1 : 2;
    Division d = space_division(s->graph, s);
    return d.last_blocks > 1 ? 2 : d.tiles;
}
