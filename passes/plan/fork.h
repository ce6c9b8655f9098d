// Forks: library calls that run concurrently with later launches.
//
// A weight gradient, or any other contraction of the backward pass that the
// next launch does not read, can run on a side stream while the pass goes on. A
// fork follows from the groups and the memory plan: no launch between the call
// and its join reads the call's result, or writes to a tensor of the call.
// Calls that add to a tensor in memory are not forked.
#ifndef PASSES_PLAN_FORK_H
#define PASSES_PLAN_FORK_H

#include "passes/plan/library_fusion.h"

// The launch of the call, and the launch before which the main stream waits for
// it.  Forks do not overlap.
typedef struct {
    int call, join;
} Fork;

typedef struct {
    Fork *fork; // in order of the calls
    int count;
} Forks;

// The forks that the uses of tensors allow, whatever their offsets: each ends
// at the next one's call.  A fork has enough concurrent work.
Forks graph_fork_candidates(const Graph *g, const LibraryFusions *fusions,
                            Arena *a);

// The forks of a graph with offsets.
Forks graph_forks(const Graph *g, const LibraryFusions *fusions, Arena *a);

// Whether a group changes an input of a call in place: it assigns to it or adds
// to it.
bool group_assigns_input(const Graph *g, const Group *group, const Group *call);

#endif
