// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Join: kernels that are made as one launch, gathered as they come.

#include "runtime/cuda/launch/merged_launch.h"

#include <string.h>

static bool covers(const RtJoin *join, int step, int launch) {
    return join->step == step && launch >= join->launch &&
           launch < join->launch + join->count;
}

static bool overlaps(const RtJoin *a, const RtJoin *b) {
    return covers(a, b->step, b->launch) || covers(b, a->step, a->launch);
}

static bool join_is_free(const RtPlan *plan, int which, const bool *fused,
                         const bool *taken) {
    const RtJoin *join = &plan->join[which];
    for (int i = 0; i < plan->num_fusions; i++)
        if (fused[i] &&
            covers(join, plan->fusion[i].step, plan->fusion[i].launch))
            return false;
    for (int i = 0; i < which; i++)
        if (taken[i] && overlaps(join, &plan->join[i]))
            return false;
    return true;
}

void rt_merges_choose(const RtPlan *plan, const bool *fused, const bool *apart,
                      bool *taken) {
    for (int i = 0; i < plan->num_joins; i++)
        taken[i] =
            (apart == NULL || !apart[i]) && join_is_free(plan, i, fused, taken);
}

void rt_merging_begin(RtMerging *j, const RtPlan *plan, const bool *taken,
                      int step) {
    *j = (RtMerging){.plan = plan, .taken = taken, .step = step};
}

static const RtJoin *join_here(const RtMerging *j) {
    for (int i = 0; i < j->plan->num_joins; i++)
        if (j->taken[i] && covers(&j->plan->join[i], j->step, j->launch))
            return &j->plan->join[i];
    return NULL;
}

void rt_merging_skip(RtMerging *j) {
    j->launch++;
}

bool rt_merging_add(RtMerging *j, int *kernel, int *grid, const size_t **arg) {
    const RtJoin *join = join_here(j);
    j->launch++;
    if (join == NULL)
        return true;
    int count = j->plan->kernel[*kernel].args;
    memcpy(j->arg + j->num_args, *arg, (size_t)count * sizeof **arg);
    j->num_args += count;
    if (j->launch < join->launch + join->count)
        return false;
    j->arg[j->num_args] = join->barrier;
    j->num_args = 0;
    *kernel = join->kernel;
    *grid = join->blocks;
    *arg = j->arg;
    return true;
}
