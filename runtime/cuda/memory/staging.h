// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Staging: copies between a GPU and memory that its owner wants back at once.
//
// They go through pinned memory, which the GPU reads while the host goes on.
// Its slots are filled in turn; one is used again when what was copied from it
// has arrived.
#ifndef RUNTIME_CUDA_STAGING_H
#define RUNTIME_CUDA_STAGING_H

#include "runtime/cuda/driver/driver.h"

enum { RT_STAGING_SLOTS = 4 };

typedef struct {
    char *at;
    size_t used;
    CUevent arrived; // what was copied from it, when it was left
    bool left;
} RtStagingSlot;

typedef struct {
    const RtDriver *cu;
    CUstream stream;
    RtStagingSlot slot[RT_STAGING_SLOTS];
    int now; // the slot that is being filled
    char *back;
} RtStaging;

bool rt_staging_open(RtStaging *s, const RtDriver *cu, CUstream stream,
                     RtError *e);
void rt_staging_close(RtStaging *s);

// The bytes at `from` are free to change when it returns.
bool rt_staging_write(RtStaging *s, CUdeviceptr to, const void *from,
                      size_t bytes, RtError *e);
// Waits for all that the stream was given before.
bool rt_staging_read(RtStaging *s, void *to, CUdeviceptr from, size_t bytes,
                     RtError *e);

#endif
