// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plan cache: the chosen plan, a plan of the previous cache, or the first that
// the library proposes and that is ready.

#include "runtime/cuda/libraries/libraries.h"

#include <stdlib.h>

enum { MAX_WORKSPACE = 512 << 20 };

static const RtChosenPlan *chosen_for(const RtPlanCache *p, const RtCall *call,
                                      unsigned with) {
    const RtChosen *t = p->chosen;
    for (int i = 0; t != NULL && i < t->num_plans; i++) {
        RtCall as;
        if (t->plan[i].with == with &&
            rt_convolution_of(&p->plan->call[t->plan[i].call], &as) &&
            rt_call_same(&as, call))
            return &t->plan[i];
    }
    return NULL;
}

// The chosen plan, if the library still has the same engine there.
static bool plan_chosen(const RtCudnn *c, RtCachedPlan *p,
                        const RtChosenPlan *t, RtError *e) {
    const RtCudnnCriteria criteria = {.max_workspace = MAX_WORKSPACE,
                                      .first = t->candidate};
    if (!rt_cudnn_plan(c, &p->call, p->with, criteria, &p->plan, e))
        return false;
    if (t->engine < 0 ||
        (p->plan.candidate == t->candidate && p->plan.engine == t->engine))
        return true;
    rt_cudnn_plan_free(&p->plan);
    return false;
}

// Prefers a precompiled plan with a small workspace: a trainer should start at
// once, and autotuning finds the fastest.  A fusion that needs compilation is
// left out, since its kernel can be launched instead.
static bool plan_call(const RtCudnn *c, RtCachedPlan *p, bool may_compile,
                      RtError *e) {
    const RtCudnnCriteria criteria[] = {
        {.precompiled_only = true, .max_workspace = MAX_WORKSPACE},
        {.max_workspace = MAX_WORKSPACE},
        {0},
    };
    const size_t count = p->with == 0 ? 3 : may_compile ? 2 : 1;
    for (size_t i = 0; i < count; i++)
        if (rt_cudnn_plan(c, &p->call, p->with, criteria[i], &p->plan, e))
            return true;
    return false;
}

static bool requested_same(const RtCachedPlan *p, const RtCachedPlan *q) {
    return p->requested.call == q->requested.call &&
           p->requested.candidate == q->requested.candidate &&
           p->requested.engine == q->requested.engine &&
           (p->with == 0 || p->may_compile == q->may_compile);
}

static void plan_new(const RtCudnn *c, RtCachedPlan *p, RtError *e) {
    const bool named = p->requested.call >= 0;
    p->good = named && plan_chosen(c, p, &p->requested, e);
    p->missed = named && !p->good;
    p->good = p->good || plan_call(c, p, p->may_compile, e);
}

static int find(const RtPlanCache *p, const RtCall *call, unsigned with) {
    for (int i = 0; i < p->count; i++)
        if (p->made[i].with == with && rt_call_same(&p->made[i].call, call))
            return i;
    return -1;
}

// Takes over the result of the previous cache, also that there is no plan.
static bool plan_previous(RtPlanCache *previous, RtCachedPlan *p) {
    int known = previous == NULL ? -1 : find(previous, &p->call, p->with);
    if (known < 0 || !requested_same(&previous->made[known], p))
        return false;
    RtCachedPlan *old = &previous->made[known];
    p->good = old->good;
    p->missed = old->missed;
    p->plan = old->plan;
    old->plan = (RtCudnnPlan){0};
    return true;
}

static bool grow(RtPlanCache *p) {
    int room = p->room > 0 ? 2 * p->room : 64;
    if (p->count < p->room)
        return true;
    RtCachedPlan *more = realloc(p->made, (size_t)room * sizeof *more);
    if (more == NULL)
        return false;
    p->made = more;
    p->room = room;
    return true;
}

static int make(RtPlanCache *p, const RtCall *call, unsigned with, RtError *e) {
    if (!grow(p)) {
        rt_fail(e, EXIT_MEMORY, "out of memory for convolution plans");
        return -1;
    }
    const RtChosenPlan *t = chosen_for(p, call, with);
    RtCachedPlan *made = &p->made[p->count];
    *made = (RtCachedPlan){
        .call = *call,
        .with = with,
        .requested = t != NULL ? *t : (RtChosenPlan){.call = -1},
        .may_compile = p->chosen != NULL && p->chosen->may_compile};
    if (!plan_previous(p->previous, made))
        plan_new(p->c, made, e);
    p->missed |= made->missed;
    return p->count++;
}

int rt_plan_cache_find(RtPlanCache *p, const RtCall *call, unsigned with,
                       RtError *e) {
    int i = find(p, call, with);
    if (i < 0)
        i = make(p, call, with, e);
    return i >= 0 && p->made[i].good ? i : -1;
}

int rt_plan_cache_next(RtPlanCache *p, int before, int64_t max_workspace) {
    RtError ignored;
    if (!grow(p))
        return -1;
    RtCachedPlan *made = &p->made[p->count];
    *made = p->made[before];
    const RtCudnnCriteria criteria = {.max_workspace =
                                          max_workspace > 0 ? max_workspace : 1,
                                      .first = made->plan.candidate + 1};
    return rt_cudnn_plan(p->c, &made->call, made->with, criteria, &made->plan,
                         &ignored)
               ? p->count++
               : -1;
}

void rt_plan_cache_free(RtPlanCache *p) {
    for (int i = 0; i < p->count; i++)
        rt_cudnn_plan_free(&p->made[i].plan);
    free(p->made);
}
