// Groups: facts of a kernel that follow from its nodes.

#include "passes/plan/group.h"

#include <string.h>

const GroupInfo group_info[] = {
#define KERNEL_KIND(KIND, kind, operations, blocks, result, operand, emit)     \
    {#kind, operations, blocks, REASON_##result, REASON_##operand},
#include "passes/plan/kernel_kinds.def"
#undef KERNEL_KIND
    {"call", CALLS, BY_VECTOR, REASON_library_result, REASON_library_operand}};

GroupKind group_kind(unsigned traits) {
    GroupKind kind = GROUP_CALL;
    while (kind > GROUP_GRID && !(group_info[kind].operations & traits))
        kind--;
    return kind;
}

// An axis of size 1 is reduced or not as it suits: a sum of [1,6,6,8] over its
// middle axes is a column reduction.
ReductionKind reduction_kind(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    const Attr *axes = node_attr(d, ATTR_axes);
    Type t = *g->node[d->arg[0]].type;
    unsigned reduced = 0, wide = 0; // axes, as bits
    if (d->op == OP_argmax)
        return ROW_REDUCTION;
    if (axes->count == t.rank)
        return FULL_REDUCTION;
    for (int i = 0; i < axes->count; i++)
        reduced |= 1u << axes->ints[i];
    for (int i = 0; i < t.rank; i++)
        wide |= (unsigned)(t.dim[i] != 1) << i;
    unsigned last = 1u << (t.rank - 1), before = wide & (last - 1);
    if ((reduced & last) && !(reduced & before))
        return ROW_REDUCTION;
    if ((reduced & before) == before)
        return reduced & last ? FULL_REDUCTION : COLUMN_REDUCTION;
    return OTHER_REDUCTION;
}

bool windows_disjoint(const Node *pool) {
    bool disjoint = true;
    for (int i = 0; i < 4; i++)
        disjoint &= node_ints(pool, ATTR_pad, i, 0) == 0 &&
                    node_ints(pool, ATTR_window, i / 2, 1) ==
                        node_ints(pool, ATTR_stride, i / 2, 1);
    return disjoint;
}

NodeId disjoint_pool_grad(const Graph *g, NodeId n) {
    while (g->node[n].op == OP_cast)
        n = g->node[n].arg[0];
    const Node *d = &g->node[n];
    if (d->op != OP_max_pool_grad && d->op != OP_avg_pool_grad)
        return NO_NODE;
    return windows_disjoint(d) ? n : NO_NODE;
}

bool pads_columns(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    for (int i = 0; d->op == OP_pad && i < d->type->rank; i++)
        if (node_ints(d, ATTR_low, i, 0) != 0 ||
            (i + 1 < d->type->rank && node_ints(d, ATTR_high, i, 0) != 0))
            return false;
    return d->op == OP_pad;
}

// Properties of each node that its users read, close together in memory.
typedef struct {
    NodeId base;
    int group;
    bool immediate, stored; // stored holds for a base only
} NodeInfo;

// The results of library calls, scatters and attention are in memory even if
// nothing reads them.
static NodeInfo *nodes_info(const Graph *g, Arena *a) {
    NodeInfo *info = ARENA_ARRAY(a, (size_t)g->count + 1, NodeInfo);
    for (NodeId n = 0; n < g->count; n++) {
        const Node *d = &g->node[n];
        unsigned traits = op_info[d->op].traits;
        bool view = (traits & VIEW) && d->group < 0;
        bool immediate = node_immediate(d);
        info[n] =
            (NodeInfo){.base = view ? info[d->arg[0]].base : n,
                       .group = d->group,
                       .immediate = immediate,
                       .stored = ((traits & LEAF) && !immediate) ||
                                 ((traits & (CALLS | SCATTERS | ATTENDS)) &&
                                  d->group >= 0)};
        for (int i = 0; i < d->num_args; i++) {
            NodeInfo *base = &info[info[d->arg[i]].base];
            base->stored |= base->group >= 0 && base->group != d->group;
        }
    }
    return info;
}

bool *graph_stored(const Graph *g, Arena *a) {
    Arena *scratch = arena_new();
    const NodeInfo *info = nodes_info(g, scratch);
    bool *stored = ARENA_ARRAY(a, g->count, bool);
    for (NodeId n = 0; n < g->count; n++)
        stored[n] = info[n].stored;
    arena_free(scratch);
    return stored;
}

bool group_backward(const Graph *g, const Group *group) {
    for (int i = 0; i < group->num_outputs; i++)
        if (!g->node[group->output[i]].from.backward)
            return false;
    return group->num_outputs > 0;
}

// Fuse gives the terms of a bucket a group of their own.
bool group_stores_terms(const Graph *g, const Group *group) {
    NodeId last = group->last;
    while (last > group->first && g->node[last].op != OP_assign)
        last--;
    const Node *d = &g->node[last];
    return d->op == OP_assign && state_bucket(&g->node[d->arg[0]]) >= 0;
}

int64_t space_columns(const Type *space) {
    return space->rank ? space->dim[space->rank - 1] : 1;
}

// Rows without columns are rows too, whose sums are 0.
int64_t space_rows(const Type *space) {
    int64_t rows = 1;
    for (int i = 0; i + 1 < space->rank; i++)
        if (__builtin_mul_overflow(rows, space->dim[i], &rows))
            return 0; // then some other dimension is 0
    return rows;
}

// The iteration space of a kernel that stores n: the windows of a pool whose
// gradient it computes from its own values, the elements that it packs.
static const Type *output_space(const Graph *g, NodeId n) {
    NodeId pool = disjoint_pool_grad(g, n);
    if (pool != NO_NODE && g->node[pool].group == g->node[n].group) {
        const Node *d = &g->node[pool];
        const Node *dy = &g->node[d->arg[d->num_args - 1]];
        if (dy->group == d->group)
            return dy->type;
    }
    if (g->node[n].op == OP_pack)
        return g->node[g->node[n].arg[0]].type;
    return g->node[n].type;
}

static void kind_raise(Group *group, GroupKind kind) {
    if (kind > group->kind)
        group->kind = kind;
}

// A row reduction fixes the space of a ROWS group, any other reduction or the
// first output that of GRID.
void group_describe(const Graph *g, Group *group) {
    group->kind = GROUP_GRID;
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = &g->node[n];
        unsigned traits = op_info[d->op].traits;
        kind_raise(group, group_kind(traits));
        if (d->op == OP_workspace)
            group->workspace = n;
        if ((traits & REDUCES) && !(traits & REDUCES_ALL)) {
            bool row = reduction_kind(g, n) == ROW_REDUCTION;
            if (row)
                kind_raise(group, GROUP_ROWS);
            if (row || group->iteration_space == NULL)
                group->iteration_space = g->node[d->arg[0]].type;
        }
    }
}

// The space of a group that reduces nothing.
static void find_space(const Graph *g, const NodeInfo *info, Group *group) {
    static const Type nothing = {.dtype = F32};
    for (NodeId n = group->first;
         n <= group->last && group->iteration_space == NULL; n++)
        if (info[n].stored && g->node[n].op != OP_workspace)
            group->iteration_space = output_space(g, n);
    if (group->iteration_space == NULL)
        group->iteration_space = &nothing;
}

// seen[n] holds the last group that listed n as an input.
static void collect(const Graph *g, const NodeInfo *info, Arena *a, int *seen,
                    Group *group) {
    int most = 0;
    for (NodeId n = group->first; n <= group->last; n++)
        most += g->node[n].num_args;
    NodeId *input = ARENA_ARRAY(a, (size_t)most + 1, NodeId);
    NodeId *output =
        ARENA_ARRAY(a, (size_t)(group->last - group->first) + 1, NodeId);
    for (NodeId n = group->first; n <= group->last; n++) {
        const Node *d = &g->node[n];
        for (int i = 0; i < d->num_args; i++) {
            NodeId base = info[d->arg[i]].base;
            if (group_has(group, base) || seen[base] == group->group + 1 ||
                info[base].immediate)
                continue;
            seen[base] = group->group + 1;
            input[group->num_inputs++] = base;
        }
        if (info[n].stored && d->op != OP_workspace)
            output[group->num_outputs++] = n;
    }
    group->input = group->read = input;
    group->num_reads = group->num_inputs;
    group->output = output;
    group->phases = 1;
    if (group_is_multi_tensor(group->kind))
        group_phases(g, a, group);
}

static int count_counters(const Graph *g, const NodeInfo *info,
                          const Group *group) {
    Workspace s = workspace_new(g, group->kind, group->iteration_space);
    for (NodeId n = group->first; n <= group->last; n++)
        workspace_add(&s, g, n, info[n].stored || g->node[n].op == OP_assign);
    return workspace_counters(&s);
}

NodeId graph_counters(const Graph *g) {
    Arena *a = arena_new();
    NodeId n = graph_find(g, arena_format(a, COUNTERS "%s", g->name));
    arena_free(a);
    return n;
}

// Whether n is the first node of its group; last is the group before it.
static bool begins_group(const Graph *g, NodeId n, int *last) {
    int k = g->node[n].group;
    if (k < 0 || k == *last)
        return false;
    *last = k;
    return true;
}

// The runs of nodes, and nothing else about them yet.
static Group *find_groups(const Graph *g, Arena *a, int *count) {
    int last = -1, found = 0;
    for (NodeId n = 0; n < g->count; n++)
        found += begins_group(g, n, &last);
    Group *group = ARENA_ARRAY(a, (size_t)found + 1, Group);
    *count = found;
    last = -1;
    found = 0;
    for (NodeId n = 0; n < g->count; n++) {
        if (begins_group(g, n, &last))
            group[found++] =
                (Group){.group = last, .first = n, .workspace = NO_NODE};
        if (g->node[n].group >= 0)
            group[found - 1].last = n;
    }
    return group;
}

Group *graph_groups(const Graph *g, Arena *a, int *count) {
    Arena *scratch = arena_new();
    const NodeInfo *info = nodes_info(g, scratch);
    int found, counters = 0;
    Group *group = find_groups(g, a, &found);
    int *seen = ARENA_ARRAY(scratch, (size_t)g->count + 1, int);
    for (int i = 0; i < found; i++) {
        group_describe(g, &group[i]);
        find_space(g, info, &group[i]);
        collect(g, info, a, seen, &group[i]);
        group[i].num_counters = count_counters(g, info, &group[i]);
        group[i].counter = group[i].num_counters > 0 ? counters : -1;
        counters += group[i].num_counters;
    }
    arena_free(scratch);
    *count = found;
    return group;
}

int *group_owners(const Graph *g, const Group *group, int count, Arena *a) {
    int *owner = ARENA_UNINIT(a, g->count, int);
    for (NodeId n = 0; n < g->count; n++)
        owner[n] = -1;
    for (int k = 0; k < count; k++)
        for (NodeId n = group[k].first; n <= group[k].last; n++)
            owner[n] = k;
    return owner;
}

Readers group_readers(const Graph *g, const Group *group, int count, Arena *a) {
    size_t entries = 1;
    for (int k = 0; k < count; k++)
        entries += (size_t)group[k].num_inputs;
    Readers r = {ARENA_UNINIT(a, g->count, int), ARENA_UNINIT(a, entries, int),
                 ARENA_UNINIT(a, entries, int)};
    int e = 0;
    for (NodeId n = 0; n < g->count; n++)
        r.first[n] = -1;
    for (int k = count; k-- > 0;)
        for (int i = 0; i < group[k].num_inputs; i++, e++) {
            r.group[e] = k;
            r.next[e] = r.first[group[k].input[i]];
            r.first[group[k].input[i]] = e;
        }
    return r;
}

NodeId group_first(const Graph *g, const Group *group, unsigned traits) {
    NodeId n = group->first;
    while (!(op_info[g->node[n].op].traits & traits))
        n++;
    return n;
}
