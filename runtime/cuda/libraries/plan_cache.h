// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans of cuDNN, each made once for all calls that are alike.
#ifndef RUNTIME_CUDA_PLANS_H
#define RUNTIME_CUDA_PLANS_H

#include "runtime/cuda/tune/tuning.h"

typedef struct {
    RtCall call;
    unsigned with; // bits 1 << RtFusionKind
    RtTuned asked; // what a tuning named; its call is -1: nothing
    bool compiles; // what must be compiled would have done
    bool strayed;  // it is not what was asked for
    bool good;     // there is a plan
    RtCudnnPlan plan;
} RtMade;

typedef struct RtPlans {
    const RtCudnn *c;
    const RtPlan *plan;
    const RtTuning *tuning; // while they are made; NULL: the library's choice
    struct RtPlans *before; // whose may be taken meanwhile; NULL: none
    bool strayed;           // some are not what the tuning named
    RtMade *made;
    int count, room;
} RtPlans;

// The number of the plan for a call, made when it is first asked for; -1 where
// there is none.
int rt_plans_for(RtPlans *p, const RtCall *call, unsigned with, RtError *e);
// The same done by the next of the library's that works in so many bytes.  The
// one before stays: a step that was recorded may run its code.
int rt_plans_other(RtPlans *p, int before, int64_t within);
void rt_plans_free(RtPlans *p);

#endif
