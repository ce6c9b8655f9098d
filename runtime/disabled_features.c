// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Disabled features: --without switches off features of a GPU's step that do
// not change its results, to measure their effect.

#include "runtime/runtime.h"

#include <string.h>

static const char *const names[] = {
    [RT_WITHOUT_GRAPH] = "graph",
    [RT_WITHOUT_LIBRARY_FUSIONS] = "library-fusions",
    [RT_WITHOUT_MERGED_LAUNCHES] = "merged-launches",
    [RT_WITHOUT_FORKS] = "forks",
    [RT_WITHOUT_PROGRAMMATIC_LAUNCHES] = "programmatic-launches",
    [RT_WITHOUT_TIMING_EVENTS] = "timing-events",
    [RT_WITHOUT_TILE_KERNELS] = "tile-kernels",
    [RT_WITHOUT_STEP_GROUPS] = "step-groups",
};
enum { NUM_NAMES = sizeof names / sizeof names[0] };

static int named(const char *word, size_t length) {
    for (int i = 0; i < NUM_NAMES; i++)
        if (strlen(names[i]) == length && strncmp(names[i], word, length) == 0)
            return i;
    return -1;
}

bool rt_without_parse(unsigned *without, const char *list) {
    *without = 0;
    for (const char *word = list;; word++) {
        size_t length = strcspn(word, ",");
        int i = named(word, length);
        if (i < 0)
            return false;
        *without |= 1u << i;
        word += length;
        if (*word == '\0')
            return true;
    }
}

void rt_without_apply(unsigned without, RtPlan *plan) {
    plan->one_by_one = without >> RT_WITHOUT_GRAPH & 1;
    plan->serialized = without >> RT_WITHOUT_PROGRAMMATIC_LAUNCHES & 1;
    plan->unmarked = without >> RT_WITHOUT_TIMING_EVENTS & 1;
    plan->ungrouped = without >> RT_WITHOUT_STEP_GROUPS & 1;
    plan->unforked = without >> RT_WITHOUT_FORKS & 1;
    if (without >> RT_WITHOUT_MERGED_LAUNCHES & 1)
        plan->num_merged = 0;
    if (without >> RT_WITHOUT_LIBRARY_FUSIONS & 1)
        plan->num_fusions = 0;
    if (without >> RT_WITHOUT_TILE_KERNELS & 1)
        plan->num_tiles = 0;
}

bool rt_without_check(unsigned without, const RtDevice *d, RtError *e) {
    return without == 0 || strcmp(d->name, "host") != 0 ||
           rt_fail(e, EXIT_USAGE,
                   "--without is for a GPU: the host has no graph, library "
                   "fusions, merged or programmatic launches, forks, timing "
                   "events, tile kernels or step groups");
}

const RtTrainer *rt_without_trainer(RtReducedTrainer *to, const RtTrainer *from,
                                    unsigned without) {
    to->trainer = *from;
    to->trainer.plan = to->plan;
    for (int i = 0; i < from->num_plans && i < RT_MAX_PLANS; i++) {
        to->plan[i] = from->plan[i];
        rt_without_apply(without, &to->plan[i]);
    }
    return &to->trainer;
}
