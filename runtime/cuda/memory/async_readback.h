// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: a few numbers from a GPU, read some steps later without waiting.
#ifndef RUNTIME_CUDA_NOTES_H
#define RUNTIME_CUDA_NOTES_H

#include "runtime/cuda/driver/driver.h"
#include "runtime/device.h"

typedef struct {
    const RtDriver *cu;
    CUstream stream;
    float (
        *value)[RT_MAX_READBACK_VALUES]; // pinned; a row for each that is out
    CUevent there[RT_MAX_READBACKS];
    int count[RT_MAX_READBACKS];
    int64_t asked, told;
} RtAsyncReadback;

bool rt_async_readback_open(RtAsyncReadback *n, const RtDriver *cu,
                            CUstream stream, RtError *e);
void rt_async_readback_close(RtAsyncReadback *n);

// Copies floats as they are after what the stream has been told to do.  There
// are fewer than RT_MAX_READBACKS to be told.
bool rt_async_readback_request(RtAsyncReadback *n, CUdeviceptr arena,
                               const size_t *from, int count, RtError *e);
// The numbers of the oldest that has not been told; *there: they have come,
// which it may wait for.
bool rt_async_readback_poll(RtAsyncReadback *n, float *to, bool wait,
                            bool *there, RtError *e);

#endif
