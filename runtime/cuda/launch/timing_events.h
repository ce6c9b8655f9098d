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
} RtMark;

typedef struct {
    const RtDriver *cu;
    CUevent end;
    RtMark *mark;
    int count, most;
    bool pending;        // a run with them is on the stream, and not read yet
    RtTimes spent;       // in all the runs that were read
    int64_t reads, runs; // runs: since times were last taken
} RtMarks;

// Room for `most` of them, of a step that is measured.
bool rt_marks_open(RtMarks *m, const RtDriver *cu, int most, RtError *e);
void rt_marks_close(RtMarks *m);

// Forgets the marks of the run before, and then adds some, which later runs
// pass again if they are captured.
void rt_marks_begin(RtMarks *m);
bool rt_marks_add(RtMarks *m, RtPhase phase, RtWork work, CUstream stream,
                  bool captured, RtError *e);

// A run with marks has been put on the stream.  An event of its own tells when
// it has ended: those in a graph keep what they were until the graph comes to
// them.
bool rt_marks_end(RtMarks *m, CUstream stream, RtError *e);
// Reads what a run has left, if it has come to its end.
bool rt_marks_read(RtMarks *m, RtError *e);
// What has been read does not count: it was not as later runs are.
void rt_marks_forget(RtMarks *m);
// Adds what the runs since the last call took, as those that were read tell.
void rt_marks_times(RtMarks *m, RtTimes *t);

#endif
