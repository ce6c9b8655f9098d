// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trials: the step of a device, run with one candidate or another and timed.
#ifndef RUNTIME_CUDA_TRIAL_H
#define RUNTIME_CUDA_TRIAL_H

#include "runtime/cuda/launch/step.h"
#include "runtime/cuda/libraries/library_calls.h"
#include "runtime/cuda/tune/cold_cache_timer.h"
#include "runtime/cuda/tune/tune.h"

// What a device lends: it makes its launches one by one, as these say.
typedef struct {
    const RtGpu *gpu;
    const RtPlan *plan;
    int step, launches; // of it
    RtMaker maker;
    RtLibraryCalls *calls;
    const RtKernels *kernels;
    bool **joins;        // where it has which are taken
    RtColdTimer **gauge; // and what is told of launches
} RtTuneTarget;

// Measures, keeps what came of it in the file of the calls, and says so in
// *said, which the caller frees.
bool rt_tune_step(const RtTuneTarget *b, char **said, RtError *e);

#endif
