// Multi-tensor groups: UPDATE, MULTI_REDUCE and STACK iterate over chunks of
// many tensors.
//
// A number about tensors, as the norm of all gradients, is ready only after all
// chunks.  So an update has a phase for such numbers, one more for those that
// follow from other ones, and a last phase that assigns or stacks tensors;
// between two phases every block waits for all others.  A phase leaves a number
// of each chunk in the workspace, and each reader adds these up in their order.

#include "passes/plan/group.h"

#include "base/round_up.h"

bool group_is_multi_tensor(GroupKind kind) {
    return group_info[kind].blocks == BY_CHUNK;
}

int64_t chunk_count(int64_t elements) {
    return elements == 0 ? 1 : divide_up(elements, CHUNK_ELEMENTS);
}

// A scalar is not worth a chunk: each reader of the number adds it.
static int64_t operand_chunks(const Graph *g, NodeId n, int i) {
    int64_t elements = type_count(g->node[g->node[n].arg[i]].type);
    return elements == 1 ? 0 : chunk_count(elements);
}

int64_t reduction_chunks(const Graph *g, NodeId n) {
    int64_t chunks = 0;
    for (int i = 0; i < g->node[n].num_args; i++)
        chunks += operand_chunks(g, n, i);
    return chunks;
}

static bool reduces(const Graph *g, NodeId n) {
    return op_info[g->node[n].op].traits & REDUCES;
}

const int64_t *chunks_before(const Graph *g, NodeId n, Arena *a) {
    int count = g->node[n].num_args;
    int64_t *before = ARENA_ARRAY(a, (size_t)count + 1, int64_t);
    for (int i = 0; i < count; i++)
        before[i + 1] = before[i] + operand_chunks(g, n, i);
    return before;
}

// Marks the tensors that the phase of n reads for it: a number of an earlier
// phase is there already.
static void mark_reads(const Graph *g, const Group *group, NodeId n,
                       bool *needed, bool *read) {
    const Node *d = &g->node[n];
    for (int i = d->op == OP_assign; i < d->num_args; i++) {
        NodeId base = node_base(g, d->arg[i]);
        if (!group_has(group, base))
            read[base] |= !node_immediate(&g->node[base]);
        else if (!reduces(g, base))
            needed[base - group->first] = true;
    }
}

static bool ends_group(const Graph *g, NodeId n) {
    return g->node[n].op == OP_assign ||
           (op_info[g->node[n].op].traits & STACKS);
}

// Appends the tensors that a phase reads to group->read.  It begins at the
// reductions of that phase, or in the last phase at assignments and results.
static void find_reads(const Graph *g, Arena *a, Group *group, int phase,
                       NodeId *list) {
    bool *needed =
        ARENA_ARRAY(a, (size_t)(group->last - group->first) + 1, bool);
    bool *read = ARENA_ARRAY(a, g->count, bool);
    for (int i = 0; i < group->num_outputs && phase == group->phases - 1; i++)
        needed[group->output[i] - group->first] = !reduces(g, group->output[i]);
    for (NodeId n = group->last + 1; n-- > group->first;) {
        bool begins = reduces(g, n)
                          ? group->node_phase[n - group->first] == phase
                          : ends_group(g, n) && phase == group->phases - 1;
        if (begins || needed[n - group->first])
            mark_reads(g, group, n, needed, read);
    }
    for (NodeId n = 0; n < g->count; n++)
        if (read[n])
            list[group->num_reads++] = n;
}

void group_phases(const Graph *g, Arena *a, Group *group) {
    int *node_phase =
        ARENA_ARRAY(a, (size_t)(group->last - group->first) + 1, int);
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = &g->node[n];
        int *own = &node_phase[n - group->first];
        for (int i = 0; i < d->num_args; i++) {
            NodeId arg = d->arg[i];
            if (!group_has(group, arg) &&
                !group_has(group, arg = node_base(g, arg)))
                continue;
            int ready = node_phase[arg - group->first] + reduces(g, arg);
            *own = ready > *own ? ready : *own;
        }
        if (*own + 1 > group->phases)
            group->phases = *own + 1;
    }
    group->node_phase = node_phase;
    NodeId *list = ARENA_ARRAY(
        a, (size_t)group->num_inputs * (size_t)group->phases + 1, NodeId);
    group->num_reads = 0;
    group->read = list;
    for (int phase = 0; phase < group->phases; phase++)
        find_reads(g, a, group, phase, list);
}
