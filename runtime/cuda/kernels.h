// Kernels: the functions of a plan on a GPU, compiled from the text that the
// trainer carries.
//
// They are compiled when the device opens, each for itself and several side by
// side, for the GPU that is there; what the cache has is not compiled, nor what
// is never launched.  All code is on the GPU before the first launch.
#ifndef RUNTIME_CUDA_KERNELS_H
#define RUNTIME_CUDA_KERNELS_H

#include "runtime/cuda/driver.h"

// Of a kernel that is launched.
typedef struct {
    CUfunction function;
    int resident; // how many of its blocks the GPU has room for at a time
} RtEntry;

typedef struct {
    const RtGpu *gpu;
    const RtPlan *plan;
    // One for each kernel, NULL where it is not launched; or one for all.
    CUmodule *module;
    int num_modules;
    RtEntry *entry; // one for each kernel of the plan
} RtKernels;

// wanted says of each of the plan's kernels whether it is ever launched.
bool rt_kernels_open(RtKernels *k, const RtGpu *gpu, const RtTrainer *t,
                     const RtPlan *plan, const bool *wanted,
                     const RtFiles *files, RtError *e);
void rt_kernels_close(RtKernels *k);

// Writes a variable of the text, in each part that has it.
bool rt_kernels_set(const RtKernels *k, const char *variable, const void *value,
                    size_t bytes, CUstream stream, RtError *e);

#endif
