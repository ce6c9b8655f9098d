// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ahead: libraries for the calls of a plan, opened by a thread of its own.
//
// They are large: cuDNN and cuBLASLt, which it opens too, have 1.2 GB, and to
// open them takes longer than to plan with them.  That needs no GPU, so it is
// done while the device makes its context.
#ifndef RUNTIME_CUDA_AHEAD_H
#define RUNTIME_CUDA_AHEAD_H

#include "runtime/cuda/driver/driver.h"

#include <pthread.h>

typedef struct {
    const RtGpu *gpu;
    const RtPlan *plan;
    pthread_t thread;
    bool is_begun;
} RtPreload;

// Begins to open what the plan's calls need on the GPU, which needs no context
// yet.  What goes wrong with it is not told: it is where it is opened again.
void rt_preload_start(RtPreload *a, const RtGpu *gpu, const RtPlan *plan);
// Waits for what was begun.
void rt_preload_wait(RtPreload *a);

#endif
