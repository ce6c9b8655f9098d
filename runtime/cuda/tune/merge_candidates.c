// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tune: joins are run as they would be taken, then the same launches one by one
// with nothing timed between them.  Where that is faster a join is left, and
// parts of it may be joined: so again until none is taken that was not tried.

#include "runtime/cuda/tune/tune.h"

#include "runtime/cuda/launch/merged_launch.h"
#include "runtime/device.h"

#include <stdlib.h>

typedef struct {
    const RtTuner *t;
    RtConvolutions *v;
    bool *known, *joined;             // for each of the plan's joins
    bool *within;                     // for each launch
    double *joined_took, *apart_took; // seconds of launches
} Tune;

bool rt_tune_merged(const RtPlan *plan, const RtConvolutions *v,
                    const bool *apart, bool *joined, RtError *e) {
    bool *fused = calloc((size_t)plan->num_fusions + 1, sizeof *fused);
    if (fused == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; v != NULL && i < plan->num_fusions; i++)
        fused[i] = rt_convolutions_fused(v, plan->fusion[i].step,
                                         plan->fusion[i].launch);
    rt_merges_choose(plan, fused, apart, joined);
    free(fused);
    return true;
}

static bool is_here(const Tune *u, int join) {
    return u->t->plan->join[join].step == u->t->step && u->joined[join];
}

// Whether joins would be taken that have not been tried.
static bool take_joins(Tune *u, const RtChosen *out, bool *any, RtError *e) {
    const RtPlan *p = u->t->plan;
    *any = false;
    if (!rt_tune_merged(p, u->v, out->apart, u->joined, e))
        return false;
    for (int i = 0; i < u->t->launches; i++)
        u->within[i] = false;
    for (int i = 0; i < p->num_joins; i++) {
        if (!is_here(u, i))
            continue;
        *any |= !u->known[i];
        for (int k = 1; k < p->join[i].count; k++)
            u->within[p->join[i].launch + k] = true;
    }
    return true;
}

static bool add_row(const Tune *u, const RtJoin *join, int group,
                    const char *way, double seconds, bool chosen, RtError *e) {
    const RtPlan *p = u->t->plan;
    const RtLaunch *first = rt_launch_of(&p->step[join->step], join->launch);
    RtTuningResult *row = rt_tuning_results_add(u->t->tried, group, e);
    if (row == NULL)
        return false;
    snprintf(row->launch, sizeof row->launch, "%s",
             p->kernel[join->kernel].name);
    if (first != NULL)
        snprintf(row->model, sizeof row->model, "%s, %s", first->path,
                 first->lines);
    snprintf(row->way, sizeof row->way, "%s", way);
    row->seconds = seconds;
    row->chosen = chosen;
    return true;
}

// Joins of other steps with the same kernel are as this one.
static bool learn(const Tune *u, int which, RtChosen *out, RtError *e) {
    const RtPlan *p = u->t->plan;
    const RtJoin *join = &p->join[which];
    double joined = u->joined_took[join->launch];
    double apart = u->apart_took[join->launch];
    bool leave = rt_clearly_less(apart, joined);
    int group = u->t->tried->count;
    for (int i = 0; i < p->num_joins; i++)
        if (i == which || (p->join[i].step != join->step &&
                           p->join[i].kernel == join->kernel))
            out->apart[i] = leave;
    u->known[which] = true;
    char way[48];
    snprintf(way, sizeof way, "%d launches", join->count);
    return add_row(u, join, group, "one launch", joined, !leave, e) &&
           add_row(u, join, group, way, apart, leave, e);
}

static bool take_round(Tune *u, RtChosen *out, RtError *e) {
    const RtCandidate joined = {u->v, u->joined, u->within};
    const RtCandidate apart = {u->v, NULL, u->within};
    if (!u->t->measure(u->t->arg, &joined, u->joined_took, e) ||
        !u->t->measure(u->t->arg, &apart, u->apart_took, e))
        return false;
    for (int i = 0; i < u->t->plan->num_joins; i++)
        if (is_here(u, i) && !u->known[i] && !learn(u, i, out, e))
            return false;
    return true;
}

static bool tune(Tune *u, RtChosen *out, RtError *e) {
    bool any = false;
    bool good = take_joins(u, out, &any, e);
    while (good && any)
        good = take_round(u, out, e) && take_joins(u, out, &any, e);
    return good;
}

bool rt_tune_merges(const RtTuner *t, RtConvolutions *v, RtChosen *out,
                    RtError *e) {
    size_t joins = (size_t)t->plan->num_joins + 1;
    size_t launches = (size_t)t->launches + 1;
    Tune u = {.t = t,
              .v = v,
              .known = calloc(joins, sizeof *u.known),
              .joined = calloc(joins, sizeof *u.joined),
              .within = calloc(launches, sizeof *u.within),
              .joined_took = calloc(launches, sizeof *u.joined_took),
              .apart_took = calloc(launches, sizeof *u.apart_took)};
    bool good = u.known != NULL && u.joined != NULL && u.within != NULL &&
                        u.joined_took != NULL && u.apart_took != NULL
                    ? tune(&u, out, e)
                    : rt_fail(e, EXIT_MEMORY, "out of memory for tuning");
    free(u.known);
    free(u.joined);
    free(u.within);
    free(u.joined_took);
    free(u.apart_took);
    return good;
}
