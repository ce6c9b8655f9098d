// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans: what a tuning names, what was planned before, or what the library
// offers first that can be had at once.

#include "runtime/cuda/libraries/plan_cache.h"

#include "runtime/cuda/libraries/convolution.h"

#include <stdlib.h>

enum { LITTLE_ROOM = 512 << 20 };

static const RtChosenPlan *tuned_for(const RtPlanCache *p, const RtCall *call,
                                     unsigned with) {
    const RtChosen *t = p->tuning;
    for (int i = 0; t != NULL && i < t->num_tuned; i++) {
        RtCall as;
        if (t->tuned[i].with == with &&
            rt_convolution_of(&p->plan->call[t->tuned[i].call], &as) &&
            rt_call_same(&as, call))
            return &t->tuned[i];
    }
    return NULL;
}

// The plan that was measured, if it is what it was.
static bool plan_tuned(const RtCudnn *c, RtCachedPlan *p, const RtChosenPlan *t,
                       RtError *e) {
    const RtCudnnCriteria wish = {.within = LITTLE_ROOM, .first = t->candidate};
    if (!rt_cudnn_plan(c, &p->call, p->with, wish, &p->plan, e))
        return false;
    if (t->engine < 0 ||
        (p->plan.candidate == t->candidate && p->plan.engine == t->engine))
        return true;
    rt_cudnn_plan_free(&p->plan);
    return false;
}

// A plan that is ready and works in little room is wanted before one that must
// be compiled: a trainer should start at once, and which is faster is for
// measuring to say.  What can be done without a fusion does not wait for it.
static bool plan_call(const RtCudnn *c, RtCachedPlan *p, bool compiles,
                      RtError *e) {
    const RtCudnnCriteria wish[] = {
        {.precompiled_only = true, .within = LITTLE_ROOM},
        {.within = LITTLE_ROOM},
        {0},
    };
    const size_t wishes = p->with == 0 ? 3 : compiles ? 2 : 1;
    for (size_t i = 0; i < wishes; i++)
        if (rt_cudnn_plan(c, &p->call, p->with, wish[i], &p->plan, e))
            return true;
    return false;
}

static bool asked_same(const RtCachedPlan *p, const RtCachedPlan *q) {
    return p->asked.call == q->asked.call &&
           p->asked.candidate == q->asked.candidate &&
           p->asked.engine == q->asked.engine &&
           (p->with == 0 || p->compiles == q->compiles);
}

static void plan_new(const RtCudnn *c, RtCachedPlan *p, RtError *e) {
    const bool named = p->asked.call >= 0;
    p->good = named && plan_tuned(c, p, &p->asked, e);
    p->strayed = named && !p->good;
    p->good = p->good || plan_call(c, p, p->compiles, e);
}

static int find(const RtPlanCache *p, const RtCall *call, unsigned with) {
    for (int i = 0; i < p->count; i++)
        if (p->made[i].with == with && rt_call_same(&p->made[i].call, call))
            return i;
    return -1;
}

// Takes over what was planned before, also that there is no plan.
static bool plan_before(RtPlanCache *before, RtCachedPlan *p) {
    int known = before == NULL ? -1 : find(before, &p->call, p->with);
    if (known < 0 || !asked_same(&before->made[known], p))
        return false;
    RtCachedPlan *old = &before->made[known];
    p->good = old->good;
    p->strayed = old->strayed;
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
    const RtChosenPlan *t = tuned_for(p, call, with);
    RtCachedPlan *made = &p->made[p->count];
    *made =
        (RtCachedPlan){.call = *call,
                       .with = with,
                       .asked = t != NULL ? *t : (RtChosenPlan){.call = -1},
                       .compiles = p->tuning != NULL && p->tuning->compiles};
    if (!plan_before(p->before, made))
        plan_new(p->c, made, e);
    p->strayed |= made->strayed;
    return p->count++;
}

int rt_plan_cache_find(RtPlanCache *p, const RtCall *call, unsigned with,
                       RtError *e) {
    int i = find(p, call, with);
    if (i < 0)
        i = make(p, call, with, e);
    return i >= 0 && p->made[i].good ? i : -1;
}

int rt_plan_cache_next(RtPlanCache *p, int before, int64_t within) {
    RtError ignored;
    if (!grow(p))
        return -1;
    RtCachedPlan *made = &p->made[p->count];
    *made = p->made[before];
    const RtCudnnCriteria wish = {.within = within > 0 ? within : 1,
                                  .first = made->plan.candidate + 1};
    return rt_cudnn_plan(p->c, &made->call, made->with, wish, &made->plan,
                         &ignored)
               ? p->count++
               : -1;
}

void rt_plan_cache_free(RtPlanCache *p) {
    for (int i = 0; i < p->count; i++)
        rt_cudnn_plan_free(&p->made[i].plan);
    free(p->made);
}
