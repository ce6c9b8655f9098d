// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replay: a step as one CUDA graph.
//
// The first run of a step makes its launches one by one, since libraries
// prepare what they need then.  The second records them, and from then on a
// run is one launch of the graph.  A step that works on the host between its
// launches is never recorded, nor one of which the driver or a library refuses
// it, or the launch of what was: that goes on one by one.
#ifndef RUNTIME_CUDA_REPLAY_H
#define RUNTIME_CUDA_REPLAY_H

#include "runtime/cuda/launch/timing_events.h"

typedef struct {
    CUgraphExec plain, marked;
    RtTimingEvents marks;
    bool is_measured; // or its phases are not marked, or no more
    int64_t unmarked; // runs since one with marks
    int64_t runs;
    bool one_by_one; // it is never recorded; where it works on the host or
                     // cannot be, that is found out when it runs
} RtStepGraph;

// What runs a step, and is told by `marked` whether phases are to be marked.
// False: what was to be captured cannot be, which is then asked for no more.
typedef struct {
    const RtDriver *cu;
    CUstream stream;
    bool (*make)(void *arg, bool captured, bool marked, RtError *e);
    // Is told why a step cannot be recorded, or only not with its marks.
    void (*refused)(void *arg, bool marked, const RtError *why);
    void *arg;
} RtMaker;

// Of a step that is measured, marks are room for its phases and launches.
bool rt_step_graph_open(RtStepGraph *r, const RtDriver *cu, int marks,
                        RtError *e);
void rt_step_graph_close(RtStepGraph *r);
bool rt_step_graph_run(RtStepGraph *r, const RtMaker *maker, RtError *e);

#endif
