// Fuse: finds the nodes that share a kernel.
//
//   requires   The graph is primitive and typed, without dead code.
//   preserves  Every value that an effect depends on stays the same, up to
//              rounding.
//   result     Each node is a leaf, a view, an output, or in a group: a range
//              of nodes that becomes one kernel or one library call.  A node
//              that several kernels need is copied into each, so that no kernel
//              stores a value that another can recompute cheaply.
//
// First fuse decides which values must be in memory: operands of library calls,
// results of reductions, and values that cost more to recompute than to store.
// These are the roots.  A root's depth is the number of roots on the longest
// path before it; roots of equal depth cannot depend on one another, so those
// that iterate over the same space and read a common tensor become one cluster.
// A sum of a value that a kernel stores joins that kernel and has its depth,
// and a column reduction joins a kernel of rows that reads the same.  All
// assignments are one cluster, launched last; those of a shard's terms are one
// for each bucket.  Then the graph is rebuilt cluster by cluster, each with its
// own copies of the nodes between its inputs and its roots, and of inputs that
// it can recompute from the others.
//
// A fused kernel computes in f32 and rounds where it stores, so fusing changes
// results: it leaves roundings out, and it rounds to ACT the values that it
// stores although they could be recomputed from activations.

#include "passes/fuse.h"
#include "passes/legalize.h"

#include <limits.h>

static void settle(const FuseAnalysis *f, Stored *s, Clusters *c) {
    Arena *a = arena_new();
    NodeId *user;
    do {
        s->changed = false;
        store_for_update(f, s, a);
        find_rows(f, s);
        user = leave_update(f, s, a);
    } while (s->changed);
    find_written_by_update(f, s, user); // of the values in memory by now
    arena_free(a);
    find_clusters(f, s, c);
}

// Round by round.  In a chain of many blocks a round for each would make the
// cost quadratic: after a while, sooner where a round takes long, they are
// looked at in runs of a few.
static void store_by_cost(const FuseAnalysis *f, Stored *s, Clusters *c) {
    enum { ONE_BY_ONE = 8, LONG_TIME = 200000, RUN = 8, MAX_ROUNDS = 128 };
    int alone = (int)(LONG_TIME / (f->old->count + 1));
    alone = alone < ONE_BY_ONE ? alone : ONE_BY_ONE;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        s->changed = false;
        store_by_traffic(f, s, c, round < alone ? INT_MAX : RUN);
        if (!s->changed)
            return;
        settle(f, s, c);
    }
    store_by_traffic(f, s, c, 1);
    settle(f, s, c);
}

Graph *fuse(const FuseAnalysis *f, Graph *g, Clusters *c) {
    Arena *a = arena_new();
    Stored s = store_first(f, g, a);
    do {
        settle(f, &s, c);
        store_by_cost(f, &s, c);
        s.changed = false;
        store_large(f, &s, a);
    } while (s.changed);
    const Members *members = find_members(f, &s, c, a);
    Graph *fused = build_groups(f, &s, c, members, a);
    arena_free(a);
    return fused;
}

Graph *pass_fuse(Graph *g, Arena *scratch, const PassOptions *o) {
    g = graph_legalize(g, scratch);
    FuseAnalysis f = fuse_analyze(g, scratch, o);
    if (o->time_model.times != NULL)
        return fuse_by_time(&f, g);
    Clusters c = {0};
    g = fuse(&f, g, &c);
    arena_free(c.own);
    return g;
}
