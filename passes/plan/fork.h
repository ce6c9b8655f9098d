// Forks: library calls that run beside later launches.
//
// The gradient of a layer's filters is read long after it is computed, so a
// device can compute it on a second stream while the backward pass goes on.  A
// fork follows from the groups and the memory plan: nothing between the call
// and its join reads its results, or writes what it reads or writes.
#ifndef PASSES_PLAN_FORK_H
#define PASSES_PLAN_FORK_H

#include "passes/plan/library_fusion.h"

// The call, and the launch before which the second stream is joined.  Forks do
// not overlap: a stream has one at a time.
typedef struct {
    int call, join;
} Fork;

typedef struct {
    Fork *fork; // in order of the calls
    int count;
} Forks;

// The forks that reads and writes of nodes allow, whatever their offsets: each
// ends at the next one's call.  Those beside too little work are left out.
Forks graph_fork_windows(const Graph *g, const LibraryFusions *r, Arena *a);

// The forks of a graph with offsets.
Forks graph_forks(const Graph *g, const LibraryFusions *r, Arena *a);

#endif
