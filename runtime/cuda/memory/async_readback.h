// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Notes: a few numbers from a GPU, read some steps later without waiting.
#ifndef RUNTIME_CUDA_NOTES_H
#define RUNTIME_CUDA_NOTES_H

#include "runtime/cuda/driver/driver.h"
#include "runtime/device.h"

typedef struct {
    const RtDriver *cu;
    CUstream stream;
    float (*value)[RT_MOST_NOTED]; // pinned; a row for each that is out
    CUevent there[RT_MOST_ASKED];
    int count[RT_MOST_ASKED];
    int64_t asked, told;
} RtNotes;

bool rt_notes_open(RtNotes *n, const RtDriver *cu, CUstream stream, RtError *e);
void rt_notes_close(RtNotes *n);

// Copies floats as they are after what the stream has been told to do.  There
// are fewer than RT_MOST_ASKED to be told.
bool rt_notes_ask(RtNotes *n, CUdeviceptr arena, const size_t *from, int count,
                  RtError *e);
// The numbers of the oldest that has not been told; *there: they have come,
// which it may wait for.
bool rt_notes_tell(RtNotes *n, float *to, bool wait, bool *there, RtError *e);

#endif
