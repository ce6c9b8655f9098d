// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trace: what a few steps of a run did when, as a file that chrome://tracing
// and Perfetto show.
//
// A span is one thing from its beginning to its end on one track; spans of a
// track do not overlap but for those that lie within another.  There is room
// for so many of them; what comes later is counted and left out.
#ifndef RUNTIME_TRACE_H
#define RUNTIME_TRACE_H

#include "runtime/rt.h"

struct RtError;

enum {
    RT_TRACK_RUN,     // the loop of the run: steps, and what it waits for
    RT_TRACK_COPIES,  // batches to the device
    RT_TRACK_KERNELS, // on the device
    RT_TRACK_CALLS,   // of libraries, on the device
    RT_TRACK_LOADERS, // from here on, one for each thread that loads
};

typedef struct {
    int track;
    const char *name;
    double begin, end; // seconds of rt_seconds
    // What was launched there, in the model's words; and a number, of a step or
    // a batch, -1: none.
    const RtLaunch *launch;
    int launches;
    int64_t number;
} RtSpan;

typedef struct RtTrace RtTrace;

// NULL: no memory.
RtTrace *rt_trace_new(const char *path);

// Makes the file, so that a mistake is known before the first step; not sooner,
// as a run that fails before it would leave an empty one.
bool rt_trace_open(RtTrace *t, struct RtError *e);

// Spans are kept from begin to end; several threads may add some.
void rt_trace_begin(RtTrace *t);
void rt_trace_end(RtTrace *t);
void rt_trace_add(RtTrace *t, const RtSpan *span);

// What is kept, until the trace is closed.
const RtSpan *rt_trace_spans(const RtTrace *t, int *count);
// Lines of the model of all that was launched there, each but once in a row.
void rt_span_lines(char *to, size_t room, const RtSpan *span);

// Writes the file: title is what was run, note what is to be known of it.
bool rt_trace_write(RtTrace *t, const char *title, const char *note,
                    struct RtError *e);
// The same where the program ends at once, of what there is; nothing where the
// file is not open, or no longer.
void rt_trace_abandon(RtTrace *t, const char *title, const char *why);
void rt_trace_close(RtTrace *t);

#endif
