// What the files of fuse share: the values that must be in memory, the clusters
// of what is computed together, and questions about nodes.
#ifndef PASSES_FUSE_H
#define PASSES_FUSE_H

#include "ir/group.h"
#include "passes/passes.h"

#include <assert.h>

enum { NONE = -1 };

// Roots that share a kernel.

typedef struct {
    GroupKind kind;
    int depth;
    int older;       // the cluster of this depth that was made before, or NONE
    NodeId space;    // whose shape its kernel walks over; not of parts
    NodeId priority; // the last of its roots, in the order of the old graph
    NodeId *root;
    int num_roots;
} Cluster;

// What the kernel of a cluster computes: its roots and what is inline below
// them, in the order of the old graph.
typedef struct {
    NodeId *node;
    int count;
} Members;

// What is asked of a node again and again, close together: walking over whole
// nodes would mostly be waiting for memory.
typedef struct {
    const NodeId *arg;
    int64_t count; // of its elements
    int num_args;
    Op op;
    unsigned facts;
    int shape;   // the same number where shapes are the same
    NodeId pool; // see pool_unfolded
    bool immediate;
    bool small;     // at most a value for each column
    uint8_t extent; // of a reduction
} Brief;

// The graph that is being divided, and what is known of its nodes.
typedef struct {
    Graph *old;
    const Brief *brief;
    Users users;
    Arena *scratch;
    Arena *settled; // what settling the clusters has left
    const PassOptions *options;
    bool *stored;     // is in memory; for views, asks the operand to be
    bool *called;     // is read by a library, a check or as an output
    Reason *why;      // ... although a kernel that uses it could compute it
    bool *apart;      // shares no kernel
    const bool *fits; // see fits_update
    const bool *batched;
    const bool *in_rows; // is reduced along rows, or added to what is
    bool *narrow;        // is stored as ACT although it is f32, see fuse_cost.c
    bool changed;        // something became stored
    int *depth;
    NodeId *source;  // the root it is computed from, see fuse.c
    NodeId *host;    // of a sum, the root whose kernel computes it, or NO_NODE
    NodeId *row;     // the row reduction in its inline tree, or NO_NODE
    int *cluster;    // of a root
    bool *scattered; // pads that are assigned and nothing else
    bool *joined;    // reductions that the update makes: see fuse_update.c
    bool *late;      // scalars that the update leaves in memory
    Cluster *clusters;
    int count;
} Fuse;

static inline const Node *at(const Fuse *f, NodeId n) {
    return &f->old->node[n];
}

static inline const Brief *brief(const Fuse *f, NodeId n) {
    return &f->brief[n];
}

static inline unsigned facts(const Fuse *f, NodeId n) {
    return brief(f, n)->facts;
}

static inline bool is_leaf(const Fuse *f, NodeId n) {
    return facts(f, n) & LEAF;
}

static inline bool reduces_rows(const Fuse *f, NodeId n) {
    return (facts(f, n) & REDUCES) && brief(f, n)->extent == OVER_ROW;
}

static inline bool same_shape(const Fuse *f, NodeId a, NodeId b) {
    return brief(f, a)->shape == brief(f, b)->shape;
}

// Whether n can be computed inside the kernels that use it.
static inline bool is_inline(const Fuse *f, NodeId n) {
    return (facts(f, n) & (POINTWISE | INDEXES | WINDOW | VIEW)) ||
           reduces_rows(f, n);
}

static inline int64_t count_of(const Fuse *f, NodeId n) {
    return brief(f, n)->count;
}

// At most a value for each column: little beside what has rows too.
static inline bool is_small(const Fuse *f, NodeId n) {
    return brief(f, n)->small;
}

// What n is a view of, by way of any others; n itself if it is none.
static inline NodeId base_of(const Fuse *f, NodeId n) {
    while (facts(f, n) & VIEW)
        n = brief(f, n)->arg[0];
    return n;
}

// A view of something in memory is that memory; of anything else it is
// computed in the kernel like an index.
static inline bool in_memory(const Fuse *f, NodeId n) {
    while ((facts(f, n) & VIEW) && !f->stored[n])
        n = brief(f, n)->arg[0];
    return f->stored[n] || (is_leaf(f, n) && !brief(f, n)->immediate);
}

// The node whose memory a view of something in memory is.
static inline NodeId memory_base(const Fuse *f, NodeId n) {
    while ((facts(f, n) & VIEW) && in_memory(f, n))
        n = brief(f, n)->arg[0];
    return n;
}

static inline bool fits_update(const Fuse *f, NodeId n) {
    return f->fits[n];
}

// Whether the update leaves n in memory.
static inline bool is_late(const Fuse *f, NodeId n) {
    return f->late[n] && f->stored[n] && !f->apart[n];
}

// ---- fuse_brief.c ----

const Brief *find_brief(const Graph *g, Arena *scratch);

// What a normalisation over rows, or a soft-max, takes is kept in full.
bool *find_in_rows(const Fuse *f);

// Whether each node is computed element by element over its own shape, as what
// is assigned or stacked.
bool *find_fits(const Fuse *f);

// Which pads are but stores to other addresses.
bool *find_scattered(const Fuse *f);

// ---- fuse_store.c ----

// Asks for n to be in memory.  A view of something computed asks for that.
void store(Fuse *f, NodeId n, Reason why);

// Stores what must be in memory whatever kernels there will be.
void store_first(Fuse *f);

// ---- fuse_update.c ----

// Which numbers may be made by the kernel of the update or of a stack:
// f->joined and f->late.
void find_updated(Fuse *f);

// Below an assignment, a stack or a number that its kernel computes, what is
// neither such an element nor a scalar is stored first.
void store_for_update(Fuse *f);

// What is needed in memory before the update is not made there.  Returns who
// needs each node in the end.
NodeId *leave_update(Fuse *f);

// Which scalars nothing but outputs and the update needs, so that it can leave
// them in memory.
void find_late(Fuse *f, const NodeId *user);

// ---- fuse_rows.c ----

// Finds the row reduction that decides the space of each node's kernel, and
// stores those for which there is no one space.
void find_rows(Fuse *f);

// Whether a kernel over the rows of space can make the sum n besides.
bool fits_sum(const Fuse *f, NodeId n, NodeId space);

// ---- fuse_cluster.c ----

// Divides what is stored among kernels.
void find_clusters(Fuse *f);

// ---- fuse_cost.c ----

// Stores what costs more to recompute, given the clusters: the first such node
// on each path, and each that has a multiple of `every` others below.
void store_dear(Fuse *f, int every);

// ---- fuse_members.c ----

// The members of each cluster.
const Members *find_members(const Fuse *f);

// ---- fuse_place.c ----

// The graph in groups, one for each cluster.
Graph *place_groups(const Fuse *f, const Members *members);

#endif
