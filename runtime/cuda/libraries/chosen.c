// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chosen plans: their memory.

#include "runtime/cuda/libraries/libraries.h"

#include <stdlib.h>

size_t rt_chosen_room(const RtPlan *plan) {
    return (size_t)plan->num_calls * RT_FUSION_SETS + 1;
}

bool rt_chosen_new(RtChosen *t, const RtPlan *plan, RtError *e) {
    *t = (RtChosen){0};
    t->plan = calloc(rt_chosen_room(plan), sizeof *t->plan);
    t->algorithm = calloc((size_t)plan->num_calls + 1, sizeof *t->algorithm);
    t->fused = calloc((size_t)plan->num_fusions + 1, sizeof *t->fused);
    t->unmerged = calloc((size_t)plan->num_merged + 1, sizeof *t->unmerged);
    t->tile = calloc((size_t)plan->num_tiles + 1, sizeof *t->tile);
    if (t->plan != NULL && t->algorithm != NULL && t->fused != NULL &&
        t->unmerged != NULL && t->tile != NULL)
        return true;
    rt_chosen_free(t);
    return rt_fail(e, EXIT_MEMORY, "out of memory for tuning");
}

void rt_chosen_free(RtChosen *t) {
    free(t->plan);
    free(t->algorithm);
    free(t->fused);
    free(t->unmerged);
    free(t->tile);
    *t = (RtChosen){0};
}
