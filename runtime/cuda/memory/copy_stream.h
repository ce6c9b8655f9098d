// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lane: batches into the inputs of steps, by a stream of their own.
//
// The inputs are in use by the step before, so a batch goes into a slot of
// device memory first, and the stream of the steps moves it on.  Events tell
// that stream when a slot is full, and the copies' when it is empty again.
#ifndef RUNTIME_CUDA_LANE_H
#define RUNTIME_CUDA_LANE_H

#include "runtime/cuda/driver/trace_spans.h"
#include "runtime/cuda/memory/resident_dataset.h"
#include "runtime/device.h"

enum { RT_LANE_SLOTS = 3 };

typedef struct {
    const RtDriver *cu;
    CUstream steps, copies;
    RtSpans *spans;
    size_t slot_bytes; // what the largest step takes
    struct {
        CUdeviceptr at;
        CUevent full, empty;
    } slot[RT_LANE_SLOTS];
    RtRowset rows[RT_MOST_ROWSETS]; // that are kept
    int num_rows;
    int64_t given; // feeds
    int64_t done;  // of them, those whose bytes have been read
} RtLane;

bool rt_lane_open(RtLane *f, const RtDriver *cu, CUstream steps,
                  const RtPlan *plan, RtSpans *spans, RtError *e);
void rt_lane_close(RtLane *f);

// Bytes of device memory that it needs, and where they are.  What the steps'
// stream has been told to do with them comes first.
size_t rt_lane_bytes(const RtLane *f);
bool rt_lane_place(RtLane *f, CUdeviceptr at, RtError *e);

// Keeps rows, that pieces then name by their number from 1.
bool rt_lane_keep(RtLane *f, RtGather *g, RtStaging *staging,
                  const RtRows *rows, int64_t taken, RtError *e);

// Puts the pieces into the arena.  Their bytes are pinned, and are read until
// rt_lane_done counts this feed.
bool rt_lane_give(RtLane *f, CUdeviceptr arena, const RtPiece *piece, int count,
                  RtError *e);
// Counts the feeds whose bytes have been read in f->done, which it waits for
// to be `least`.
bool rt_lane_done(RtLane *f, int64_t least, RtError *e);
// Waits until no copy is on its way.
bool rt_lane_finish(const RtLane *f, RtError *e);

#endif
