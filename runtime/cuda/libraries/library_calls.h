// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls: the library calls of a plan on a GPU, each given to what does it.
//
// Convolutions are cuDNN's, which may do the work of some kernels on the way,
// and so are products, or they are cuBLASLt's (matmul.h).  Factors of matrices
// are found on the host, which a step that is recorded cannot do.
#ifndef RUNTIME_CUDA_CALLS_H
#define RUNTIME_CUDA_CALLS_H

#include "runtime/cuda/kernels/kernels.h"
#include "runtime/cuda/libraries/convolution.h"
#include "runtime/cuda/libraries/matmul.h"
#include "runtime/cuda/memory/memory.h"

typedef struct {
    const RtGpu *gpu;
    const RtPlan *plan;
    CUstream stream;
    RtStaging *staging;
    CUdeviceptr arena, workspace;
    RtCudnn cudnn;
    RtConvolutions *convolutions; // NULL: the plan has none
    RtMatmuls *matmuls;           // NULL: none of its own
    RtTuningKey key;
    char *path;           // of the file that says how; NULL: none can be
    const RtFiles *files; // how it is opened
    bool is_tuned;        // it was there
    RtChosen tuning;      // what it says
} RtLibraryCalls;

// Prepares all calls; what they need of the GPU beside the arena is known then.
// A tuning is followed unless the options (NULL: none) ask for a new one; that
// which they name must be there.
bool rt_library_calls_open(RtLibraryCalls *c, const RtGpu *gpu,
                           const RtPlan *plan, CUstream stream,
                           RtStaging *staging, const RtOptions *o, RtLaps *laps,
                           RtError *e);
void rt_library_calls_close(RtLibraryCalls *c);

size_t rt_library_calls_workspace(const RtLibraryCalls *c);
void rt_library_calls_bind(RtLibraryCalls *c, CUdeviceptr arena,
                           CUdeviceptr workspace);

// Tells the kernels what calls leave them in place of their own statistics.
bool rt_library_calls_set_flags(const RtLibraryCalls *c, const RtKernels *k,
                                RtError *e);

// Whether a call does what launch number `launch` of a step would, which counts
// kernels and calls from 0.
bool rt_library_calls_fused(const RtLibraryCalls *c, int step, int launch);
// Whether a call works on the host between the launches before and after it.
bool rt_library_calls_on_host(const RtLibraryCalls *c, int call);
// Has convolutions done as v does them, and all calls in this workspace or, if
// that is 0, in their own; returns what did convolutions until now.
RtConvolutions *rt_library_calls_use(RtLibraryCalls *c, RtConvolutions *v,
                                     CUdeviceptr workspace);
bool rt_library_calls_run(RtLibraryCalls *c, int call, size_t a, size_t b,
                          size_t out, RtError *e);
// Has a call that a library would not run done in another way from now on;
// false: it has none.
bool rt_library_calls_fall_back(RtLibraryCalls *c, int call);

#endif
