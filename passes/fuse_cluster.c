// Clusters: roots that share a kernel.
//
// A root's depth is the number of roots on the longest path before it, its own
// included.  A kernel that stores a value also computes a sum over it, which
// then has the depth of that kernel.

#include "ir/attr.h"
#include "passes/fuse.h"

// Sets of the stored tensors that a node reads, as 64 bits: two roots whose
// sets are disjoint surely read nothing in common.
typedef struct {
    uint64_t all, large;
} Reads;

// FuseAnalysis of roots and of the nodes between them, during clustering.
typedef struct {
    const FuseAnalysis *f;
    const Stored *s;
    Clusters *c;
    int *depth;     // of each node
    NodeId *source; // the only root of its depth that it is by element, if any
    NodeId *producer; // of a sum, the root whose kernel computes it, or NO_NODE
    Reads *below;   // of each node
    uint64_t *sets; // of each cluster, the tensors that its roots read
    int *newest;    // of each depth, its last cluster
    int update;     // the last cluster of assignments
} Roots;

static bool is_root(const FuseAnalysis *f, const Stored *s, NodeId n) {
    return s->stored[n] && !(traits(f, n) & (LEAF | VIEW | EFFECT));
}

static GroupKind root_kind(const FuseAnalysis *f, const Stored *s, NodeId n) {
    GroupKind kind = group_kind(traits(f, n));
    return kind == GROUP_GRID && s->row[n] != NO_NODE ? GROUP_ROWS : kind;
}

static NodeId root_space(const FuseAnalysis *f, const Stored *s, NodeId n) {
    if (s->row[n] != NO_NODE)
        return info(f, s->row[n])->arg[0];
    if (traits(f, n) & REDUCES)
        return info(f, n)->arg[0];
    NodeId pool = info(f, n)->pool;
    if (pool != NO_NODE && (pool == n || !s->stored[pool])) {
        NodeId dy = info(f, pool)->arg[info(f, pool)->num_args - 1];
        if (!in_memory(f, s, dy))
            return dy;
    }
    return n;
}

// The only root of n's own depth that n is computed from, element by element,
// or NO_NODE where there is none, another one, or another way.
static NodeId find_source(const Roots *r, NodeId n) {
    const FuseAnalysis *f = r->f;
    NodeId source = NO_NODE;
    if (!(traits(f, n) & POINTWISE))
        return NO_NODE;
    for (int i = 0; i < info(f, n)->num_args; i++) {
        NodeId arg = info(f, n)->arg[i];
        if (r->depth[arg] < r->depth[n])
            continue;
        bool other = r->source[arg] == NO_NODE ||
                     (source != NO_NODE && r->source[arg] != source);
        if (other || !same_shape(f, arg, n))
            return NO_NODE;
        source = r->source[arg];
    }
    return source;
}

// The root whose kernel can also compute the sum n: it iterates over the same
// elements, and nothing else that n needs is made at the same time.
static NodeId find_producer(const Roots *r, NodeId n) {
    const FuseAnalysis *f = r->f;
    if (r->s->unfused[n] || f->fusible[n] != FUSE_ANY ||
        !(traits(f, n) & REDUCES) || root_kind(f, r->s, n) != GROUP_GRID)
        return NO_NODE;
    NodeId arg = info(f, n)->arg[0], source = r->source[arg];
    if (source == NO_NODE || (traits(f, source) & REDUCES) ||
        !same_shape(f, root_space(f, r->s, source), arg))
        return NO_NODE;
    GroupKind kind = root_kind(f, r->s, source);
    bool joins =
        kind == GROUP_GRID || (kind == GROUP_ROWS && fits_reduction(f, n, arg));
    return joins ? source : NO_NODE;
}

static void find_depths(Roots *r) {
    const FuseAnalysis *f = r->f;
    for (NodeId n = 0; n < f->old->count; n++) {
        int depth = 0;
        for (int i = 0; i < info(f, n)->num_args; i++)
            if (r->depth[info(f, n)->arg[i]] > depth)
                depth = r->depth[info(f, n)->arg[i]];
        r->depth[n] = depth;
        r->producer[n] = NO_NODE;
        r->source[n] = NO_NODE;
        if (is_root(f, r->s, n)) {
            r->producer[n] = find_producer(r, n);
            r->depth[n] += r->producer[n] == NO_NODE;
            r->source[n] = n;
        } else if (depth > 0) {
            r->source[n] = find_source(r, n);
        }
    }
}

static Reads find_reads(const Roots *r, NodeId n) {
    const FuseAnalysis *f = r->f;
    Reads set = {0};
    for (int i = 0; i < info(f, n)->num_args; i++) {
        NodeId arg = info(f, n)->arg[i];
        if (info(f, arg)->immediate)
            continue;
        uint64_t bit = UINT64_C(1) << (arg * 0x9E3779B1u >> 26);
        bool stored = r->s->stored[arg] && !(traits(f, arg) & VIEW);
        set.all |= stored ? bit : r->below[arg].all;
        set.large |= !stored ? r->below[arg].large : is_small(f, arg) ? 0 : bit;
    }
    return set;
}

// Whether a tensor is worth sharing a kernel over a space.  Beside a large
// space another kernel costs nothing, but roots that share only parameters, as
// views of one batch, would be in memory together.
static uint64_t worth_sharing(const FuseAnalysis *f, Reads set, NodeId space) {
    enum { LARGE = 1 << 20 };
    return count_of(f, space) > LARGE ? set.large : set.all;
}

static int cluster_new(Clusters *c, Cluster first) {
    ARENA_APPEND(c->own, c->cluster, c->count, first);
    return c->count - 1;
}

static void cluster_join(Clusters *c, int k, NodeId n) {
    Cluster *joined = &c->cluster[k];
    ARENA_APPEND(c->own, joined->root, joined->num_roots, n);
    joined->priority = n > joined->priority ? n : joined->priority;
    c->of[n] = k;
}

// Whether two spaces have the same rows and columns, whatever their shapes.
static bool same_rows(const FuseAnalysis *f, NodeId a, NodeId b) {
    const Type *x = at(f, a)->type, *y = at(f, b)->type;
    return space_rows(x) == space_rows(y) &&
           space_columns(x) == space_columns(y);
}

// The cluster of the kind and depth of `want` that reads something of a
// set, or NONE.  No more than a few of a depth are looked at.
static int cluster_like(const Roots *r, Cluster want, uint64_t set,
                        bool alike(const FuseAnalysis *f, NodeId a, NodeId b)) {
    enum { MAX_CLUSTERS = 64 };
    int k = r->newest[want.depth];
    for (int seen = 0; k != NONE && seen < MAX_CLUSTERS; seen++) {
        const Cluster *c = &r->c->cluster[k];
        if (c->kind == want.kind && (r->sets[k] & set) &&
            alike(r->f, c->space, want.space))
            return k;
        k = c->older;
    }
    return NONE;
}

// Whether n is a column reduction of a matrix in memory, which any kernel that
// iterates over the same rows can compute, whatever their shape.
static bool is_free_sum(const Roots *r, NodeId n) {
    const FuseAnalysis *f = r->f;
    if (!(traits(f, n) & REDUCES) || r->s->unfused[n] ||
        r->producer[n] != NO_NODE || root_kind(f, r->s, n) != GROUP_GRID)
        return false;
    NodeId matrix = info(f, n)->arg[0];
    return info(f, n)->reduction == COLUMN_REDUCTION &&
           at(f, matrix)->type->rank == 2 && in_memory(f, r->s, matrix) &&
           fits_reduction(f, n, matrix);
}

// The kernel of rows that reads such a matrix, or NONE.
static int rows_like(const Roots *r, NodeId n) {
    NodeId matrix = info(r->f, n)->arg[0];
    Cluster want = {.kind = GROUP_ROWS, .depth = r->depth[n], .space = matrix};
    uint64_t set = worth_sharing(r->f, r->below[n], matrix);
    return cluster_like(r, want, set, same_rows);
}

static bool same_operands(const FuseAnalysis *f, NodeId a, NodeId b) {
    const Node *x = at(f, a), *y = at(f, b);
    bool same = x->num_args == y->num_args && x->num_attrs == y->num_attrs;
    for (int i = 0; same && i < x->num_args; i++)
        same = x->arg[i] == y->arg[i];
    for (int i = 0; same && i < x->num_attrs; i++)
        same = attr_equal(&x->attr[i], &y->attr[i]);
    return same;
}

// The kernel of attention with the operands of n, or NONE: it has both the
// result and the logarithms that the backward pass reads.
static int attention_like(const Roots *r, NodeId n) {
    int k = r->newest[r->depth[n]];
    for (; k != NONE; k = r->c->cluster[k].older) {
        const Cluster *c = &r->c->cluster[k];
        if (c->kind == GROUP_ATTENTION && same_operands(r->f, c->root[0], n))
            return k;
    }
    return NONE;
}

// Roots of one depth are joined where they read something in common.
static void find_cluster(Roots *r, NodeId n) {
    const FuseAnalysis *f = r->f;
    Cluster want = {.kind = root_kind(f, r->s, n),
                    .depth = r->depth[n],
                    .space = root_space(f, r->s, n),
                    .older = r->newest[r->depth[n]]};
    uint64_t set = worth_sharing(f, r->below[n], want.space);
    int k = r->producer[n] == NO_NODE ? NONE : r->c->of[r->producer[n]];
    if (k == NONE && !r->s->unfused[n] && f->fusible[n] != FUSE_NONE &&
        (want.kind == GROUP_GRID || want.kind == GROUP_ROWS))
        k = cluster_like(r, want, set, same_shape);
    if (want.kind == GROUP_ATTENTION && !r->s->unfused[n])
        k = attention_like(r, n);
    if (k == NONE)
        k = r->newest[want.depth] = cluster_new(r->c, want);
    r->sets[k] |= set;
    cluster_join(r->c, k, n);
}

// After all others, so that the kernels of rows are known.
static void find_free_sums(Roots *r) {
    for (NodeId n = 0; n < r->f->old->count; n++) {
        if (!is_root(r->f, r->s, n) || !is_free_sum(r, n))
            continue;
        int k = rows_like(r, n);
        if (k == NONE)
            find_cluster(r, n);
        else
            cluster_join(r->c, k, n);
    }
}

// The cluster of an assignment or of a scalar that the update leaves in memory:
// one for each bucket of a shard's terms, and one for all others.
static int find_update(Roots *r, NodeId n) {
    const Node *d = at(r->f, n);
    int64_t bucket =
        d->op == OP_assign ? state_bucket(at(r->f, d->arg[0])) : -1;
    int k = r->update;
    while (k != NONE && r->c->cluster[k].bucket != bucket)
        k = r->c->cluster[k].older;
    if (k == NONE)
        k = r->update = cluster_new(r->c, (Cluster){.kind = GROUP_UPDATE,
                                                    .bucket = bucket,
                                                    .older = r->update});
    return k;
}

// After all readers of the assigned states.  Nothing reads those of a bucket.
static void delay_updates(Roots *r) {
    for (int k = r->update; k != NONE; k = r->c->cluster[k].older)
        if (r->c->cluster[k].bucket < 0)
            r->c->cluster[k].priority = r->f->old->count;
}

static void join_roots(Roots *r) {
    const FuseAnalysis *f = r->f;
    for (NodeId n = 0; n < f->old->count; n++) {
        r->below[n] = find_reads(r, n);
        r->c->of[n] = NONE;
        if (info(f, n)->op == OP_assign || update_writes(r->s, n)) {
            cluster_join(r->c, find_update(r, n), n);
        } else if (is_root(f, r->s, n) && !is_free_sum(r, n)) {
            find_cluster(r, n);
        }
    }
    find_free_sums(r);
    delay_updates(r);
}

void find_clusters(const FuseAnalysis *f, const Stored *s, Clusters *c) {
    NodeId count = f->old->count;
    arena_free(c->own);
    Arena *own = arena_new();
    *c = (Clusters){.own = own, .of = ARENA_UNINIT(own, count, int)};
    Roots r = {.f = f,
               .s = s,
               .c = c,
               .depth = ARENA_UNINIT(own, count, int),
               .source = ARENA_UNINIT(own, count, NodeId),
               .producer = ARENA_UNINIT(own, count, NodeId),
               .below = ARENA_UNINIT(own, count, Reads),
               .sets = ARENA_ARRAY(own, (size_t)count + 1, uint64_t),
               .newest = ARENA_UNINIT(own, (size_t)count + 1, int),
               .update = NONE};
    for (NodeId n = 0; n <= count; n++)
        r.newest[n] = NONE;
    find_depths(&r);
    join_roots(&r);
    c->group = ARENA_ARRAY(own, (size_t)c->count + 1, int);
}
