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
// and has its depth.  All assignments are one cluster, launched last.  Then
// the graph is rebuilt cluster by cluster, each with its own copies of the
// nodes between its inputs and its roots.
//
// A fused kernel computes in f32 and rounds where it stores, so fusing changes
// results only by leaving roundings out.

#include "ir/group.h"
#include "passes/fit.h"
#include "passes/passes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    NONE = -1,
    MANY = 4, // clusters that are told apart as users of a node
    NEAR = 32 // nodes and inputs that are looked at below one
};

typedef struct {
    GroupKind kind;
    int depth;
    int older; // the cluster of this depth that was made before, or NONE
    Type space;
    NodeId priority; // the last of its roots, in the order of the old graph
    NodeId *root;
    int num_roots, capacity;
    NodeId *member; // roots and the inline nodes below them, in order
    int num_members;
    bool placed;
} Cluster;

typedef struct {
    const Graph *old;
    Arena *scratch;
    const PassOptions *options;
    bool *stored; // is in memory; for views, asks the operand to be
    bool changed; // something became stored
    int *depth;
    NodeId *source; // see find_source
    NodeId *host;   // of a sum, the root whose kernel computes it, or NO_NODE
    NodeId *row;    // the row reduction in its inline tree, or NO_NODE
    int *cluster;   // of a root
    Cluster *clusters;
    int count;
} Fuse;

static const Node *at(const Fuse *f, NodeId n) {
    return &f->old->node[n];
}

static unsigned facts(const Fuse *f, NodeId n) {
    return op_info[at(f, n)->op].facts;
}

static bool is_leaf(const Fuse *f, NodeId n) {
    return facts(f, n) & LEAF;
}

static bool reduces_rows(const Fuse *f, NodeId n) {
    assert(!(facts(f, n) & REDUCES) || at(f, n)->op == OP_all_finite ||
           reduce_extent(f->old, n) != OVER_OTHER);
    return (facts(f, n) & REDUCES) && at(f, n)->op != OP_all_finite &&
           reduce_extent(f->old, n) == OVER_ROW;
}

// Whether n can be computed inside the kernels that use it.
static bool is_inline(const Fuse *f, NodeId n) {
    return (facts(f, n) & (POINTWISE | INDEXES | WINDOW | VIEW)) ||
           reduces_rows(f, n);
}

static int64_t count_of(const Fuse *f, NodeId n) {
    return type_count(at(f, n)->type);
}

// At most a value for each column: little beside what has rows too.
static bool is_small(const Fuse *f, NodeId n) {
    Type t = at(f, n)->type;
    return t.rank == 0 || type_count(t) == t.dim[t.rank - 1];
}

// Whether n is what is never in memory, or a view of it.
static bool is_immediate(const Fuse *f, NodeId n) {
    while (facts(f, n) & VIEW)
        n = at(f, n)->arg[0];
    return node_immediate(at(f, n));
}

// Asks for n to be in memory.  A view of something computed asks for that.
static void store(Fuse *f, NodeId n) {
    if (is_immediate(f, n))
        return;
    while (!f->stored[n]) {
        f->stored[n] = f->changed = true;
        if (!(facts(f, n) & VIEW))
            return;
        n = at(f, n)->arg[0];
    }
}

// ---- which values must be in memory ----

// A view of something in memory is that memory; of anything else it is
// computed in the kernel like an index.
static bool in_memory(const Fuse *f, NodeId n) {
    while ((facts(f, n) & VIEW) && !f->stored[n])
        n = at(f, n)->arg[0];
    return f->stored[n] || (is_leaf(f, n) && !node_immediate(at(f, n)));
}

// Whether a kernel that walks over the columns of n can keep operand arg from
// row to row instead of computing it for each.
static bool is_kept(const Fuse *f, NodeId n, NodeId arg) {
    Type t = at(f, n)->type, a = at(f, arg)->type;
    return (facts(f, n) & POINTWISE) && a.rank > 0 && is_small(f, arg) &&
           a.dim[a.rank - 1] == t.dim[t.rank - 1];
}

// Whether an operation takes so long that its value is worth memory when many
// elements need it.
static bool is_costly(const Fuse *f, NodeId n) {
    Op op = at(f, n)->op;
    return (facts(f, n) & COSTLY) || op == OP_max_pool ||
           op == OP_max_pool_index || op == OP_avg_pool || op == OP_resize_grad;
}

// How many elements of its operand a kernel for node n asks for: a pool all of
// each window, its gradient one for each window that an element is in; what is
// scattered is asked for once.
static int64_t demand(const Fuse *f, NodeId n) {
    const Node *d = at(f, n);
    if (facts(f, n) & SCATTERS)
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

// Whether kernel node n would compute operand arg once for each of several
// elements.
static bool is_repeated(const Fuse *f, NodeId n, NodeId arg) {
    int64_t count = count_of(f, arg);
    return is_inline(f, arg) && demand(f, n) > count && count > 1 &&
           count != space_rows(at(f, n)->type) && !is_kept(f, n, arg);
}

// Of the costly values that would be computed repeatedly, those are stored
// with which the others are costly no more.
static void store_costly(Fuse *f) {
    bool *repeated = ARENA_ARRAY(f->scratch, f->old->count, bool);
    bool *costly = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = 0; n < f->old->count; n++)
        for (int i = 0; i < at(f, n)->num_args; i++)
            repeated[at(f, n)->arg[i]] |= is_repeated(f, n, at(f, n)->arg[i]);
    for (NodeId n = 0; n < f->old->count; n++) {
        costly[n] = is_costly(f, n);
        for (int i = 0; i < at(f, n)->num_args; i++)
            costly[n] |= costly[at(f, n)->arg[i]];
        if (costly[n] && repeated[n])
            store(f, n);
        costly[n] &= is_inline(f, n) && !in_memory(f, n);
    }
}

// What several nodes take pixels from is computed once for all of them: a
// resized image that is resized again would double with each.
static void store_taken(Fuse *f) {
    bool *taken = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = 0; n < f->old->count; n++) {
        if (at(f, n)->op != OP_take)
            continue;
        NodeId image = at(f, n)->arg[0];
        if (taken[image] && is_inline(f, image))
            store(f, image);
        taken[image] = true;
    }
}

static void store_by_kind(Fuse *f) {
    for (NodeId n = 0; n < f->old->count; n++) {
        const Node *d = at(f, n);
        bool library = (facts(f, n) & CALLS) || d->op == OP_output ||
                       d->op == OP_all_finite;
        bool unfused = f->options->level == 0;
        for (int i = 0; i < d->num_args && library; i++)
            store(f, d->arg[i]);
        if (!(facts(f, n) & EFFECT) && !node_immediate(d) &&
            (unfused || !is_inline(f, n)))
            store(f, n);
    }
}

// An assignment is computed element by element over its target.
static bool fits_update(const Fuse *f, NodeId n) {
    if (!(facts(f, n) & (POINTWISE | VIEW)))
        return false;
    for (int i = 0; i < at(f, n)->num_args; i++) {
        int64_t count = count_of(f, at(f, n)->arg[i]);
        if (count != count_of(f, n) && count != 1)
            return false;
    }
    return true;
}

// Below an assignment, what is neither such an element nor a scalar is stored
// first.  A pad directly below it is a store to other addresses.
static void store_for_update(Fuse *f) {
    bool *updating = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = f->old->count; n-- > 0;) {
        const Node *d = at(f, n);
        if (d->op == OP_assign) {
            NodeId value = d->arg[1];
            if (at(f, value)->op == OP_pad && !f->stored[value])
                value = at(f, value)->arg[0];
            updating[value] = true;
        }
        if (!updating[n] || !is_inline(f, n) || f->stored[n])
            continue;
        if (!fits_update(f, n))
            store(f, n);
        else
            for (int i = 0; i < d->num_args; i++)
                updating[d->arg[i]] = true;
    }
}

// Whether node n can be computed by a kernel that walks over the rows of row
// reduction `row`, which is below its operand arg.
static bool fits_rows(const Fuse *f, NodeId n, NodeId arg, NodeId row) {
    Type space = at(f, at(f, row)->arg[0])->type;
    int64_t elements = type_count(space), rows = space_rows(space);
    bool per_row = count_of(f, arg) == rows;
    if (reduces_rows(f, n))
        return type_same_shape(at(f, n)->type, at(f, row)->type) &&
               count_of(f, arg) == elements;
    // A variance is taken around the value of row 0, for which a kernel would
    // need what it reduces that row to.
    if (facts(f, n) & REDUCES)
        return reduce_extent(f->old, n) == OVER_ALL && at(f, n)->op != OP_var &&
               (per_row || count_of(f, arg) == elements);
    return (facts(f, n) & POINTWISE) &&
           (count_of(f, n) == elements || count_of(f, n) == rows);
}

// Finds the row reduction that decides the space of each node's kernel, and
// stores those for which there is no one space.
static void find_rows(Fuse *f) {
    for (NodeId n = 0; n < f->old->count; n++) {
        f->row[n] = NO_NODE;
        for (int i = 0; i < at(f, n)->num_args; i++) {
            NodeId arg = at(f, n)->arg[i], row = f->row[arg];
            if (row == NO_NODE || f->stored[arg])
                continue;
            bool same = f->row[n] == NO_NODE ||
                        type_same_shape(at(f, at(f, f->row[n])->arg[0])->type,
                                        at(f, at(f, row)->arg[0])->type);
            if (same && fits_rows(f, n, arg, row))
                f->row[n] = row;
            else
                store(f, arg);
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
    if (at(f, n)->op == OP_all_finite)
        return GROUP_CHECK;
    return f->row[n] != NO_NODE ? GROUP_ROWS : GROUP_GRID;
}

// The only root of n's own depth that n is computed from, element by element,
// or NO_NODE where there is none, another one, or another way.
static NodeId find_source(const Fuse *f, NodeId n) {
    NodeId source = NO_NODE;
    if (!(facts(f, n) & POINTWISE))
        return NO_NODE;
    for (int i = 0; i < at(f, n)->num_args; i++) {
        NodeId arg = at(f, n)->arg[i];
        if (f->depth[arg] < f->depth[n])
            continue;
        bool other = source != NO_NODE && f->source[arg] != source;
        if (other || !type_same_shape(at(f, arg)->type, at(f, n)->type))
            return NO_NODE;
        source = f->source[arg];
    }
    return source;
}

// The root whose kernel can also compute the sum n: it walks over the same
// elements, and nothing else that n needs is made at the same time.
static NodeId find_host(const Fuse *f, NodeId n) {
    if (f->options->level == 0 || !(facts(f, n) & REDUCES) ||
        root_kind(f, n) != GROUP_GRID)
        return NO_NODE;
    NodeId arg = at(f, n)->arg[0], source = f->source[arg];
    if (source == NO_NODE || (facts(f, source) & REDUCES) ||
        root_kind(f, source) != GROUP_GRID ||
        !type_same_shape(at(f, source)->type, at(f, arg)->type))
        return NO_NODE;
    return source;
}

static void find_depths(Fuse *f) {
    for (NodeId n = 0; n < f->old->count; n++) {
        int depth = 0;
        for (int i = 0; i < at(f, n)->num_args; i++)
            if (f->depth[at(f, n)->arg[i]] > depth)
                depth = f->depth[at(f, n)->arg[i]];
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

static Type root_space(const Fuse *f, NodeId n) {
    if (f->row[n] != NO_NODE)
        return at(f, at(f, f->row[n])->arg[0])->type;
    if (facts(f, n) & REDUCES)
        return at(f, at(f, n)->arg[0])->type;
    return at(f, n)->type;
}

// A set of the stored tensors that node n reads, as 64 bits: two roots whose
// sets are disjoint surely read nothing in common.
static uint64_t reads(const Fuse *f, const uint64_t *below, NodeId n) {
    uint64_t set = 0;
    for (int i = 0; i < at(f, n)->num_args; i++) {
        NodeId arg = at(f, n)->arg[i];
        if (node_immediate(at(f, arg)))
            continue;
        set |= f->stored[arg] && !(facts(f, arg) & VIEW)
                   ? UINT64_C(1) << (arg * 0x9E3779B1u >> 26)
                   : below[arg];
    }
    return set;
}

static int cluster_new(Fuse *f, Cluster c) {
    f->clusters[f->count] = c;
    return f->count++;
}

static void cluster_join(Fuse *f, int k, NodeId n) {
    Cluster *c = &f->clusters[k];
    if (c->num_roots == c->capacity) {
        int capacity = c->capacity ? 2 * c->capacity : 4;
        NodeId *root = ARENA_ARRAY(f->scratch, (size_t)capacity, NodeId);
        if (c->num_roots)
            memcpy(root, c->root, (size_t)c->num_roots * sizeof *root);
        c->root = root;
        c->capacity = capacity;
    }
    c->root[c->num_roots++] = n;
    c->priority = n;
    f->cluster[n] = k;
}

// Roots of one depth are joined where they read something in common.  No more
// than a few clusters of a depth are looked at.
static int cluster_like(const Fuse *f, const int *newest, const uint64_t *sets,
                        Cluster want, uint64_t set) {
    enum { MOST = 64 };
    int k = newest[want.depth];
    for (int seen = 0; k != NONE && seen < MOST; seen++) {
        const Cluster *c = &f->clusters[k];
        if (c->kind == want.kind && type_same_shape(c->space, want.space) &&
            (sets[k] & set))
            return k;
        k = c->older;
    }
    return NONE;
}

static void find_clusters(Fuse *f) {
    const Graph *g = f->old;
    uint64_t *below = ARENA_ARRAY(f->scratch, g->count, uint64_t);
    uint64_t *sets = ARENA_ARRAY(f->scratch, (size_t)g->count + 1, uint64_t);
    int *newest = ARENA_ARRAY(f->scratch, (size_t)g->count + 1, int);
    int update = NONE;
    f->count = 0;
    for (NodeId n = 0; n <= g->count; n++)
        newest[n] = NONE;
    for (NodeId n = 0; n < g->count; n++) {
        below[n] = reads(f, below, n);
        f->cluster[n] = NONE;
        if (at(f, n)->op == OP_assign) {
            if (update == NONE)
                update = cluster_new(f, (Cluster){.kind = GROUP_UPDATE});
            cluster_join(f, update, n);
        }
        if (!is_root(f, n))
            continue;
        Cluster want = {.kind = root_kind(f, n),
                        .depth = f->depth[n],
                        .space = root_space(f, n),
                        .older = newest[f->depth[n]]};
        int k = f->host[n] == NO_NODE ? NONE : f->cluster[f->host[n]];
        if (k == NONE && f->options->level > 0 &&
            (want.kind == GROUP_GRID || want.kind == GROUP_ROWS))
            k = cluster_like(f, newest, sets, want, below[n]);
        if (k == NONE)
            k = newest[want.depth] = cluster_new(f, want);
        sets[k] |= below[n];
        cluster_join(f, k, n);
    }
    if (update != NONE) // after everything that reads what it assigns
        f->clusters[update].priority = g->count;
}

// ---- what costs more to recompute than to store ----

typedef struct {
    int count; // clusters that compute the node, up to MANY
    int cluster[MANY];
} Users;

static void user_add(Users *u, int cluster) {
    for (int i = 0; i < u->count; i++)
        if (u->cluster[i] == cluster)
            return;
    if (u->count < MANY)
        u->cluster[u->count++] = cluster;
}

// The users of each node, as lists.
typedef struct {
    int *first, *next;
    NodeId *user;
} Uses;

static Uses find_uses(const Fuse *f) {
    const Graph *g = f->old;
    size_t entries = 1;
    for (NodeId n = 0; n < g->count; n++)
        entries += (size_t)at(f, n)->num_args;
    Uses u = {ARENA_ARRAY(f->scratch, g->count, int),
              ARENA_ARRAY(f->scratch, entries, int),
              ARENA_ARRAY(f->scratch, entries, NodeId)};
    int count = 0;
    for (NodeId n = 0; n < g->count; n++)
        u.first[n] = NONE;
    for (NodeId n = g->count; n-- > 0;)
        for (int i = 0; i < at(f, n)->num_args; i++) {
            NodeId arg = at(f, n)->arg[i];
            u.user[count] = n;
            u.next[count] = u.first[arg];
            u.first[arg] = count++;
        }
    return u;
}

// What it takes to compute a node: the inline nodes below it and the stored
// tensors that those read.
typedef struct {
    NodeId inner[NEAR], input[NEAR];
    int num_inner, num_inputs;
} Tree;

static int users_first(const void *a, const void *b) {
    NodeId x = *(const NodeId *)a, y = *(const NodeId *)b;
    return (x < y) - (x > y);
}

static bool contains(const NodeId *list, int count, NodeId n) {
    for (int i = 0; i < count; i++)
        if (list[i] == n)
            return true;
    return false;
}

// False when the tree is larger than is looked at.
static bool find_tree(const Fuse *f, NodeId n, Tree *t) {
    *t = (Tree){.inner = {n}, .num_inner = 1};
    for (int done = 0; done < t->num_inner; done++) {
        const Node *d = at(f, t->inner[done]);
        for (int i = 0; i < d->num_args; i++) {
            NodeId arg = d->arg[i];
            if (node_immediate(at(f, arg)) || is_small(f, arg))
                continue;
            bool stored = f->stored[arg] || is_leaf(f, arg);
            NodeId *list = stored ? t->input : t->inner;
            int *count = stored ? &t->num_inputs : &t->num_inner;
            if (contains(list, *count, arg))
                continue;
            if (*count == NEAR)
                return false;
            list[(*count)++] = arg;
        }
    }
    return true;
}

static bool in_cluster(const Users *u, int k) {
    for (int j = 0; j < u->count; j++)
        if (u->cluster[j] == k)
            return true;
    return false;
}

// Whether cluster k needs node m of the tree for something that is not in the
// tree, or for a part of it that it needs anyway.
static bool needed_anyway(const Uses *uses, const Users *users, const Tree *t,
                          const bool *anyway, NodeId m, int k) {
    for (int i = uses->first[m]; i != NONE; i = uses->next[i]) {
        NodeId user = uses->user[i];
        bool inner = false;
        for (int j = 0; j < t->num_inner && !inner; j++)
            if (t->inner[j] == user) {
                inner = true;
                if (anyway[j])
                    return true;
            }
        if (!inner && in_cluster(&users[user], k))
            return true;
    }
    return false;
}

// Bytes of the tree's inputs that cluster k would not read without it.
static int64_t bytes_more(const Fuse *f, const Uses *uses, const Users *users,
                          const Tree *t, int k) {
    bool anyway[NEAR] = {false};
    int64_t bytes = 0;
    for (int j = 1; j < t->num_inner; j++) // 0 is what would be stored
        anyway[j] = needed_anyway(uses, users, t, anyway, t->inner[j], k);
    for (int i = 0; i < t->num_inputs; i++)
        if (!needed_anyway(uses, users, t, anyway, t->input[i], k))
            bytes += graph_bytes(f->old, at(f, t->input[i])->type);
    return bytes;
}

// Recomputing a value reads its inputs in each cluster that needs it and does
// not read them anyway.  Storing it reads them once, writes the value, and
// reads that in each.
static bool costs_less_stored(const Fuse *f, const Uses *uses,
                              const Users *users, NodeId n) {
    Tree tree;
    const Users *own = &users[n];
    int64_t all = 0, least = INT64_MAX;
    if (!find_tree(f, n, &tree))
        return true;
    qsort(tree.inner, (size_t)tree.num_inner, sizeof tree.inner[0],
          users_first);
    for (int j = 0; j < own->count; j++) {
        int64_t bytes = bytes_more(f, uses, users, &tree, own->cluster[j]);
        all += bytes;
        least = bytes < least ? bytes : least;
    }
    int64_t value = graph_bytes(f->old, at(f, n)->type);
    return all - least > (own->count + 1) * value;
}

// Which nodes would cost less stored than computed by each of their users.
static bool *find_dear(const Fuse *f) {
    const Graph *g = f->old;
    Users *users = ARENA_ARRAY(f->scratch, g->count, Users);
    bool *dear = ARENA_ARRAY(f->scratch, g->count, bool);
    Uses uses = find_uses(f);
    for (NodeId n = g->count; n-- > 0;) {
        Users *u = &users[n];
        if (f->cluster[n] != NONE)
            *u = (Users){1, {f->cluster[n]}};
        if (is_inline(f, n) && !f->stored[n] && u->count > 1 &&
            !(facts(f, n) & VIEW) && !is_small(f, n) &&
            costs_less_stored(f, &uses, users, n)) {
            dear[n] = true;
            *u = (Users){1, {f->count + (int)n}}; // a cluster to come
        }
        for (int i = 0; i < at(f, n)->num_args; i++)
            for (int j = 0; j < u->count; j++)
                user_add(&users[at(f, n)->arg[i]], u->cluster[j]);
    }
    return dear;
}

// Stores the first of the dear nodes on each path, or all of them: with those
// stored the others may be cheap.
static void store_dear(Fuse *f, const bool *dear, bool all) {
    bool *above = ARENA_ARRAY(f->scratch, f->old->count, bool);
    for (NodeId n = 0; n < f->old->count; n++) {
        for (int i = 0; i < at(f, n)->num_args && is_inline(f, n); i++) {
            NodeId arg = at(f, n)->arg[i];
            above[n] |= dear[arg] || (above[arg] && !f->stored[arg]);
        }
        if (dear[n] && (all || !above[n]))
            store(f, n);
    }
}

// ---- the new graph ----

static int by_number(const void *a, const void *b) {
    NodeId x = *(const NodeId *)a, y = *(const NodeId *)b;
    return (x > y) - (x < y);
}

// Lists the nodes that cluster k computes, in the order of the old graph.
// mark[n] is the last cluster that listed n.
static void find_members(Fuse *f, int k, int *mark, NodeId *stack) {
    Cluster *c = &f->clusters[k];
    int height = 0, done = 0;
    for (int i = 0; i < c->num_roots; i++) {
        mark[c->root[i]] = k;
        stack[height++] = c->root[i];
    }
    while (done < height) {
        const Node *d = at(f, stack[done++]);
        for (int i = 0; i < d->num_args; i++) {
            NodeId arg = d->arg[i];
            if (mark[arg] != k && !is_leaf(f, arg) && !in_memory(f, arg)) {
                mark[arg] = k;
                stack[height++] = arg;
            }
        }
    }
    qsort(stack, (size_t)height, sizeof *stack, by_number);
    c->member = ARENA_ARRAY(f->scratch, (size_t)height, NodeId);
    memcpy(c->member, stack, (size_t)height * sizeof *stack);
    c->num_members = height;
}

static bool needs_scratch(const Fuse *f, const Cluster *c) {
    if (c->kind == GROUP_CHECK)
        return true;
    for (int i = 0; i < c->num_roots; i++)
        if ((facts(f, c->root[i]) & REDUCES) && !reduces_rows(f, c->root[i]))
            return true;
    return false;
}

static bool needs_ticket(const Fuse *f, const Cluster *c) {
    if (c->kind == GROUP_UPDATE)
        for (int i = 0; i < c->num_roots; i++)
            if (count_of(f, c->root[i]) == 1)
                return true;
    return needs_scratch(f, c);
}

// One number for each block, reduction and column, on whichever device.
static Type scratch_type(const Fuse *f, const Cluster *c) {
    int host = space_grid(c->space, true), other = space_grid(c->space, false);
    int64_t dim[2] = {host > other ? host : other, 0};
    if (c->kind == GROUP_CHECK) {
        const Node *d = at(f, c->root[0]);
        dim[0] = 0;
        for (int i = 0; i < d->num_args; i++)
            dim[0] += part_blocks(count_of(f, d->arg[i]));
        dim[1] = 1;
    }
    for (int i = 0; i < c->num_roots && c->kind != GROUP_CHECK; i++) {
        NodeId n = c->root[i];
        if ((facts(f, n) & REDUCES) && !reduces_rows(f, n))
            dim[1] += reduce_slots(f->old, n) * count_of(f, n);
    }
    return type_of(F32, 2, dim);
}

typedef struct {
    Graph *g;
    NodeId *shared; // leaves, views of memory, roots: what any group may use
    NodeId *own;    // copies in the group being built
    int *owner;     // the cluster own[n] belongs to
    int group;
} Rebuild;

// Adds old node n to the group; -1 is no group.
static NodeId place_node(const Fuse *f, Rebuild *r, NodeId n, int k,
                         int group) {
    Node d = *at(f, n);
    NodeId *arg = ARENA_ARRAY(f->scratch, (size_t)d.num_args + 1, NodeId);
    for (int i = 0; i < d.num_args; i++)
        arg[i] = group >= 0 && r->owner[d.arg[i]] == k ? r->own[d.arg[i]]
                                                       : r->shared[d.arg[i]];
    d.arg = arg;
    d.group = group;
    r->g->at = d.from;
    return graph_add(r->g, d);
}

// The views of a root follow its group, so that later groups find them.
static void place_views(const Fuse *f, Rebuild *r, const NodeId *first_view,
                        const NodeId *next_view, NodeId n) {
    for (NodeId v = first_view[n]; v != NO_NODE; v = next_view[v]) {
        r->shared[v] = place_node(f, r, v, NONE, -1);
        place_views(f, r, first_view, next_view, v);
    }
}

typedef struct {
    NodeId *first, *next; // views of a node in memory, as lists
} Views;

static Views find_views(const Fuse *f) {
    NodeId count = f->old->count;
    Views v = {ARENA_ARRAY(f->scratch, count, NodeId),
               ARENA_ARRAY(f->scratch, count, NodeId)};
    for (NodeId n = 0; n < count; n++)
        v.first[n] = v.next[n] = NO_NODE;
    for (NodeId n = count; n-- > 0;)
        if ((facts(f, n) & VIEW) && in_memory(f, n)) {
            NodeId base = at(f, n)->arg[0];
            v.next[n] = v.first[base];
            v.first[base] = n;
        }
    return v;
}

static void place_cluster(Fuse *f, Rebuild *r, const Views *views, int k) {
    Cluster *c = &f->clusters[k];
    if (needs_scratch(f, c)) {
        r->g->at = at(f, c->root[0])->from;
        graph_add(r->g, (Node){.op = OP_scratch,
                               .type = scratch_type(f, c),
                               .group = r->group,
                               .offset = -1});
    }
    for (int i = 0; i < c->num_members; i++) {
        NodeId n = c->member[i];
        r->own[n] = place_node(f, r, n, k, r->group);
        r->owner[n] = k;
        if (f->cluster[n] == k)
            r->shared[n] = r->own[n];
    }
    for (int i = 0; i < c->num_roots; i++)
        place_views(f, r, views->first, views->next, c->root[i]);
    c->placed = true;
    r->group++;
}

// A cluster that c reads from and that is not placed yet, or NONE.
static int cluster_before(const Fuse *f, const Cluster *c) {
    for (int i = 0; i < c->num_members; i++) {
        const Node *d = at(f, c->member[i]);
        for (int j = 0; j < d->num_args; j++) {
            NodeId arg = d->arg[j];
            while ((facts(f, arg) & VIEW) && in_memory(f, arg))
                arg = at(f, arg)->arg[0];
            int k = f->cluster[arg];
            if (k != NONE && &f->clusters[k] != c && !f->clusters[k].placed)
                return k;
        }
    }
    return NONE;
}

typedef struct {
    NodeId priority;
    int cluster;
} Turn;

static int by_priority(const void *a, const void *b) {
    const Turn *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    return (x->cluster > y->cluster) - (x->cluster < y->cluster);
}

// In the order of their last roots, each after those it reads from.
static void place_clusters(Fuse *f, Rebuild *r, const Views *views) {
    Turn *turn = ARENA_ARRAY(f->scratch, (size_t)f->count + 1, Turn);
    int *stack = ARENA_ARRAY(f->scratch, (size_t)f->count + 1, int);
    for (int k = 0; k < f->count; k++)
        turn[k] = (Turn){f->clusters[k].priority, k};
    qsort(turn, (size_t)f->count, sizeof *turn, by_priority);
    for (int i = 0; i < f->count; i++) {
        int height = 0;
        stack[height++] = turn[i].cluster;
        while (height > 0) {
            int k = stack[height - 1];
            int before = f->clusters[k].placed
                             ? NONE
                             : cluster_before(f, &f->clusters[k]);
            if (before != NONE) {
                stack[height++] = before;
                continue;
            }
            if (!f->clusters[k].placed)
                place_cluster(f, r, views, k);
            height--;
        }
    }
}

static void place_leaves(const Fuse *f, Rebuild *r, const Views *views) {
    int tickets = 0;
    for (NodeId n = 0; n < f->old->count; n++)
        if (is_leaf(f, n))
            r->shared[n] = place_node(f, r, n, NONE, -1);
    for (NodeId n = 0; n < f->old->count; n++)
        if (is_leaf(f, n))
            place_views(f, r, views->first, views->next, n);
    for (int k = 0; k < f->count; k++)
        tickets += needs_ticket(f, &f->clusters[k]);
    if (tickets > 0) {
        r->g->at = (Origin){0};
        graph_state(r->g, arena_format(r->g->arena, TICKETS "%s", r->g->name),
                    STATE_DERIVED, type_of(I32, 1, (int64_t[]){tickets}), 0);
    }
}

static Graph *rebuild(Fuse *f) {
    const Graph *old = f->old;
    Rebuild r = {.g = graph_like(old),
                 .shared = ARENA_ARRAY(f->scratch, old->count, NodeId),
                 .own = ARENA_ARRAY(f->scratch, old->count, NodeId),
                 .owner = ARENA_ARRAY(f->scratch, old->count, int)};
    int *mark = ARENA_ARRAY(f->scratch, old->count, int);
    NodeId *stack = ARENA_ARRAY(f->scratch, (size_t)old->count + 1, NodeId);
    for (NodeId n = 0; n < old->count; n++) {
        r.shared[n] = NO_NODE;
        r.owner[n] = mark[n] = NONE;
    }
    for (int k = 0; k < f->count; k++)
        find_members(f, k, mark, stack);
    Views views = find_views(f);
    place_leaves(f, &r, &views);
    place_clusters(f, &r, &views);
    for (NodeId n = 0; n < old->count; n++)
        if (at(f, n)->op == OP_output)
            place_node(f, &r, n, NONE, -1);
    r.g->facts |= GROUPED;
    return r.g;
}

static void settle(Fuse *f) {
    do {
        f->changed = false;
        store_for_update(f);
        find_rows(f);
    } while (f->changed);
    find_depths(f);
    find_clusters(f);
}

// Round by round, but no longer than a large graph can bear.
static void store_by_cost(Fuse *f) {
    enum { MOST_ROUNDS = 256, MOST_NODES = 20000000 };
    int64_t rounds = MOST_NODES / ((int64_t)f->old->count + 1);
    if (rounds > MOST_ROUNDS)
        rounds = MOST_ROUNDS;
    while (true) {
        f->changed = false;
        store_dear(f, find_dear(f), --rounds <= 0);
        if (!f->changed)
            return;
        settle(f);
    }
}

Graph *pass_fuse(Graph *g, Arena *scratch, const PassOptions *o) {
    g = graph_fit(g, scratch);
    Fuse f = {.old = g,
              .scratch = scratch,
              .options = o,
              .stored = ARENA_ARRAY(scratch, g->count, bool),
              .depth = ARENA_ARRAY(scratch, g->count, int),
              .source = ARENA_ARRAY(scratch, g->count, NodeId),
              .host = ARENA_ARRAY(scratch, g->count, NodeId),
              .row = ARENA_ARRAY(scratch, g->count, NodeId),
              .cluster = ARENA_ARRAY(scratch, g->count, int),
              .clusters = ARENA_ARRAY(scratch, (size_t)g->count + 1, Cluster)};
    store_by_kind(&f);
    store_taken(&f);
    store_costly(&f);
    settle(&f);
    store_by_cost(&f);
    return rebuild(&f);
}
