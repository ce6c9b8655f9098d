// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans of cuDNN, each made once for all calls that are alike.
#ifndef RUNTIME_CUDA_PLANS_H
#define RUNTIME_CUDA_PLANS_H

#include "runtime/cuda/tune/tuning.h"

typedef struct {
    RtCall call;
    unsigned with;      // bits 1 << RtFusionKind
    RtChosenPlan asked; // what a tuning named; its call is -1: nothing
    bool compiles;      // what must be compiled would have done
    bool strayed;       // it is not what was asked for
    bool good;          // there is a plan
    RtCudnnPlan plan;
} RtCachedPlan;

typedef struct RtPlanCache {
    const RtCudnn *c;
    const RtPlan *plan;
    const RtChosen *tuning; // while they are made; NULL: the library's choice
    struct RtPlanCache *before; // whose may be taken meanwhile; NULL: none
    bool strayed;               // some are not what the tuning named
    RtCachedPlan *made;
    int count, room;
} RtPlanCache;

// The number of the plan for a call, made when it is first asked for; -1 where
// there is none.
int rt_plan_cache_find(RtPlanCache *p, const RtCall *call, unsigned with,
                       RtError *e);
// The same done by the next of the library's that works in so many bytes.  The
// one before stays: a step that was recorded may run its code.
int rt_plan_cache_next(RtPlanCache *p, int before, int64_t within);
void rt_plan_cache_free(RtPlanCache *p);

#endif
