// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels: the functions of a plan on a GPU, compiled from the text that the
// trainer carries.
//
// What the trainer carries for the GPU is loaded; else they are compiled, all
// that are ever launched.  All code is on the GPU before the first launch.
#ifndef RUNTIME_CUDA_KERNELS_H
#define RUNTIME_CUDA_KERNELS_H

#include "runtime/cuda/kernels/compile.h"

// Of a kernel that is launched.
typedef struct {
    CUfunction function;
    int resident; // how many of its blocks the GPU has room for at a time
} RtFunction;

typedef struct {
    const RtGpu *gpu;
    const RtPlan *plan;
    const RtTrainer *trainer; // until they are open, as what follows
    RtCompiler *compiler;
    // One for each kernel, NULL where it is not launched; or one for all.
    CUmodule *module;
    int num_modules;
    RtFunction *entry; // one for each kernel of the plan
} RtKernels;

// Begins to compile those that are likely to be launched, of each of the
// plan's, while the caller goes on.  The GPU needs no context yet.
bool rt_kernels_start(RtKernels *k, const RtGpu *gpu, const RtTrainer *t,
                      const RtPlan *plan, const bool *likely,
                      const RtFiles *files, RtError *e);
// Loads those that are launched, and compiles what is missing.
bool rt_kernels_load(RtKernels *k, const bool *wanted, RtLaps *laps,
                     RtError *e);
void rt_kernels_close(RtKernels *k);

// Writes a variable of the text, in each part that has it.
bool rt_kernels_set_global(const RtKernels *k, const char *variable,
                           const void *value, size_t bytes, CUstream stream,
                           RtError *e);

#endif
