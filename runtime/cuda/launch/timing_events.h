// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Marks: how long the phases of a step and the kinds of its work take on a GPU,
// by events at where one ends and the next begins.
//
// A step is not measured each time: a run with marks is followed by many
// without, and stands for them.  Marks are read when the GPU has passed the
// last of them, without waiting.
#ifndef RUNTIME_CUDA_MARKS_H
#define RUNTIME_CUDA_MARKS_H

#include "runtime/cuda/driver/driver.h"

// An event, and what begins there; RT_NUM_WORKS: nothing that counts.
typedef struct {
    CUevent event;
    RtPhase phase;
    RtWork work;
} RtTimingEvent;

typedef struct {
    const RtDriver *cu;
    CUevent end;
    RtTimingEvent *mark;
    int count, most;
    bool pending;        // a run with them is on the stream, and not read yet
    RtTimes spent;       // in all the runs that were read
    int64_t reads, runs; // runs: since times were last taken
} RtTimingEvents;

// Room for `most` of them, of a step that is measured.
bool rt_timing_events_open(RtTimingEvents *m, const RtDriver *cu, int most,
                           RtError *e);
void rt_timing_events_close(RtTimingEvents *m);

// Forgets the marks of the run before, and then adds some, which later runs
// pass again if they are captured.
void rt_timing_events_begin(RtTimingEvents *m);
bool rt_timing_events_add(RtTimingEvents *m, RtPhase phase, RtWork work,
                          CUstream stream, bool captured, RtError *e);

// A run with marks has been put on the stream.  An event of its own tells when
// it has ended: those in a graph keep what they were until the graph comes to
// them.
bool rt_timing_events_end(RtTimingEvents *m, CUstream stream, RtError *e);
// Reads what a run has left, if it has come to its end.
bool rt_timing_events_read(RtTimingEvents *m, RtError *e);
// What has been read does not count: it was not as later runs are.
void rt_timing_events_forget(RtTimingEvents *m);
// Adds what the runs since the last call took, as those that were read tell.
void rt_timing_events_times(RtTimingEvents *m, RtTimes *t);

#endif
