// Clusters: which roots share a kernel.
//
// A root's depth is the number of roots on the longest path before it, its own
// included; but a sum over what another kernel stores anyway is hosted by that
// and has its depth.

#include "passes/fuse.h"

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
        if (k == NONE)
            find_cluster(f, s, n);
        else
            cluster_join(f, k, n);
    }
}

void find_clusters(Fuse *f) {
    const Graph *g = f->old;
    Search s = {ARENA_ARRAY(f->scratch, g->count, Reads),
                ARENA_ARRAY(f->scratch, (size_t)g->count + 1, uint64_t),
                ARENA_ARRAY(f->scratch, (size_t)g->count + 1, int)};
    int update = NONE;
    f->count = 0;
    find_depths(f);
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
