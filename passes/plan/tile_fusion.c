// Tile fusions: see tile_fusion.h.

#include "passes/plan/tile_fusion.h"

#include "base/round_up.h"

typedef struct {
    const Graph *g;
    const LibraryFusions *fusions;
    const Forks *forks;
    Readers reader;  // of each node
    bool *is_output; // of each node: whether it is a result of the graph
    int *fusion;     // of each group: 1 + the last library fusion of its call
    int *before;     // of each library fusion: 1 + the one before, of its call
} Search;

// ---- epilogues ----

// Bits in memory, of an element of the result each.
static bool is_unpacked(const TileSpace *s, const Group *group, const Node *d) {
    return tile_unpacks(s, group, d) && s->batch == 1 &&
           tile_is_whole(s, *d->type);
}

// Pixels in memory of the result's image, with zeros between them.
static bool is_spread(const Graph *g, const TileSpace *s, const Group *group,
                      NodeId call, NodeId n) {
    const Node *d = &g->node[n];
    bool is = d->op == OP_avg_pool_grad && !group_has(group, d->arg[0]) &&
              s->batch == 1 && type_has_shape(d->type, g->node[call].type) &&
              (d->type->dtype == F32 || d->type->dtype == ACT);
    for (int i = 0; i < 4 && is; i++)
        is = node_ints(d, ATTR_window, i / 2, 1) == 1 &&
             node_ints(d, ATTR_pad, i, 0) == 0;
    return is;
}

static bool reduces(const Node *d) {
    return (op_info[d->op].traits & REDUCES) != 0;
}

// A sum or a variance of each column of a tensor with the result's shape.
static bool is_reduction(const Graph *g, const TileSpace *s, NodeId n) {
    const Node *d = &g->node[n];
    return (d->op == OP_sum || d->op == OP_var) && s->batch == 1 &&
           d->type->dtype == F32 && reduction_kind(g, n) == COLUMN_REDUCTION &&
           tile_is_value(*g->node[d->arg[0]].type) &&
           tile_is_whole(s, *g->node[d->arg[0]].type);
}

TileSlots tile_slots(const Graph *g, const Group *group, NodeId n) {
    TileSlots s = {-1, -1, 0};
    for (NodeId m = group->first; m <= group->last; m++) {
        const Node *d = &g->node[m];
        if (!reduces(d))
            continue;
        TileSlots own = {-1, -1, s.count};
        for (NodeId k = group->first; k < m && own.sum < 0; k++)
            if (reduces(&g->node[k]) && g->node[k].arg[0] == d->arg[0])
                own.sum = tile_slots(g, group, k).sum;
        if (own.sum < 0)
            own.sum = own.count++;
        if (d->op == OP_var)
            own.squares = own.count++;
        s.count = own.count;
        if (m == n)
            s = own;
        if (m == n)
            break;
    }
    return s;
}

static bool is_node(const Search *s, const TileSpace *space, const Group *group,
                    NodeId call, NodeId n) {
    const Node *d = &s->g->node[n];
    if (n == group->workspace || is_unpacked(space, group, d) ||
        is_spread(s->g, space, group, call, n))
        return true;
    if (!is_reduction(s->g, space, n) && !tile_packs(s->g, space, d) &&
        !tile_computes(s->g, space, d))
        return false;
    for (int i = 0; i < d->num_args; i++) {
        NodeId arg = d->arg[i];
        bool good = group_has(group, arg) ? !reduces(&s->g->node[arg])
                                          : tile_reads(s->g, space, arg);
        if (!good)
            return false;
    }
    return true;
}

// Rows of a block of the input gradient of strided windows may be few, so that
// no variance is taken from them.
static bool takes_variance(const Graph *g, const Group *group) {
    for (NodeId n = group->first; n <= group->last; n++)
        if (g->node[n].op == OP_var)
            return true;
    return false;
}

static bool is_strided_grad(const Node *d) {
    return d->op == OP_conv_grad_input &&
           (node_ints(d, ATTR_stride, 0, 1) > 1 ||
            node_ints(d, ATTR_stride, 1, 1) > 1);
}

static bool is_epilogue(const Search *s, const Group *group, NodeId call) {
    TileSpace space = tile_space(s->g, call);
    if (group->kind != GROUP_GRID ||
        (is_strided_grad(&s->g->node[call]) && takes_variance(s->g, group)))
        return false;
    for (int i = 0; i < group->num_outputs; i++) {
        const Node *d = &s->g->node[group->output[i]];
        if (!reduces(d) && d->op != OP_pack && !tile_is_whole(&space, *d->type))
            return false;
    }
    for (NodeId n = group->first; n <= group->last; n++)
        if (!is_node(s, &space, group, call, n))
            return false;
    return true;
}

// Bytes of partial sums, written and read.
static int64_t partial_bytes(const Graph *g, const Group *group, NodeId call) {
    TileSpace space = tile_space(g, call);
    int64_t blocks = divide_up(space.rows, TILE_ROWS);
    return 2 * (int64_t)sizeof(float) * blocks * space.columns *
           tile_slots(g, group, NO_NODE).count;
}

// ---- the order of launches ----

static bool is_over(const Search *s, NodeId n, const Group *call) {
    for (int k = 0; k < call->num_inputs; k++)
        if (nodes_overlap(s->g, n, call->input[k]))
            return true;
    return false;
}

static bool results_over(const Search *s, const Group *group,
                         const Group *call) {
    for (int i = 0; i < group->num_outputs; i++)
        if (is_over(s, group->output[i], call))
            return true;
    return false;
}

static bool writes_over(const Search *s, const Group *group,
                        const Group *call) {
    return results_over(s, group, call) ||
           (group->workspace != NO_NODE && is_over(s, group->workspace, call));
}

// The first group that reads n; -1: none does.
static int first_reader(const Search *s, NodeId n) {
    int first = -1;
    for (int e = s->reader.first[n]; e >= 0; e = s->reader.next[e])
        if (first < 0 || s->reader.group[e] < first)
            first = s->reader.group[e];
    return first;
}

// The tile kernel runs in place of the epilogue, so the operands of the call
// must be in memory until then.  The device holds one call, so no other comes
// before the epilogue; nor do other shards, whose sums are calls.  A call that
// adds to a tensor in memory does not wait for other launches.
static int find_epilogue(const Search *s, int k, NodeId call) {
    const Group *group = s->fusions->group;
    int reader = first_reader(s, call);
    if (s->g->node[call].op == OP_conv_grad_weight || reader < 0 ||
        (call_adds_to(&s->g->node[call]) != NO_NODE && reader > k + 1) ||
        !is_epilogue(s, &group[reader], call))
        return -1;
    // A tile kernel does not use the epilogue's workspace.
    if (results_over(s, &group[reader], &group[k]))
        return -1;
    for (int i = k + 1; i < reader; i++)
        if (writes_over(s, &group[i], &group[k]) ||
            group_assigns_input(s->g, &group[i], &group[k]) ||
            group[i].kind == GROUP_CALL)
            return -1;
    return reader;
}

static bool is_fused(const LibraryFusions *fusions, int k) {
    for (int i = 0; i < fusions->count; i++)
        if (fusions->fusion[i].call == k || fusions->fusion[i].kernel == k)
            return true;
    return false;
}

static bool has_over(const Search *s, const Group *pool, const Group *group) {
    for (int i = 0; i < pool->num_outputs; i++)
        for (int k = 0; k < group->num_outputs; k++)
            if (nodes_overlap(s->g, pool->output[i], group->output[k]))
                return true;
    return writes_over(s, pool, group) ||
           (group->workspace != NO_NODE &&
            nodes_overlap(s->g, pool->output[0], group->workspace));
}

// A pool runs at the launch of its convolution or of the epilogue, so that its
// results must have their places since then.
static int find_pool(const Search *s, int k, NodeId call, int kernel) {
    const Group *group = s->fusions->group;
    int pool = tile_pool_of(s->g, group, &s->reader, call);
    int at = kernel >= 0 ? kernel : k;
    if (pool < at)
        return -1;
    for (int i = k; i < pool; i++)
        if (has_over(s, &group[pool], &group[i]))
            return -1;
    for (int i = 0; i < s->forks->count; i++) {
        const Fork *f = &s->forks->fork[i];
        if (f->call < at && f->join > at &&
            has_over(s, &group[pool], &group[f->call]))
            return -1;
    }
    return pool;
}

static bool has_other_readers(const Search *s, NodeId call, int epilogue) {
    for (int e = s->reader.first[call]; e >= 0; e = s->reader.next[e])
        if (s->reader.group[e] != epilogue)
            return true;
    return epilogue < 0 || s->is_output[call];
}

// ---- prologues ----

static int launch_of(const TileFusion *f) {
    return f->epilogue >= 0 ? f->epilogue : f->call;
}

// Whether launch k writes over what a kernel reads, by itself or by a library
// fusion.
static bool overwrites(const Search *s, int k, const Group *kernel) {
    const LibraryFusions *fusions = s->fusions;
    bool is = writes_over(s, &fusions->group[k], kernel) ||
              group_assigns_input(s->g, &fusions->group[k], kernel);
    for (int i = s->fusion[k]; i > 0 && !is; i = s->before[i - 1])
        is = fusions->fusion[i - 1].kernel >= 0 &&
             writes_over(s, &fusions->group[fusions->fusion[i - 1].kernel],
                         kernel);
    return is;
}

// Whether the kernel's operands are in memory until the last of its readers has
// run, be it in place of an epilogue, and its results are before others read
// them.
static bool is_kept(const Search *s, const TileFusions *f,
                    const TilePrologue *p) {
    const Group *kernel = &s->fusions->group[p->kernel];
    int last = p->last;
    for (int i = 0; i < f->count; i++) {
        if (f->fusion[i].epilogue == p->kernel)
            return false; // it is an epilogue
        if (p->stored_by >= 0 && f->fusion[i].call == p->stored_by &&
            launch_of(&f->fusion[i]) > last)
            return false;
        for (int o = 0; o < TILE_OPERANDS; o++)
            if (f->fusion[i].prologue[o] == p->kernel &&
                launch_of(&f->fusion[i]) > last)
                last = launch_of(&f->fusion[i]);
    }
    for (int k = p->kernel + 1; k <= last; k++)
        if (overwrites(s, k, kernel))
            return false;
    for (int i = 0; i < f->count; i++)
        if (f->fusion[i].pool >= 0 && launch_of(&f->fusion[i]) <= last &&
            f->fusion[i].pool > p->kernel &&
            writes_over(s, &s->fusions->group[f->fusion[i].pool], kernel))
            return false;
    return true;
}

static bool stores(const Group *group, NodeId n) {
    for (int i = 0; i < group->num_outputs; i++)
        if (group->output[i] == n)
            return true;
    return false;
}

// Sets or clears the prologue of the operands that a kernel computes, or of the
// one whose reader stores them.
static void mark_operands(const Search *s, const TileFusions *f,
                          const TilePrologue *p, int prologue) {
    for (int i = 0; i < f->count; i++) {
        if (f->fusion[i].call < 0)
            continue;
        const Group *call = &s->fusions->group[f->fusion[i].call];
        const Node *d = &s->g->node[group_first(s->g, call, CALLS)];
        if (p->stored_by >= 0 && p->stored_by != f->fusion[i].call)
            continue;
        for (int o = 0; o < TILE_OPERANDS; o++)
            if (stores(&s->fusions->group[p->kernel],
                       node_base(s->g, d->arg[o])))
                f->fusion[i].prologue[o] = prologue;
    }
}

static void find_prologues(const Search *s, TileFusions *f, Arena *a) {
    int found, kept = 0;
    const Group *group = s->fusions->group;
    f->prologue =
        graph_tile_prologues(s->g, group, s->fusions->num_groups, a, &found);
    for (int i = 0; i < found; i++) {
        TilePrologue p = f->prologue[i];
        if (kept > 0 && f->prologue[kept - 1].kernel == p.kernel)
            continue;
        mark_operands(s, f, &p, p.kernel);
        if (is_kept(s, f, &p))
            f->prologue[kept++] = p;
        else
            mark_operands(s, f, &p, -1);
    }
    f->num_prologues = kept;
}

// Whether it reads the variance of a batch_norm whose statistics a library may
// take: it would be in another form.
static bool reads_variance(const LibraryFusions *fusions, const Graph *g,
                           int k) {
    for (NodeId n = fusions->group[k].first;
         fusions->num_norms > 0 && n <= fusions->group[k].last; n++)
        if (g->node[n].op == OP_var_finalize)
            return true;
    return false;
}

static bool is_part_of_fusion(const Graph *g, const LibraryFusions *fusions,
                              const TileFusion *f) {
    bool is = (f->call >= 0 && is_fused(fusions, f->call)) ||
              (f->epilogue >= 0 && (is_fused(fusions, f->epilogue) ||
                                    reads_variance(fusions, g, f->epilogue))) ||
              (f->pool >= 0 && is_fused(fusions, f->pool));
    for (int o = 0; o < TILE_OPERANDS; o++)
        is |=
            f->prologue[o] >= 0 && (is_fused(fusions, f->prologue[o]) ||
                                    reads_variance(fusions, g, f->prologue[o]));
    return is;
}

static TileFusion attention_fusion(const Graph *g, const Group *group, int k) {
    NodeId n = group_first(g, &group[k], ATTENDS);
    return (TileFusion){.call = -1,
                        .epilogue = k,
                        .pool = -1,
                        .prologue = {-1, -1},
                        .windows = {-1, -1},
                        .stores = true,
                        .launches = g->node[n].op == OP_attention_grad ? 2 : 1};
}

TileFusions graph_tile_fusions(const Graph *g, const LibraryFusions *fusions,
                               const Forks *forks, Arena *a) {
    TileFusions f = {0};
    if (g->act != F16 && g->act != BF16)
        return f;
    Search s = {g,
                fusions,
                forks,
                group_readers(g, fusions->group, fusions->num_groups, a),
                ARENA_ARRAY(a, g->count, bool),
                ARENA_ARRAY(a, (size_t)fusions->num_groups + 1, int),
                ARENA_ARRAY(a, (size_t)fusions->count + 1, int)};
    for (int i = 0; i < fusions->count; i++) {
        s.before[i] = s.fusion[fusions->fusion[i].call];
        s.fusion[fusions->fusion[i].call] = i + 1;
    }
    for (NodeId n = 0; n < g->count; n++)
        if (g->node[n].op == OP_output)
            s.is_output[node_base(g, g->node[n].arg[0])] = true;
    f.fusion = ARENA_ARRAY(a, (size_t)fusions->num_groups + 1, TileFusion);
    for (int k = 0; k < fusions->num_groups; k++) {
        if (tile_attends(g, &fusions->group[k]))
            f.fusion[f.count++] = attention_fusion(g, fusions->group, k);
        if (fusions->group[k].kind != GROUP_CALL)
            continue;
        NodeId call = group_first(g, &fusions->group[k], CALLS);
        if (!tile_contraction(g, call))
            continue;
        TileFusion *to = &f.fusion[f.count++];
        *to = (TileFusion){.call = k,
                           .epilogue = find_epilogue(&s, k, call),
                           .prologue = {-1, -1},
                           .launches = 1};
        for (int o = 0; o < TILE_OPERANDS; o++)
            to->windows[o] =
                tile_windows(g, fusions->group, &s.reader, call, o);
        to->stores = has_other_readers(&s, call, to->epilogue);
        to->pool = find_pool(&s, k, call, to->epilogue);
        int64_t bytes = graph_bytes(g, g->node[call].type);
        to->bytes = to->epilogue < 0 ? 0 : to->stores ? bytes : 2 * bytes;
        to->bytes += to->pool < 0 ? 0 : bytes;
        if (to->epilogue < 0)
            continue;
        const Group *epilogue = &fusions->group[to->epilogue];
        to->bytes -= partial_bytes(g, epilogue, call);
        to->launches += tile_slots(g, epilogue, NO_NODE).count > 0;
    }
    find_prologues(&s, &f, a);
    for (int i = 0; i < f.count; i++)
        f.fusion[i].fused = is_part_of_fusion(g, fusions, &f.fusion[i]);
    return f;
}

const TilePrologue *tile_prologue_of(const TileFusions *f, int k) {
    for (int i = 0; i < f->num_prologues; i++)
        if (f->prologue[i].kernel == k)
            return &f->prologue[i];
    return NULL;
}

const TileFusion *tile_taken(const TileFusions *f, int k) {
    for (int i = 0; i < f->count; i++)
        if (f->fusion[i].taken &&
            (f->fusion[i].call == k || f->fusion[i].epilogue == k ||
             f->fusion[i].pool == k))
            return &f->fusion[i];
    return NULL;
}

static bool is_taken(const TileFusion *f) {
    return f->taken;
}

static bool is_any(const TileFusion *f) {
    (void)f;
    return true;
}

static bool is_apart(const TileFusion *f) {
    return !f->fused;
}

static bool is_applied(const TileFusions *f, int kernel, int readers,
                       bool (*is_in)(const TileFusion *f)) {
    int found = 0;
    for (int i = 0; i < f->count; i++)
        for (int o = 0; o < TILE_OPERANDS; o++)
            found += f->fusion[i].prologue[o] == kernel && is_in(&f->fusion[i]);
    return found == readers;
}

bool tile_skips(const TileFusions *f, int prologue) {
    const TilePrologue *p = &f->prologue[prologue];
    return is_applied(f, p->kernel, p->readers, is_taken);
}

bool tile_replaces(const TileFusions *f, int k) {
    for (int i = 0; i < f->num_prologues; i++)
        if (f->prologue[i].kernel == k && tile_skips(f, i))
            return true;
    return tile_taken(f, k) != NULL;
}

Saving tile_saving(const TileFusions *f, bool fused) {
    bool (*is_in)(const TileFusion *f) = fused ? is_any : is_apart;
    Saving saving = {0};
    for (int i = 0; i < f->count; i++) {
        const TileFusion *own = &f->fusion[i];
        if (!is_in(own))
            continue;
        saving.launches += (own->call >= 0) + (own->epilogue >= 0) +
                           (own->pool >= 0) - own->launches;
        saving.bytes += own->bytes;
    }
    for (int i = 0; i < f->num_prologues; i++) {
        const TilePrologue *p = &f->prologue[i];
        bool is = is_applied(f, p->kernel, p->readers, is_in);
        saving.launches += is;
        saving.bytes += is ? p->bytes : 0;
    }
    return saving;
}

bool *tile_replaced(const TileFusions *f, bool fused, int num_groups,
                    Arena *a) {
    bool (*is_in)(const TileFusion *f) = fused ? is_any : is_apart;
    bool *replaced = ARENA_ARRAY(a, (size_t)num_groups + 1, bool);
    for (int i = 0; i < f->count; i++) {
        const TileFusion *own = &f->fusion[i];
        if (own->epilogue >= 0 && is_in(own))
            replaced[own->epilogue] = true;
        if (own->pool >= 0 && is_in(own))
            replaced[own->pool] = true;
    }
    for (int i = 0; i < f->num_prologues; i++)
        if (is_applied(f, f->prologue[i].kernel, f->prologue[i].readers, is_in))
            replaced[f->prologue[i].kernel] = true;
    return replaced;
}
