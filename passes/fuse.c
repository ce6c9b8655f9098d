// Fuse: which nodes share a kernel.
//
//   needs   a primitive, typed and pruned graph
//   keeps   every value that an effect depends on
//   leaves  each node in a group (a run of nodes that is launched as one), a
//           leaf or a view; a node that several kernels need is copied into
//           each, so that no kernel stores what another can recompute cheaply
//
// The method.  First it is settled which values must be in memory: operands of
// library calls, results of reductions, and what would cost more to recompute
// than to store.  These are the roots.  A root's depth is the number of roots
// on the longest path before it; roots of equal depth cannot depend on one
// another, so those that iterate over the same space and read a common tensor
// become one cluster.  A sum over what a kernel stores anyway joins that kernel
// and has its depth, and one over columns joins a kernel of rows that reads the
// same.  All assignments are one cluster, launched last.  Then the graph is
// rebuilt cluster by cluster, each with its own copies of the nodes between its
// inputs and its roots, and of what it would read although it has all that it
// follows from.
//
// A fused kernel computes in f32 and rounds where it stores, so fusing changes
// results by leaving roundings out, and by rounding to ACT what is stored
// although it could be computed again from activations.

#include "passes/fuse.h"
#include "passes/fit.h"

#include <limits.h>
#include <string.h>

// Whether n is what is never in memory, or a view of it.
static bool is_immediate(const Fuse *f, NodeId n) {
    return brief(f, base_of(f, n))->immediate;
}

// Asks for n to be in memory.  A view of something computed asks for that.
static void store(Fuse *f, NodeId n, Reason why) {
    if (is_immediate(f, n))
        return;
    while (!f->stored[n]) {
        f->stored[n] = f->changed = true;
        if (!(facts(f, n) & VIEW)) {
            f->why[n] = why;
            return;
        }
        n = brief(f, n)->arg[0];
    }
}

// ---- which values must be in memory ----

// What an element takes that is computed.
enum { LONG = 1, MUCH = 2 };

// Whether a kernel that walks over the columns of n can keep operand arg from
// row to row instead of computing it for each.
static bool is_kept(const Fuse *f, NodeId n, NodeId arg) {
    Type t = *at(f, n)->type, a = *at(f, arg)->type;
    return (facts(f, n) & POINTWISE) && a.rank > 0 && is_small(f, arg) &&
           a.dim[a.rank - 1] == t.dim[t.rank - 1];
}

// Whether an operation reads many elements for each of its own.
static bool is_window(const Fuse *f, NodeId n) {
    Op op = brief(f, n)->op;
    return op == OP_max_pool || op == OP_max_pool_index || op == OP_avg_pool ||
           op == OP_resize_grad;
}

// How many elements of its operand a kernel for node n asks for: a pool all of
// each window, its gradient one for each window that an element is in; what is
// scattered, or stored in wider rows, is asked for once.
static int64_t demand(const Fuse *f, NodeId n) {
    const Node *d = at(f, n);
    if ((facts(f, n) & SCATTERS) || pads_columns(f->old, n))
        return count_of(f, d->arg[0]);
    int64_t count = count_of(f, n);
    bool gradient = d->op == OP_max_pool_grad || d->op == OP_avg_pool_grad;
    for (int i = 0; i < 2 && (facts(f, n) & WINDOW); i++) {
        int64_t window = node_ints(d, ATTR_window, i, 1);
        int64_t stride = gradient ? node_ints(d, ATTR_stride, i, 1) : 1;
        count *= (window + stride - 1) / stride;
    }
    return count;
}

// How often at most a kernel for node n would compute an element of its operand
// arg.
static int64_t times(const Fuse *f, NodeId n, NodeId arg) {
    int64_t count = count_of(f, arg);
    bool once = !is_inline(f, arg) || f->scattered[n] || count <= 1 ||
                count == space_rows(at(f, n)->type) || is_kept(f, n, arg);
    return once ? 1 : (demand(f, n) + count - 1) / count;
}

// The gradient of a pool that one kernel stores and no other asks for, for each
// node of the graph: that kernel computes each window's value once.
static bool *find_unfolded(const Fuse *f) {
    const Graph *g = f->old;
    uint32_t *uses = graph_uses(g, f->scratch);
    bool *unfolded = ARENA_ARRAY(f->scratch, g->count, bool);
    for (NodeId n = 0; n < g->count; n++) {
        NodeId pool = f->stored[n] ? brief(f, n)->pool : NO_NODE;
        if (pool == NO_NODE)
            continue;
        unfolded[pool] = !f->apart[pool];
        for (NodeId m = n; m != pool; m = brief(f, m)->arg[0])
            unfolded[pool] &= uses[brief(f, m)->arg[0]] == 1 &&
                              !f->apart[brief(f, m)->arg[0]];
    }
    return unfolded;
}

// Whether a value that takes long, or that reads much, is worth memory when
// elements of it are computed so often.  Computing one twice takes no longer
// than writing it and reading it twice.
static bool is_worth(unsigned taken, int64_t often) {
    return ((taken & LONG) && often > 2) || ((taken & MUCH) && often > 1);
}

// Of the costly values that would be computed repeatedly, those are stored
// with which the others are costly no more.
static void store_costly(Fuse *f) {
    int64_t *often = ARENA_ARRAY(f->scratch, f->old->count, int64_t);
    unsigned *taken = ARENA_ARRAY(f->scratch, f->old->count, unsigned);
    bool *unfolded = find_unfolded(f);
    for (NodeId n = 0; n < f->old->count; n++) {
        int last = brief(f, n)->num_args - unfolded[n];
        for (int i = 0; i < last; i++) {
            NodeId arg = brief(f, n)->arg[i];
            int64_t count = times(f, n, arg);
            often[arg] = count > often[arg] ? count : often[arg];
        }
    }
    for (NodeId n = 0; n < f->old->count; n++) {
        taken[n] =
            (facts(f, n) & COSTLY ? LONG : 0) | (is_window(f, n) ? MUCH : 0);
        for (int i = 0; i < brief(f, n)->num_args; i++)
            taken[n] |= taken[brief(f, n)->arg[i]];
        if (is_worth(taken[n], often[n]))
            store(f, n, REASON_repeated);
        if (!is_inline(f, n) || in_memory(f, n))
            taken[n] = 0;
    }
}

// What several nodes take pixels from is computed once for all of them: a
// resized image that is resized again would double with each.
static void store_taken(Fuse *f) {
    bool *taken = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = 0; n < f->old->count; n++) {
        if (brief(f, n)->op != OP_take)
            continue;
        NodeId image = brief(f, n)->arg[0];
        if (taken[image] && is_inline(f, image))
            store(f, image, REASON_repeated);
        taken[image] = true;
    }
}

// What is the same for all of a batch is turned once: threads that take
// neighbours of it would each read them far apart.
static void store_turned(Fuse *f) {
    for (NodeId n = 0; n < f->old->count; n++) {
        NodeId turned = at(f, n)->num_args ? at(f, n)->arg[0] : NO_NODE;
        if (at(f, n)->op == OP_slice && at(f, turned)->op == OP_transpose &&
            !f->batched[turned])
            store(f, turned, REASON_repeated);
    }
}

// Expressions are written, and compiled by others, from their ends on, which
// takes memory for each operation on the way.
static void store_deep(Fuse *f) {
    enum { DEEPEST = 500 };
    int *below = ARENA_ARRAY(f->scratch, f->old->count, int);
    for (NodeId n = 0; n < f->old->count; n++) {
        for (int i = 0; i < brief(f, n)->num_args; i++) {
            NodeId arg = brief(f, n)->arg[i];
            if (!in_memory(f, arg) && below[arg] >= below[n])
                below[n] = below[arg] + 1;
        }
        if (below[n] >= DEEPEST && is_inline(f, n))
            store(f, n, REASON_deep);
    }
}

// Whether n is one number or tensor to what is computed from it: a number about
// many tensors may be made in the kernel of updates, which has them as parts.
static bool is_one_read(const Fuse *f, NodeId n) {
    return in_memory(f, n) || !is_inline(f, n) || count_of(f, n) == 1;
}

// What a walk down from a node has seen.
typedef struct {
    NodeId *stack;
    int *seen, walk; // the last walk that came by each node
} Down;

// How many tensors in memory a kernel reads for n, each counted once.
static int count_reads(const Fuse *f, Down *down, NodeId n) {
    int reads = 0, height = 0;
    down->walk++;
    down->stack[height++] = n;
    while (height > 0) {
        const Brief *d = brief(f, down->stack[--height]);
        for (int i = 0; i < d->num_args; i++) {
            NodeId arg = d->arg[i];
            if (down->seen[arg] == down->walk || brief(f, arg)->immediate)
                continue;
            down->seen[arg] = down->walk;
            if (is_one_read(f, arg))
                reads++;
            else
                down->stack[height++] = arg;
        }
    }
    return reads;
}

// The operand of n for which the most is read that n reads too, or NO_NODE.
static NodeId widest_operand(const Fuse *f, NodeId n, const int *below) {
    NodeId most = NO_NODE;
    for (int i = 0; i < brief(f, n)->num_args; i++) {
        NodeId arg = brief(f, n)->arg[i];
        while ((facts(f, arg) & VIEW) && !in_memory(f, arg))
            arg = brief(f, arg)->arg[0];
        if ((facts(f, arg) & POINTWISE) && !is_one_read(f, arg) &&
            below[arg] > 1 && (most == NO_NODE || below[arg] > below[most]))
            most = arg;
    }
    return most;
}

// The time that a compiler takes grows faster than what a kernel reads.  Reads
// are added up, and counted only where that comes to too many.
static void store_wide(Fuse *f) {
    enum { MOST_READS = 128 };
    int *below = ARENA_ARRAY(f->scratch, f->old->count, int);
    Down down = {ARENA_ARRAY(f->scratch, f->old->count, NodeId),
                 ARENA_ARRAY(f->scratch, f->old->count, int), 0};
    for (NodeId n = 0; n < f->old->count; n++) {
        NodeId most;
        for (int i = 0; i < brief(f, n)->num_args; i++) {
            NodeId arg = brief(f, n)->arg[i];
            below[n] += is_one_read(f, arg) ? 1 : below[arg];
        }
        if (below[n] <= MOST_READS || !(facts(f, n) & POINTWISE))
            continue;
        below[n] = count_reads(f, &down, n);
        if (below[n] <= MOST_READS ||
            (most = widest_operand(f, n, below)) == NO_NODE)
            continue;
        store(f, most, REASON_wide);
        below[n] = count_reads(f, &down, n);
    }
}

// What is in memory because of what it is or who reads it.
static void store_by_kind(Fuse *f) {
    for (NodeId n = 0; n < f->old->count; n++) {
        const Node *d = at(f, n);
        bool library = (facts(f, n) & CALLS) || d->op == OP_output ||
                       ((facts(f, n) & OVERALL) && !f->joined[n]);
        for (int i = 0; i < d->num_args && library; i++) {
            store(f, d->arg[i], REASON_none);
            f->called[memory_base(f, d->arg[i])] = true;
        }
        if (!(facts(f, n) & EFFECT) && !is_inline(f, n) && !f->joined[n])
            store(f, n, REASON_none);
    }
}

// That a value shares a kernel with others is a rewrite, one for each value.
static void keep_apart(Fuse *f) {
    for (NodeId n = 0; n < f->old->count; n++) {
        if (facts(f, n) & (LEAF | VIEW | CALLS | EFFECT))
            continue;
        f->apart[n] =
            !rewrite_next(f->old, f->options) || f->options->level == 0;
        if (f->apart[n] && is_inline(f, n))
            store(f, n, REASON_unfused);
    }
}

static bool is_late(const Fuse *f, NodeId n) {
    return f->late[n] && f->stored[n] && !f->apart[n];
}

// Below an assignment, a stack or a number that its kernel computes, what is
// neither such an element nor a scalar is stored first.  A pad directly below
// it is a store to other addresses.
static void store_for_update(Fuse *f) {
    bool *updating = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = f->old->count; n-- > 0;) {
        const Brief *d = brief(f, n);
        if (d->op == OP_assign) {
            NodeId value = d->arg[1];
            if (f->scattered[value] && !f->stored[value])
                value = brief(f, value)->arg[0];
            updating[value] = true;
        }
        bool walks = f->joined[n] || is_late(f, n) || (facts(f, n) & STACKS);
        for (int i = 0; i < d->num_args && walks; i++)
            updating[d->arg[i]] = true;
        if (!updating[n] || !is_inline(f, n) || f->stored[n])
            continue;
        if (!fits_update(f, n))
            store(f, n, REASON_update);
        else
            for (int i = 0; i < d->num_args; i++)
                updating[d->arg[i]] = true;
    }
}

// Whether such a kernel can make the sum n besides: of everything, or of each
// column, for which its threads keep what they have.  A variance over blocks
// needs pivots, for which whole rows would be reduced first.
static bool fits_sum(const Fuse *f, NodeId n, NodeId space) {
    enum { MOST_COLUMNS = 1024 };
    const Brief *d = brief(f, n);
    if (d->extent == OVER_ALL)
        return d->op != OP_var;
    return d->op == OP_sum && d->extent == OVER_COLUMN &&
           same_shape(f, d->arg[0], space) &&
           space_columns(at(f, space)->type) <= MOST_COLUMNS;
}

// Whether node n can be computed by a kernel that walks over the rows of row
// reduction `row`, which is below its operand arg.
static bool fits_rows(const Fuse *f, NodeId n, NodeId arg, NodeId row) {
    NodeId space = brief(f, row)->arg[0];
    int64_t elements = count_of(f, space),
            rows = space_rows(at(f, space)->type);
    bool per_row = count_of(f, arg) == rows;
    if (reduces_rows(f, n))
        return same_shape(f, n, row) && count_of(f, arg) == elements;
    if (facts(f, n) & REDUCES)
        return fits_sum(f, n, space) &&
               (count_of(f, arg) == elements ||
                (per_row && brief(f, n)->extent == OVER_ALL));
    if (pads_columns(f->old, n)) // rows are stored that far apart
        return f->stored[n] && count_of(f, arg) == elements;
    // Of as many elements, in as many columns: so its rows are the same rows.
    bool by_row =
        count_of(f, n) == elements &&
        space_columns(at(f, n)->type) == space_columns(at(f, space)->type);
    return (facts(f, n) & POINTWISE) && (by_row || count_of(f, n) == rows);
}

// Finds the row reduction that decides the space of each node's kernel, and
// stores those for which there is no one space.
static void find_rows(Fuse *f) {
    for (NodeId n = 0; n < f->old->count; n++) {
        f->row[n] = NO_NODE;
        for (int i = 0; i < brief(f, n)->num_args; i++) {
            NodeId arg = brief(f, n)->arg[i], row = f->row[arg];
            if (row == NO_NODE || f->stored[arg])
                continue;
            bool same = f->row[n] == NO_NODE ||
                        same_shape(f, brief(f, f->row[n])->arg[0],
                                   brief(f, row)->arg[0]);
            if (same && fits_rows(f, n, arg, row))
                f->row[n] = row;
            else
                store(f, arg, REASON_rows);
        }
        if (reduces_rows(f, n) && f->row[n] == NO_NODE)
            f->row[n] = n;
    }
}

// ---- clusters ----

static bool is_root(const Fuse *f, NodeId n) {
    return f->stored[n] && !(facts(f, n) & (LEAF | VIEW | EFFECT));
}

static GroupKind root_kind(const Fuse *f, NodeId n) {
    if (facts(f, n) & CALLS)
        return GROUP_CALL;
    if (facts(f, n) & SCATTERS)
        return GROUP_SCATTER;
    if (facts(f, n) & OVERALL)
        return GROUP_CHECK;
    if (facts(f, n) & STACKS)
        return GROUP_STACK;
    return f->row[n] != NO_NODE ? GROUP_ROWS : GROUP_GRID;
}

// The only root of n's own depth that n is computed from, element by element,
// or NO_NODE where there is none, another one, or another way.
static NodeId find_source(const Fuse *f, NodeId n) {
    NodeId source = NO_NODE;
    if (!(facts(f, n) & POINTWISE))
        return NO_NODE;
    for (int i = 0; i < brief(f, n)->num_args; i++) {
        NodeId arg = brief(f, n)->arg[i];
        if (f->depth[arg] < f->depth[n])
            continue;
        bool other = f->source[arg] == NO_NODE ||
                     (source != NO_NODE && f->source[arg] != source);
        if (other || !same_shape(f, arg, n))
            return NO_NODE;
        source = f->source[arg];
    }
    return source;
}

static NodeId root_space(const Fuse *f, NodeId n) {
    if (f->row[n] != NO_NODE)
        return brief(f, f->row[n])->arg[0];
    if (facts(f, n) & REDUCES)
        return brief(f, n)->arg[0];
    NodeId pool = brief(f, n)->pool;
    if (pool != NO_NODE && (pool == n || !f->stored[pool])) {
        NodeId dy = brief(f, pool)->arg[brief(f, pool)->num_args - 1];
        if (!in_memory(f, dy))
            return dy;
    }
    return n;
}

// The root whose kernel can also compute the sum n: it walks over the same
// elements, and nothing else that n needs is made at the same time.
static NodeId find_host(const Fuse *f, NodeId n) {
    if (f->apart[n] || !(facts(f, n) & REDUCES) ||
        root_kind(f, n) != GROUP_GRID)
        return NO_NODE;
    NodeId arg = brief(f, n)->arg[0], source = f->source[arg];
    if (source == NO_NODE || (facts(f, source) & REDUCES) ||
        !same_shape(f, root_space(f, source), arg))
        return NO_NODE;
    GroupKind kind = root_kind(f, source);
    bool joins =
        kind == GROUP_GRID || (kind == GROUP_ROWS && fits_sum(f, n, arg));
    return joins ? source : NO_NODE;
}

static void find_depths(Fuse *f) {
    for (NodeId n = 0; n < f->old->count; n++) {
        int depth = 0;
        for (int i = 0; i < brief(f, n)->num_args; i++)
            if (f->depth[brief(f, n)->arg[i]] > depth)
                depth = f->depth[brief(f, n)->arg[i]];
        f->depth[n] = depth;
        f->host[n] = NO_NODE;
        f->source[n] = NO_NODE;
        if (is_root(f, n)) {
            f->host[n] = find_host(f, n);
            f->depth[n] += f->host[n] == NO_NODE;
            if (f->host[n] != NO_NODE)
                f->row[n] = f->row[f->host[n]];
            f->source[n] = n;
        } else if (depth > 0) {
            f->source[n] = find_source(f, n);
        }
    }
}

// Sets of the stored tensors that a node reads, as 64 bits: two roots whose
// sets are disjoint surely read nothing in common.
typedef struct {
    uint64_t all, large;
} Reads;

static Reads find_reads(const Fuse *f, const Reads *below, NodeId n) {
    Reads set = {0};
    for (int i = 0; i < brief(f, n)->num_args; i++) {
        NodeId arg = brief(f, n)->arg[i];
        if (brief(f, arg)->immediate)
            continue;
        uint64_t bit = UINT64_C(1) << (arg * 0x9E3779B1u >> 26);
        bool stored = f->stored[arg] && !(facts(f, arg) & VIEW);
        set.all |= stored ? bit : below[arg].all;
        set.large |= !stored ? below[arg].large : is_small(f, arg) ? 0 : bit;
    }
    return set;
}

// What is worth sharing over a space.  Where that is large, a kernel more
// costs nothing beside it, but roots that have only parameters in common, as
// views of one batch, would be in memory together.
static uint64_t worth_sharing(const Fuse *f, Reads set, NodeId space) {
    enum { LARGE = 1 << 20 };
    return count_of(f, space) > LARGE ? set.large : set.all;
}

static int cluster_new(Fuse *f, Cluster c) {
    f->clusters[f->count] = c;
    return f->count++;
}

static void cluster_join(Fuse *f, int k, NodeId n) {
    Cluster *c = &f->clusters[k];
    ARENA_APPEND(f->scratch, c->root, c->num_roots, n);
    c->priority = n > c->priority ? n : c->priority;
    f->cluster[n] = k;
}

// What is known while clusters are found.
typedef struct {
    Reads *below;   // of each node
    uint64_t *sets; // of each cluster, what its roots read
    int *newest;    // of each depth, its last cluster
} Search;

// Whether two spaces have the same rows and columns, whatever their shapes.
static bool same_rows(const Fuse *f, NodeId a, NodeId b) {
    const Type *x = at(f, a)->type, *y = at(f, b)->type;
    return space_rows(x) == space_rows(y) &&
           space_columns(x) == space_columns(y);
}

// The cluster of the kind and depth that is wanted which reads something of a
// set, or NONE.  No more than a few of a depth are looked at.
static int cluster_like(const Fuse *f, const Search *s, Cluster want,
                        uint64_t set,
                        bool alike(const Fuse *f, NodeId a, NodeId b)) {
    enum { MOST_CLUSTERS = 64 };
    int k = s->newest[want.depth];
    for (int seen = 0; k != NONE && seen < MOST_CLUSTERS; seen++) {
        const Cluster *c = &f->clusters[k];
        if (c->kind == want.kind && (s->sets[k] & set) &&
            alike(f, c->space, want.space))
            return k;
        k = c->older;
    }
    return NONE;
}

// Whether n is a sum over columns of a matrix in memory, which any kernel that
// walks over the same rows can make, whatever their shape.
static bool is_loose(const Fuse *f, NodeId n) {
    if (!(facts(f, n) & REDUCES) || f->apart[n] || f->host[n] != NO_NODE ||
        root_kind(f, n) != GROUP_GRID)
        return false;
    NodeId matrix = brief(f, n)->arg[0];
    return brief(f, n)->extent == OVER_COLUMN &&
           at(f, matrix)->type->rank == 2 && in_memory(f, matrix) &&
           fits_sum(f, n, matrix);
}

// The kernel of rows that reads such a matrix, or NONE.
static int rows_like(const Fuse *f, const Search *s, NodeId n) {
    NodeId matrix = brief(f, n)->arg[0];
    Cluster want = {.kind = GROUP_ROWS, .depth = f->depth[n], .space = matrix};
    uint64_t set = worth_sharing(f, s->below[n], matrix);
    return cluster_like(f, s, want, set, same_rows);
}

// Roots of one depth are joined where they read something in common.
static void find_cluster(Fuse *f, Search *s, NodeId n) {
    Cluster want = {.kind = root_kind(f, n),
                    .depth = f->depth[n],
                    .space = root_space(f, n),
                    .older = s->newest[f->depth[n]]};
    uint64_t set = worth_sharing(f, s->below[n], want.space);
    int k = f->host[n] == NO_NODE ? NONE : f->cluster[f->host[n]];
    if (k == NONE && !f->apart[n] &&
        (want.kind == GROUP_GRID || want.kind == GROUP_ROWS))
        k = cluster_like(f, s, want, set, same_shape);
    if (k == NONE)
        k = s->newest[want.depth] = cluster_new(f, want);
    s->sets[k] |= set;
    cluster_join(f, k, n);
}

// After all others, so that the kernels of rows are known.
static void find_loose_clusters(Fuse *f, Search *s) {
    for (NodeId n = 0; n < f->old->count; n++) {
        if (!is_root(f, n) || !is_loose(f, n))
            continue;
        int k = rows_like(f, s, n);
        if (k == NONE) {
            find_cluster(f, s, n);
        } else {
            f->row[n] = f->row[f->clusters[k].root[0]];
            cluster_join(f, k, n);
        }
    }
}

static void find_clusters(Fuse *f) {
    const Graph *g = f->old;
    Search s = {ARENA_ARRAY(f->scratch, g->count, Reads),
                ARENA_ARRAY(f->scratch, (size_t)g->count + 1, uint64_t),
                ARENA_ARRAY(f->scratch, (size_t)g->count + 1, int)};
    int update = NONE;
    f->count = 0;
    for (NodeId n = 0; n <= g->count; n++)
        s.newest[n] = NONE;
    for (NodeId n = 0; n < g->count; n++) {
        s.below[n] = find_reads(f, s.below, n);
        f->cluster[n] = NONE;
        if (brief(f, n)->op == OP_assign || is_late(f, n)) {
            if (update == NONE)
                update = cluster_new(f, (Cluster){.kind = GROUP_UPDATE});
            cluster_join(f, update, n);
        }
        if (is_root(f, n) && !is_late(f, n) && !is_loose(f, n))
            find_cluster(f, &s, n);
    }
    find_loose_clusters(f, &s);
    if (update != NONE) // after everything that reads what it assigns
        f->clusters[update].priority = g->count;
}

// ---- what costs more to recompute than to store ----

// Stores the first of the dear nodes on each path, and with them each that has
// a multiple of `every` others below: with those stored the rest may be cheap.
static void store_dear(Fuse *f, const bool *dear, int every) {
    int *below = ARENA_ARRAY(f->scratch, f->old->count, int);
    for (NodeId n = 0; n < f->old->count; n++) {
        for (int i = 0; i < brief(f, n)->num_args && is_inline(f, n); i++) {
            NodeId arg = brief(f, n)->arg[i];
            int count = below[arg] + dear[arg];
            if ((dear[arg] || !f->stored[arg]) && count > below[n])
                below[n] = count;
        }
        if (dear[n] && below[n] % every == 0) {
            store(f, n, REASON_traffic);
            f->narrow[n] = can_narrow(f, n);
        }
    }
}

// What a normalisation over rows, or a soft-max, takes is kept in full.
static bool *find_in_rows(const Fuse *f) {
    bool *in_rows = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = f->old->count; n-- > 0;) {
        bool same = (facts(f, n) & (POINTWISE | VIEW | INDEXES)) && in_rows[n];
        for (int i = 0; i < brief(f, n)->num_args; i++)
            in_rows[brief(f, n)->arg[i]] |= same || reduces_rows(f, n);
    }
    return in_rows;
}

// ---- the pass ----

// What is needed in memory before the update is not made there.  Returns who
// needs each node in the end.
static NodeId *leave_update(Fuse *f) {
    for (;;) {
        NodeId *user = find_users(f), n = find_left(f, user);
        if (n == NO_NODE)
            return user;
        f->joined[n] = false;
        store(f, n, REASON_none);
        for (int i = 0; i < brief(f, n)->num_args; i++)
            if (facts(f, n) & OVERALL)
                store(f, brief(f, n)->arg[i], REASON_none);
    }
}

static void settle(Fuse *f) {
    Arena *whole = f->scratch, *before = f->settled;
    f->scratch = f->settled = arena_new();
    NodeId *user;
    do {
        f->changed = false;
        store_for_update(f);
        find_rows(f);
        user = leave_update(f);
    } while (f->changed);
    f->late = find_late(f, user); // of what is in memory by now
    find_depths(f);
    find_clusters(f);
    f->scratch = whole;
    arena_free(before); // what was late was asked for until now
}

// Stores some of what costs more to recompute.  What finding them takes is
// given back, as there are many rounds.
static void store_some(Fuse *f, int every) {
    Arena *whole = f->scratch;
    f->scratch = arena_new();
    store_dear(f, find_dear(f), every);
    arena_free(f->scratch);
    f->scratch = whole;
}

// Round by round.  In a chain of many blocks a round for each would make the
// cost quadratic: after a while, sooner where a round takes long, they are
// looked at in runs of a few.
static void store_by_cost(Fuse *f) {
    enum { ONE_BY_ONE = 8, LONG_TIME = 200000, RUN = 8, MOST_ROUNDS = 128 };
    int alone = (int)(LONG_TIME / (f->old->count + 1));
    alone = alone < ONE_BY_ONE ? alone : ONE_BY_ONE;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        f->changed = false;
        store_some(f, round < alone ? INT_MAX : RUN);
        if (!f->changed)
            return;
        settle(f);
    }
    store_some(f, 1);
    settle(f);
}

Graph *pass_fuse(Graph *g, Arena *scratch, const PassOptions *o) {
    g = graph_fit(g, scratch);
    Fuse f = {.old = g,
              .scratch = scratch,
              .options = o,
              .stored = ARENA_ARRAY(scratch, g->count, bool),
              .called = ARENA_ARRAY(scratch, g->count, bool),
              .why = ARENA_ARRAY(scratch, g->count, Reason),
              .apart = ARENA_ARRAY(scratch, g->count, bool),
              .batched = graph_batched(g, scratch),
              .narrow = ARENA_ARRAY(scratch, g->count, bool),
              .depth = ARENA_ARRAY(scratch, g->count, int),
              .source = ARENA_ARRAY(scratch, g->count, NodeId),
              .host = ARENA_ARRAY(scratch, g->count, NodeId),
              .row = ARENA_ARRAY(scratch, g->count, NodeId),
              .cluster = ARENA_ARRAY(scratch, g->count, int),
              .clusters = ARENA_ARRAY(scratch, (size_t)g->count + 1, Cluster)};
    f.brief = find_brief(g, scratch);
    f.users = graph_users(g, scratch);
    f.in_rows = find_in_rows(&f);
    f.fits = find_fits(&f);
    f.scattered = find_scattered(&f);
    f.joined = find_joined(&f);
    f.late = find_late(&f, find_users(&f));
    store_by_kind(&f);
    keep_apart(&f);
    store_taken(&f);
    store_turned(&f);
    store_costly(&f);
    store_deep(&f);
    store_wide(&f);
    settle(&f);
    store_by_cost(&f);
    g = place_groups(&f, find_members(&f));
    arena_free(f.settled);
    return g;
}
