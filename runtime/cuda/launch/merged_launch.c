// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Merged launches: kernels of one cooperative launch, collected as they arrive.

#include "runtime/cuda/launch/launch.h"

#include <string.h>

static bool covers(const RtMergedLaunch *join, int step, int launch) {
    return join->step == step && launch >= join->launch &&
           launch < join->launch + join->count;
}

static bool overlaps(const RtMergedLaunch *a, const RtMergedLaunch *b) {
    return covers(a, b->step, b->launch) || covers(b, a->step, a->launch);
}

static bool can_merge(const RtPlan *plan, const RtTiles *tiles, int which,
                      const bool *fused, const bool *merged) {
    const RtMergedLaunch *join = &plan->merged[which];
    for (int k = 0; tiles != NULL && k < join->count; k++)
        if (rt_tiles_take(tiles, join->step, join->launch + k))
            return false;
    for (int i = 0; i < plan->num_fusions; i++)
        if (fused[i] &&
            covers(join, plan->fusion[i].step, plan->fusion[i].launch))
            return false;
    for (int i = 0; i < which; i++)
        if (merged[i] && overlaps(join, &plan->merged[i]))
            return false;
    return true;
}

void rt_merges_choose(const RtPlan *plan, const RtTiles *tiles,
                      const bool *fused, const bool *unmerged, bool *merged) {
    for (int i = 0; i < plan->num_merged; i++)
        merged[i] = (unmerged == NULL || !unmerged[i]) &&
                    can_merge(plan, tiles, i, fused, merged);
}

void rt_merging_begin(RtMerging *m, const RtPlan *plan, const bool *merged,
                      int step) {
    *m = (RtMerging){.plan = plan, .merged = merged, .step = step};
}

static const RtMergedLaunch *merged_here(const RtMerging *m) {
    for (int i = 0; i < m->plan->num_merged; i++)
        if (m->merged[i] && covers(&m->plan->merged[i], m->step, m->launch))
            return &m->plan->merged[i];
    return NULL;
}

void rt_merging_skip(RtMerging *m) {
    m->launch++;
}

bool rt_merging_add(RtMerging *m, int *kernel, int *grid, const size_t **arg) {
    const RtMergedLaunch *join = merged_here(m);
    m->launch++;
    if (join == NULL)
        return true;
    int count = m->plan->kernel[*kernel].args;
    memcpy(m->arg + m->num_args, *arg, (size_t)count * sizeof **arg);
    m->num_args += count;
    if (m->launch < join->launch + join->count)
        return false;
    m->arg[m->num_args] = join->barrier;
    m->num_args = 0;
    *kernel = join->kernel;
    *grid = join->blocks;
    *arg = m->arg;
    return true;
}
