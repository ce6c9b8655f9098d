// The stages of fuse.  Each reads the results of those before it:
//
//   FuseAnalysis  fuse_analysis.c            properties of the old nodes
//   Stored        fuse_store.c, fuse_rows.c  the values that are in memory
//                 fuse_update.c, fuse_cost.c
//   Clusters      fuse_cluster.c             stored values that share a kernel
//   Members       fuse_members.c             the nodes that a kernel computes
//   Graph         fuse_build.c               the new graph, kernel by kernel
//
// For a described device, fuse_time.c runs them again with other choices.
//
// Storing and clustering take turns until both are final (fuse.c); the other
// stages run once.
#ifndef PASSES_FUSE_H
#define PASSES_FUSE_H

#include "passes/passes.h"
#include "passes/plan/group.h"

enum { NONE = -1 };

// Fields of a node that fuse reads often, and properties derived from it, in
// few bytes: a loop over whole nodes would mostly wait for memory.
typedef struct {
    const NodeId *arg;
    int64_t count; // of its elements
    int num_args;
    Op op;
    unsigned traits;
    int shape;   // the same number where shapes are the same
    NodeId pool; // see disjoint_pool_grad
    bool immediate;
    bool small;        // at most a value for each column, and not of the batch
    uint8_t reduction; // of a reduction: its ReductionKind
} NodeInfo;

// The roots with which a root may fuse; the estimate for a device can refuse
// some.
typedef enum {
    FUSE_ANY,
    FUSE_NO_PRODUCER,  // a reduction: not with the kernel of its operand
    FUSE_NO_REDUCTION, // an operand: not with its reductions
    FUSE_NONE
} Fusible;

// Properties of the old graph, found once.
typedef struct {
    const Graph *old;
    const PassOptions *options;
    const NodeInfo *info;
    Users users;
    const bool *batched;
    const bool *in_rows;      // an operand of a row reduction, also through
                              // views, indexing and elementwise operations
    const bool *elementwise;  // is computed by element, as assigned values are
    const bool *padded_store; // pads that are assigned and nothing else
    Fusible *fusible;         // of each root
} FuseAnalysis;

// The values in memory.  store_first finds must_store and unfused; stored
// and stored_as_act grow, and in_update shrinks, until clusters are final;
// written_by_update and row are found again after each change.
typedef struct {
    bool *stored; // is in memory; for views, asks the operand to be
    Reason *why;  // ... although a kernel that uses it could compute it
    bool changed; // something became stored
    bool *must_store;      // a library call, all_finite or an output reads it
    bool *unfused;         // shares no kernel
    bool *stored_as_act; // is stored as ACT although it is f32, see fuse_cost.c
    bool *in_update;     // reductions that the update makes: see fuse_update.c
    bool *written_by_update; // scalars that the update leaves in memory
    NodeId *row;  // the row reduction in its inline tree, or NO_NODE
} Stored;

// Roots that share a kernel.
typedef struct {
    GroupKind kind;
    int depth;
    int older;       // the cluster of this depth that was made before, or NONE;
                     // of assignments, of any other bucket
    int64_t bucket;  // of a cluster of assignments; -1: none
    NodeId space;    // over whose shape its kernel iterates; not of parts
    NodeId priority; // the last of its roots, in the order of the old graph
    NodeId *root;
    int num_roots;
} Cluster;

typedef struct {
    Cluster *cluster;
    int count;
    int *of;    // of a root: the index of its cluster; else NONE
    int *group; // of a cluster: the index of its group, once it is added
    Arena *own; // of all that
} Clusters;

// The nodes that the kernel of a cluster computes: its roots and the inline
// nodes below them, in the order of the old graph.
typedef struct {
    NodeId *node;
    int count;
} Members;

static inline const Node *at(const FuseAnalysis *f, NodeId n) {
    return &f->old->node[n];
}

static inline const NodeInfo *info(const FuseAnalysis *f, NodeId n) {
    return &f->info[n];
}

static inline unsigned traits(const FuseAnalysis *f, NodeId n) {
    return info(f, n)->traits;
}

static inline bool is_leaf(const FuseAnalysis *f, NodeId n) {
    return traits(f, n) & LEAF;
}

static inline bool reduces_rows(const FuseAnalysis *f, NodeId n) {
    return (traits(f, n) & REDUCES) && info(f, n)->reduction == ROW_REDUCTION;
}

static inline bool same_shape(const FuseAnalysis *f, NodeId a, NodeId b) {
    return info(f, a)->shape == info(f, b)->shape;
}

// Whether n can be computed inside the kernels that use it.
static inline bool is_inline(const FuseAnalysis *f, NodeId n) {
    return (traits(f, n) & (POINTWISE | INDEXES | WINDOW | VIEW)) ||
           reduces_rows(f, n);
}

static inline int64_t count_of(const FuseAnalysis *f, NodeId n) {
    return info(f, n)->count;
}

// At most a value for each column, and not of the batch: little beside a tensor
// with rows.
static inline bool is_small(const FuseAnalysis *f, NodeId n) {
    return info(f, n)->small;
}

// The node that n views, by way of any other views; n itself if it is none.
static inline NodeId base_of(const FuseAnalysis *f, NodeId n) {
    while (traits(f, n) & VIEW)
        n = info(f, n)->arg[0];
    return n;
}

// A view of something in memory is that memory; of anything else it is
// computed in the kernel like an index.
static inline bool in_memory(const FuseAnalysis *f, const Stored *s, NodeId n) {
    while ((traits(f, n) & VIEW) && !s->stored[n])
        n = info(f, n)->arg[0];
    return s->stored[n] || (is_leaf(f, n) && !info(f, n)->immediate);
}

// The node whose memory a view of something in memory is.
static inline NodeId memory_base(const FuseAnalysis *f, const Stored *s,
                                 NodeId n) {
    while ((traits(f, n) & VIEW) && in_memory(f, s, n))
        n = info(f, n)->arg[0];
    return n;
}

// Whether the update leaves n in memory.
static inline bool update_writes(const Stored *s, NodeId n) {
    return s->written_by_update[n] && s->stored[n] && !s->unfused[n];
}

// ---- fuse_analysis.c ----

FuseAnalysis fuse_analyze(const Graph *g, Arena *a, const PassOptions *o);

// ---- fuse_store.c ----

// Asks for n to be in memory.  A view of something computed asks for that.
void store(const FuseAnalysis *f, Stored *s, NodeId n, Reason why);

// The values that must be in memory whatever kernels there will be.  g is the
// old graph, which counts rewrites.
Stored store_first(const FuseAnalysis *f, Graph *g, Arena *a);

// Stores values inside expressions that are too deep or read too much.  After
// the choice by cost, which stores the same values of each position of a loop.
void store_large(const FuseAnalysis *f, Stored *s, Arena *a);

// ---- fuse_update.c ----

// Which numbers may be made by the kernel of the update or of a stack:
// s->in_update and s->written_by_update.
void find_updated(const FuseAnalysis *f, Stored *s, Arena *a);

// Stores the values below an assignment, a stack or a number of its kernel that
// the kernel cannot compute by element and that are no scalars.
void store_for_update(const FuseAnalysis *f, Stored *s, Arena *a);

// Takes the reductions out of the update that others need in memory before it.
// Returns the last user of each node.
NodeId *leave_update(const FuseAnalysis *f, Stored *s, Arena *a);

// Which scalars nothing but outputs and the update needs, so that it can leave
// them in memory.
void find_written_by_update(const FuseAnalysis *f, Stored *s,
                            const NodeId *user);

// ---- fuse_rows.c ----

// Finds the row reduction that decides the space of each node's kernel, and
// stores those for which there is no one space.
void find_rows(const FuseAnalysis *f, Stored *s);

// Whether a kernel over the rows of space can compute the reduction n over its
// blocks, too.
bool fits_reduction(const FuseAnalysis *f, NodeId n, NodeId space);

// ---- fuse_cluster.c ----

// Divides the stored values among kernels, anew.
void find_clusters(const FuseAnalysis *f, const Stored *s, Clusters *c);

// ---- fuse_cost.c ----

// Stores the nodes that cost more to recompute, given the clusters: the first
// on each path, and each that has a multiple of `every` others below.
void store_by_traffic(const FuseAnalysis *f, Stored *s, const Clusters *c,
                      int every);

// ---- fuse_members.c ----

// The members of each cluster.
const Members *find_members(const FuseAnalysis *f, const Stored *s,
                            const Clusters *c, Arena *a);

// ---- fuse_build.c ----

// The graph in groups, one for each cluster: c->group.
Graph *build_groups(const FuseAnalysis *f, const Stored *s, const Clusters *c,
                    const Members *members, Arena *a);

// ---- fuse.c ----

// Finds the groups of the old graph g and returns it in these.
Graph *fuse(const FuseAnalysis *f, Graph *g, Clusters *c);

// ---- fuse_time.c ----

// The same for a described device, but with fewer values to a kernel where it
// would have too few resident blocks and more kernels take less time.
Graph *fuse_by_time(const FuseAnalysis *f, Graph *g);

#endif
