// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVTX: ranges for NVIDIA's profilers, named as in the model.
//
// Ranges nest: steps, evaluations and checkpoints contain phases, and those
// launches.  A step in a CUDA graph has no launches.
#ifndef RUNTIME_NVTX_H
#define RUNTIME_NVTX_H

#include "runtime/runtime.h"

typedef struct RtNvtx {
    void *library; // NULL: disabled
    int (*push)(const char *text);
    int (*pop)(void);
} RtNvtx;

// Opens the library if a profiler runs, or if `must`; then false with the
// reason in *e if it cannot.
bool rt_nvtx_open(RtNvtx *n, bool must, RtError *e);
void rt_nvtx_close(RtNvtx *n);

// Begin a range; end the innermost.  No effect if n is NULL or disabled.
void rt_nvtx_push(const RtNvtx *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void rt_nvtx_pop(const RtNvtx *n);

#endif
