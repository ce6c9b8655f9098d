// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gauge: how long each launch of a step takes, by events between them.
//
// Before each library call a buffer larger than the GPU's cache is written, so
// that a call finds its operands in memory, whatever candidates the calls
// before it run with; kernels find what the launch before them has left, as in
// a step that is not measured.
#ifndef RUNTIME_CUDA_GAUGE_H
#define RUNTIME_CUDA_GAUGE_H

#include "runtime/cuda/driver/driver.h"

typedef struct {
    const RtDriver *cu;
    CUstream stream;
    int launches;
    int *call;          // that each launch is; -1: a kernel
    const bool *within; // launches that count to the one before; NULL: none
    CUevent *begin;     // of each launch, and the end of the last
    CUevent *end;       // of what is before a call, and its cache still warm
    bool *failed;       // of each launch: it did not run
    CUdeviceptr cold;
    size_t cold_bytes;
} RtColdTimer;

// Memory of the GPU beside that of the plan, while something is measured.
bool rt_cold_timer_memory(const RtDriver *cu, CUdeviceptr *at, size_t bytes,
                          RtError *e);

bool rt_cold_timer_open(RtColdTimer *g, const RtGpu *gpu, CUstream stream,
                        int launches, RtError *e);
void rt_cold_timer_close(RtColdTimer *g);

// Before launch number `launch`; `call` is -1 for a kernel.
bool rt_cold_timer_record(RtColdTimer *g, int launch, int call, RtError *e);
// After the last launch: waits, and keeps in seconds[] what each took if that
// is less than what it has, or if it has none yet, which is negative.  What did
// not run takes for ever, what counts to the launch before no time.
bool rt_cold_timer_read(RtColdTimer *g, double *seconds, RtError *e);

#endif
