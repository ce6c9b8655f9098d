// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Joins: launches of a step on their way to a GPU that makes several of them
// one.
#ifndef RUNTIME_CUDA_JOIN_H
#define RUNTIME_CUDA_JOIN_H

#include "runtime/rt.h"

// Which joins of a plan a device can take that takes these of its fusions, and
// is to leave those that are `apart` (NULL: none): for each whether it is.
void rt_merges_choose(const RtPlan *plan, const bool *fused, const bool *apart,
                      bool *taken);

// The launches of a step on their way to a device that joins them.
typedef struct {
    const RtPlan *plan;
    const bool *taken;
    int step, launch; // which comes next
    size_t arg[RT_MOST_JOINED_ARGS];
    int num_args; // of the join that is open
} RtMerging;

void rt_merging_begin(RtMerging *j, const RtPlan *plan, const bool *taken,
                      int step);
// The next one is a library call, or rides on one.
void rt_merging_skip(RtMerging *j);
// The next one is a kernel.  True when something is to be launched now: what
// comes back in its place.
bool rt_merging_add(RtMerging *j, int *kernel, int *grid, const size_t **arg);

#endif
