// Merged launches: kernels that follow each other and may be one launch.
//
// The kernels between two library calls, as the statistics of a batch_norm and
// its application, can be one cooperative launch with a grid barrier between
// the kernels, which are its phases.  Like a library fusion, a merged launch
// follows from the groups and changes none of them: a device takes it or
// launches the kernels one by one, and one memory plan fits both ways.
#ifndef PASSES_PLAN_MERGED_LAUNCH_H
#define PASSES_PLAN_MERGED_LAUNCH_H

#include "ir/program.h"
#include "passes/plan/group.h"
#include "passes/plan/library_fusion.h"

enum {
    MAX_MERGED = 8,          // kernels of a merged launch
    MAX_MERGED_POINTERS = 64 // its parameters, with the barrier
};

// Groups first .. first + count - 1.
typedef struct {
    int first, count;
} MergedLaunch;

// In their order.  A merged launch comes before those of its parts, which are
// for devices that fuse some of its kernels into calls.
typedef struct {
    MergedLaunch *launch;
    int count;
} MergedLaunches;

// Whether launches of such a step may be merged: it runs often.
bool step_merges(StepKind kind);

MergedLaunches graph_merged_launches(const Graph *g,
                                     const LibraryFusions *fusions, Arena *a);

// Marks the merged launches that a device takes with these library fusions and
// the groups that tile kernels replace (NULL: none): all kernels of each are
// launched, and none of them twice.
bool *merged_taken(const MergedLaunches *merged, const LibraryFusions *fusions,
                   const bool *fused, const bool *replaced, Arena *a);

// Launches that a device saves so with the library fusions of compute
// capability sm; 0: with none.
int merged_saving(const MergedLaunches *merged, const LibraryFusions *fusions,
                  int sm, const bool *replaced);

// The index of the block counter of the barrier of merged launches: the last.
int merged_barrier_counter(const Graph *g);

#endif
