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
    find_late(f, user); // of what is in memory by now
    find_clusters(f);
    f->scratch = whole;
    arena_free(before);
}

// Stores some of what costs more to recompute.  What finding them takes is
// given back, as there are many rounds.
static void store_some(Fuse *f, int every) {
    Arena *whole = f->scratch;
    f->scratch = arena_new();
    store_dear(f, every);
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
              .joined = ARENA_ARRAY(scratch, g->count, bool),
              .late = ARENA_ARRAY(scratch, g->count, bool),
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
    find_updated(&f);
    store_first(&f);
    settle(&f);
    store_by_cost(&f);
    g = place_groups(&f, find_members(&f));
    arena_free(f.settled);
    return g;
}
