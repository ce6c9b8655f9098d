// Tile prologues: kernels that tile kernels can apply to the elements of an
// operand as they load it.  See tile_fusion.h.

#include "passes/plan/tile_fusion.h"

typedef struct {
    const Graph *g;
    const Group *group;
    int num_groups;
    Readers reader;  // of each node
    bool *is_output; // of each node: whether it is a result of the graph
} Search;

// ---- operations ----

// Whether t, if it is a number for each row, such as a row's statistics, has
// the operand's own rows and not those of a pool.
static bool is_placed(const TileSpace *s, Type t, bool unpools) {
    TileExtents e;
    bool by_row = tile_extents(s, t, &e) && e.whole[0] && !e.whole[2];
    return !by_row || (!unpools && e.window[0] == 1 && e.window[1] == 1);
}

// Disjoint windows that cover the result, so that each pixel is in one of them;
// or windows of the operand's pixels, up to two along each axis that
// contain one.
static bool is_unpooled(const Graph *g, const TileSpace *s, const Node *d) {
    TileExtents from, to;
    if (d->op != OP_max_pool_grad ||
        !tile_extents(s, *g->node[d->arg[1]].type, &from) ||
        !tile_extents(s, *d->type, &to) || !to.whole[0])
        return false;
    bool disjoint = windows_disjoint(d);
    for (int i = 0; i < 2; i++) {
        int64_t stride = node_ints(d, ATTR_stride, i, 1);
        if (stride * to.window[i] != from.window[i] ||
            (!disjoint && (to.window[i] != 1 ||
                           node_ints(d, ATTR_window, i, 1) > 2 * stride)))
            return false;
    }
    return tile_is_value(*d->type) && g->node[d->arg[0]].op == OP_unpack;
}

static bool unpools(const Graph *g, const Group *group) {
    for (NodeId n = group->first; n <= group->last; n++)
        if (g->node[n].op == OP_max_pool_grad)
            return true;
    return false;
}

static bool is_node(const Graph *g, const Group *group, const TileSpace *s,
                    bool pools, const Node *d) {
    if (!is_placed(s, *d->type, pools))
        return false;
    if (tile_unpacks(s, group, d))
        return true;
    if (!is_unpooled(g, s, d) && !tile_computes(g, s, d))
        return false;
    for (int i = 0; i < d->num_args; i++)
        if (!group_has(group, d->arg[i]) &&
            (!tile_reads(g, s, d->arg[i]) ||
             !is_placed(s, *g->node[d->arg[i]].type, pools)))
            return false;
    return true;
}

// Whether a kernel stores tensors of one shape, of numbers that follow from
// those at the same place of others; and packed predicates, if it may.
static bool is_prologue(const Search *s, const Group *group, bool packs) {
    const Graph *g = s->g;
    if (group->kind != GROUP_GRID || group->workspace != NO_NODE ||
        group->num_outputs == 0)
        return false;
    Type operand = *g->node[group->output[0]].type;
    const TileSpace space = tile_operand_space(&operand);
    for (int i = 0; i < group->num_outputs; i++) {
        NodeId n = group->output[i];
        Type t = *g->node[n].type;
        bool packed = packs && i > 0 && tile_packs(g, &space, &g->node[n]);
        if (s->is_output[n] || (!packed && (t.dtype != ACT || t.rank < 2 ||
                                            !type_is(&t, &operand))))
            return false;
    }
    const bool pools = unpools(g, group);
    for (NodeId n = group->first; n <= group->last; n++)
        if (!is_node(g, group, &space, pools, &g->node[n]) &&
            !(packs && tile_packs(g, &space, &g->node[n])))
            return false;
    return true;
}

// Marks the inputs of a group that one of its nodes reads.
static void mark_inputs(const Graph *g, const Group *group, NodeId n,
                        bool *is_read) {
    for (int i = 0; i < g->node[n].num_args; i++)
        for (int k = 0; k < group->num_inputs; k++)
            if (group->input[k] == node_base(g, g->node[n].arg[i]))
                is_read[k] = true;
}

int64_t tile_prologue_reads(const Graph *g, const Group *group, NodeId output) {
    Arena *a = arena_new();
    bool *needed = ARENA_ARRAY(a, group->last - group->first + 1, bool);
    bool *is_read = ARENA_ARRAY(a, (size_t)group->num_inputs + 1, bool);
    int64_t bytes = 0;
    needed[output - group->first] = true;
    for (NodeId n = group->last + 1; n-- > group->first;) {
        if (!needed[n - group->first])
            continue;
        mark_inputs(g, group, n, is_read);
        for (int i = 0; i < g->node[n].num_args; i++)
            if (group_has(group, g->node[n].arg[i]))
                needed[g->node[n].arg[i] - group->first] = true;
    }
    for (int i = 0; i < group->num_inputs; i++)
        if (is_read[i])
            bytes += graph_bytes(g, g->node[group->input[i]].type);
    arena_free(a);
    return bytes;
}

// ---- readers ----

// All operands but the filters of a convolution, and none of channels in
// groups.
static bool takes_prologue(const Node *d, int operand) {
    if (node_int(d, ATTR_groups, 1) != 1)
        return false;
    return operand == 0 || d->op == OP_conv_grad_weight || d->op == OP_matmul;
}

// How many operands of a contraction are n, or -1 if it cannot apply a prologue
// to one.  An operand in another shape has the same columns, and is no image,
// whose pixels would be others.
static int count_operands(const Graph *g, NodeId call, NodeId n) {
    const Node *d = &g->node[call];
    int found = 0;
    for (int i = 0; i < d->num_args; i++) {
        if (node_base(g, d->arg[i]) != n)
            continue;
        Type t = *g->node[d->arg[i]].type;
        const Type *own = g->node[n].type;
        if (i >= TILE_OPERANDS || !takes_prologue(d, i) ||
            space_columns(&t) != space_columns(own) ||
            (d->op != OP_matmul && !type_has_shape(&t, own)))
            return -1;
        found++;
    }
    return found;
}

// The launch at which a contraction may run: in place of its epilogue, if that
// is the next one; tile_fusion.c knows the others.
static int next_launch_of(const Search *s, int k, NodeId call) {
    for (int e = s->reader.first[call]; e >= 0; e = s->reader.next[e])
        if (s->reader.group[e] == k + 1 && s->group[k + 1].kind == GROUP_GRID)
            return k + 1;
    return k;
}

// Adds the readers of result n, and the bytes that they save.
static bool find_readers(const Search *s, NodeId n, TilePrologue *p) {
    int64_t result = graph_bytes(s->g, s->g->node[n].type);
    int before = p->readers;
    for (int e = s->reader.first[n]; e >= 0; e = s->reader.next[e]) {
        const Group *group = &s->group[s->reader.group[e]];
        if (group->kind != GROUP_CALL)
            return false;
        NodeId call = group_first(s->g, group, CALLS);
        int found =
            tile_contraction(s->g, call) ? count_operands(s->g, call, n) : -1;
        if (found < 0)
            return false;
        p->readers += found;
        int last = next_launch_of(s, s->reader.group[e], call);
        p->last = last > p->last ? last : p->last;
    }
    int64_t reads = tile_prologue_reads(s->g, &s->group[p->kernel], n);
    p->bytes += result + (p->readers - before) * (result - reads);
    return p->readers > before;
}

// Whether a contraction is a product of matrices: some blocks, those with the
// first columns, load each element of its first operand once.
static bool is_product(const Graph *g, const Node *d) {
    Type w = d->op == OP_conv_grad_weight ? *d->type : *g->node[d->arg[1]].type;
    if (d->op == OP_matmul)
        return d->type->rank == 2;
    bool is = d->op != OP_conv_grad_input && w.dim[1] == 1 && w.dim[2] == 1 &&
              node_int(d, ATTR_groups, 1) == 1;
    for (int i = 0; i < 4 && is; i++)
        is = node_ints(d, ATTR_pad, i, 0) == 0 &&
             node_ints(d, ATTR_stride, i % 2, 1) == 1;
    return is;
}

// Finds the first reader of a kernel's results, if it can store them.
static bool find_storing(const Search *s, TilePrologue *p) {
    const Group *kernel = &s->group[p->kernel];
    int first = s->num_groups, second = s->num_groups;
    for (int i = 0; i < kernel->num_outputs; i++)
        for (int e = s->reader.first[kernel->output[i]]; e >= 0;
             e = s->reader.next[e]) {
            int k = s->reader.group[e];
            second = k < first ? first : k > first && k < second ? k : second;
            first = k < first ? k : first;
        }
    if (first == s->num_groups || s->group[first].kind != GROUP_CALL)
        return false;
    NodeId call = group_first(s->g, &s->group[first], CALLS);
    const Node *d = &s->g->node[call];
    NodeId n = node_base(s->g, d->arg[0]);
    if (!tile_contraction(s->g, call) || !is_product(s->g, d) ||
        n < kernel->first || n > kernel->last || s->g->node[n].op == OP_pack ||
        count_operands(s->g, call, n) != 1)
        return false;
    p->stored_by = first;
    p->readers = 1;
    p->last = next_launch_of(s, first, call);
    p->bytes = graph_bytes(s->g, s->g->node[n].type);
    return p->last < second;
}

// Whether all readers of a kernel's results are contractions.
static bool find_all_readers(const Search *s, TilePrologue *p) {
    const Group *group = &s->group[p->kernel];
    for (int i = 0; i < group->num_outputs; i++)
        if (!find_readers(s, group->output[i], p))
            return false;
    for (int i = 0; i < group->num_inputs; i++)
        p->bytes += graph_bytes(s->g, s->g->node[group->input[i]].type);
    return p->bytes > 0;
}

static bool computes_windows(const Graph *g, const Group *group) {
    bool found = false;
    if (group->kind != GROUP_GRID || group->workspace != NO_NODE ||
        group->num_outputs != 1)
        return false;
    for (NodeId n = group->first; n <= group->last; n++) {
        unsigned traits = op_info[g->node[n].op].traits;
        if (!(traits & (POINTWISE | INDEXES | WINDOW | VIEW)))
            return false;
        found |= (traits & (INDEXES | WINDOW)) != 0;
    }
    return found;
}

int tile_windows(const Graph *g, const Group *group, const Readers *reader,
                 NodeId call, int operand) {
    const Node *d = &g->node[call];
    NodeId n = node_base(g, d->arg[operand]);
    int k = g->node[n].group;
    if (d->op == OP_matmul || k < 0 || !takes_prologue(d, operand) ||
        !computes_windows(g, &group[k]))
        return -1;
    for (int e = reader->first[n]; e >= 0; e = reader->next[e]) {
        const Group *own = &group[reader->group[e]];
        NodeId by =
            own->kind == GROUP_CALL ? group_first(g, own, CALLS) : NO_NODE;
        if (by == NO_NODE || !tile_contraction(g, by) ||
            count_operands(g, by, n) < 0)
            return -1;
    }
    return k;
}

TilePrologue *graph_tile_prologues(const Graph *g, const Group *group,
                                   int num_groups, Arena *a, int *count) {
    Search s = {g, group, num_groups, group_readers(g, group, num_groups, a),
                ARENA_ARRAY(a, g->count, bool)};
    TilePrologue *found =
        ARENA_ARRAY(a, 2 * (size_t)num_groups + 1, TilePrologue);
    *count = 0;
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_output)
            s.is_output[node_base(g, g->node[n].arg[0])] = true;
    for (int k = 0; k < num_groups && (g->act == F16 || g->act == BF16); k++) {
        TilePrologue p = {.kernel = k, .stored_by = -1}, stored = p;
        if (is_prologue(&s, &group[k], false) && find_all_readers(&s, &p))
            found[(*count)++] = p;
        if (is_prologue(&s, &group[k], true) && find_storing(&s, &stored))
            found[(*count)++] = stored;
    }
    return found;
}
