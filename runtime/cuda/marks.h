// Marks: how long the phases of a step take on a GPU, by events at where one
// ends and the next begins.
//
// A step is not measured each time: a run with marks is followed by many
// without, and stands for them.  Marks are read when the GPU has passed the
// last of them, without waiting.
#ifndef RUNTIME_CUDA_MARKS_H
#define RUNTIME_CUDA_MARKS_H

#include "runtime/cuda/driver.h"

enum { RT_MOST_MARKS = 16 };

typedef struct {
    const RtDriver *cu;
    CUevent event[RT_MOST_MARKS], end;
    RtPhase phase[RT_MOST_MARKS]; // that begins there
    int count;
    bool pending; // a run with them is on the stream, and not read yet
    double spent[RT_NUM_PHASES]; // seconds in all the runs that were read
    int64_t reads, runs;         // runs: since times were last taken
} RtMarks;

bool rt_marks_open(RtMarks *m, const RtDriver *cu, RtError *e);
void rt_marks_close(RtMarks *m);

// Forgets the marks of the run before, and then adds some, which later runs
// pass again if they are captured.
void rt_marks_begin(RtMarks *m);
bool rt_marks_add(RtMarks *m, RtPhase phase, CUstream stream, bool captured,
                  RtError *e);

// A run with marks has been put on the stream.  An event of its own tells when
// it has ended: those in a graph keep what they were until the graph comes to
// them.
bool rt_marks_end(RtMarks *m, CUstream stream, RtError *e);
// Reads what a run has left, if it has come to its end.
bool rt_marks_read(RtMarks *m, RtError *e);
// What has been read does not count: it was not as later runs are.
void rt_marks_forget(RtMarks *m);
// Adds what the runs since the last call took, as those that were read tell.
void rt_marks_times(RtMarks *m, double seconds[RT_NUM_PHASES]);

#endif
