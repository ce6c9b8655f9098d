// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lane: batches into the inputs of steps, by a stream of their own.
//
// The inputs are in use by the step before, so a batch goes into a slot of
// device memory first, and the stream of the steps moves it on.  Events tell
// that stream when a slot is full, and the copies' when it is empty again.
#ifndef RUNTIME_CUDA_LANE_H
#define RUNTIME_CUDA_LANE_H

#include "runtime/cuda/driver/driver.h"
#include "runtime/cuda/memory/resident_dataset.h"
#include "runtime/device.h"

enum { RT_COPY_SLOTS = 3 };

typedef struct {
    const RtDriver *cu;
    CUstream steps, copies;
    RtTraceSpans *spans;
    size_t slot_bytes; // what the largest step takes
    struct {
        CUdeviceptr at;
        CUevent full, empty;
    } slot[RT_COPY_SLOTS];
    RtResident rows[RT_MAX_RESIDENT]; // that are kept
    int num_rows;
    int64_t given; // feeds
    int64_t done;  // of them, those whose bytes have been read
} RtCopyStream;

bool rt_copy_stream_open(RtCopyStream *f, const RtDriver *cu, CUstream steps,
                         const RtPlan *plan, RtTraceSpans *spans, RtError *e);
void rt_copy_stream_close(RtCopyStream *f);

// Bytes of device memory that it needs, and where they are.  What the steps'
// stream has been told to do with them comes first.
size_t rt_copy_stream_bytes(const RtCopyStream *f);
bool rt_copy_stream_bind(RtCopyStream *f, CUdeviceptr at, RtError *e);

// Keeps rows, that pieces then name by their number from 1.
bool rt_copy_stream_add_resident(RtCopyStream *f, RtGather *g,
                                 RtStaging *staging, const RtRows *rows,
                                 int64_t taken, RtError *e);

// Puts the pieces into the arena.  Their bytes are pinned, and are read until
// rt_copy_stream_completed counts this feed.
bool rt_copy_stream_submit(RtCopyStream *f, CUdeviceptr arena,
                           const RtPiece *piece, int count, RtError *e);
// Counts the feeds whose bytes have been read in f->done, which it waits for
// to be `least`.
bool rt_copy_stream_completed(RtCopyStream *f, int64_t least, RtError *e);
// Waits until no copy is on its way.
bool rt_copy_stream_sync(const RtCopyStream *f, RtError *e);

#endif
