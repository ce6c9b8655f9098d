// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Merge candidates: a step runs with merged launches, then with the same
// launches one by one and nothing timed between them.  If that is faster, a
// merged launch is dropped and parts of it may be merged, so this repeats until
// every merged launch has been measured.

#include "runtime/cuda/tune/tune.h"

#include <stdlib.h>

typedef struct {
    const RtTuner *t;
    RtConvolutions *v;
    bool *known, *merged;                // for each merged launch of the plan
    bool *within;                        // for each launch
    double *merged_took, *separate_took; // seconds of launches
} Tune;

bool rt_tune_merged(const RtTuner *t, const RtConvolutions *v, const int *tile,
                    const bool *unmerged, bool *merged, RtError *e) {
    const RtPlan *plan = t->plan;
    const RtTiles *tiles = tile != NULL ? t->tiles : NULL;
    bool *fused = calloc((size_t)plan->num_fusions + 1, sizeof *fused);
    if (fused == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; v != NULL && i < plan->num_fusions; i++)
        fused[i] = rt_convolutions_fused(v, plan->fusion[i].step,
                                         plan->fusion[i].launch);
    if (tiles != NULL)
        rt_tiles_choose(t->tiles, tile);
    rt_merges_choose(plan, tiles, fused, unmerged, merged);
    free(fused);
    return true;
}

static bool is_of_step(const Tune *u, int join) {
    return u->t->plan->merged[join].step == u->t->step && u->merged[join];
}

// *any: there are merged launches to measure.
static bool choose_merges(Tune *u, const RtChosen *out, bool *any, RtError *e) {
    const RtPlan *p = u->t->plan;
    *any = false;
    if (!rt_tune_merged(u->t, u->v, out->tile, out->unmerged, u->merged, e))
        return false;
    for (int i = 0; i < u->t->launches; i++)
        u->within[i] = false;
    for (int i = 0; i < p->num_merged; i++) {
        if (!is_of_step(u, i))
            continue;
        *any |= !u->known[i];
        for (int k = 1; k < p->merged[i].count; k++)
            u->within[p->merged[i].launch + k] = true;
    }
    return true;
}

static bool add_row(const Tune *u, const RtMergedLaunch *join, int group,
                    const char *way, double seconds, bool chosen, RtError *e) {
    const RtPlan *p = u->t->plan;
    RtTuningResult *row =
        rt_tuning_results_add(u->t->results, group, way, seconds, e);
    if (row == NULL)
        return false;
    snprintf(row->launch, sizeof row->launch, "%s",
             p->kernel[join->kernel].name);
    rt_tuning_result_lines(row, &p->step[join->step], join->launch);
    row->chosen = chosen;
    return true;
}

// Merged launches of other steps with the same kernel follow this one.
static bool learn(const Tune *u, int which, RtChosen *out, RtError *e) {
    const RtPlan *p = u->t->plan;
    const RtMergedLaunch *join = &p->merged[which];
    double merged = u->merged_took[join->launch];
    double separate = u->separate_took[join->launch];
    bool leave = rt_clearly_less(separate, merged);
    int group = u->t->results->count;
    for (int i = 0; i < p->num_merged; i++)
        if (i == which || (p->merged[i].step != join->step &&
                           p->merged[i].kernel == join->kernel))
            out->unmerged[i] = leave;
    u->known[which] = true;
    char way[48];
    snprintf(way, sizeof way, "%d launches", join->count);
    return add_row(u, join, group, "one launch", merged, !leave, e) &&
           add_row(u, join, group, way, separate, leave, e);
}

static bool measure_round(Tune *u, RtChosen *out, RtError *e) {
    const RtCandidate merged = {u->v, u->merged, u->within, out->tile};
    const RtCandidate separate = {u->v, NULL, u->within, out->tile};
    if (!u->t->measure(u->t->arg, &merged, u->merged_took, e) ||
        !u->t->measure(u->t->arg, &separate, u->separate_took, e))
        return false;
    for (int i = 0; i < u->t->plan->num_merged; i++)
        if (is_of_step(u, i) && !u->known[i] && !learn(u, i, out, e))
            return false;
    return true;
}

static bool tune(Tune *u, RtChosen *out, RtError *e) {
    bool any = false;
    bool good = choose_merges(u, out, &any, e);
    while (good && any)
        good = measure_round(u, out, e) && choose_merges(u, out, &any, e);
    return good;
}

bool rt_tune_merges(const RtTuner *t, RtConvolutions *v, RtChosen *out,
                    RtError *e) {
    size_t joins = (size_t)t->plan->num_merged + 1;
    size_t launches = (size_t)t->launches + 1;
    Tune u = {.t = t,
              .v = v,
              .known = calloc(joins, sizeof *u.known),
              .merged = calloc(joins, sizeof *u.merged),
              .within = calloc(launches, sizeof *u.within),
              .merged_took = calloc(launches, sizeof *u.merged_took),
              .separate_took = calloc(launches, sizeof *u.separate_took)};
    bool good = u.known != NULL && u.merged != NULL && u.within != NULL &&
                        u.merged_took != NULL && u.separate_took != NULL
                    ? tune(&u, out, e)
                    : rt_fail(e, EXIT_MEMORY, "out of memory for tuning");
    free(u.known);
    free(u.merged);
    free(u.within);
    free(u.merged_took);
    free(u.separate_took);
    return good;
}
