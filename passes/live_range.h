// Buffers: tensors that are in memory during a part of the launches of a step.
#ifndef PASSES_LIVE_RANGE_H
#define PASSES_LIVE_RANGE_H

#include "passes/plan/library_fusion.h"

typedef struct {
    NodeId node;
    int from, to; // launches, inclusive
    int64_t bytes, offset;
} Buffer;

// ---- live_range.c ----

// Bytes of a tensor in the arena: a multiple of ARENA_ALIGNMENT.
int64_t slot_bytes(const Graph *g, NodeId n);

// Slots of the states, or else of the inputs and caches.
int64_t leaves_bytes(const Graph *g, bool states);

// Every stored node of a group, from the launch that writes it to the last that
// reads it; an output, to one past the last launch.  The library fusions, which
// have the groups, need their own bytes all the time.  longer: operands of
// forked calls, and of kernels that can be the prologues of tile kernels, stay
// longer where the peak stays the same.
Buffer *graph_buffers(const Graph *g, const LibraryFusions *fusions,
                      bool longer, Arena *a, int *count);

// The largest sum of buffers that are live in one launch.  No plan needs less.
int64_t buffers_bound(const Buffer *buffer, int count);

// ---- offset_assignment.c ----

// Gives each buffer an offset from 0 up, so that those live at the same time
// do not overlap.  Returns the end of the last.  An end within `room` is good
// enough; 0: the search goes on for the least.
int64_t offsets_assign(Buffer *buffer, int count, int64_t room);

// ---- offset_assignment_walk.c ----

// The same for any number of buffers, in less time and mostly in a little more
// memory.
int64_t offsets_assign_walk(Buffer *buffer, int count);

#endif
