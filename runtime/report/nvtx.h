// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVTX: what a run is doing, in the model's words, for a profiler of NVIDIA's
// that has started the trainer.
//
// Ranges nest: steps, evaluations and checkpoints hold phases, and those
// launches.  A step that is one CUDA graph has no launches to tell of.
#ifndef RUNTIME_NVTX_H
#define RUNTIME_NVTX_H

#include "runtime/runtime.h"

typedef struct RtNvtx {
    void *library; // NULL: nobody asks
    int (*push)(const char *text);
    int (*pop)(void);
} RtNvtx;

// Opens the library where a profiler asks, or `must`: false, with the reason in
// *e, where it must and cannot.
bool rt_nvtx_open(RtNvtx *n, bool must, RtError *e);
void rt_nvtx_close(RtNvtx *n);

// Begins a range and ends the last that began; nothing where nobody asks, which
// n NULL says too.
void rt_nvtx_push(const RtNvtx *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void rt_nvtx_pop(const RtNvtx *n);

#endif
