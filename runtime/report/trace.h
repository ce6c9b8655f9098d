// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trace: spans of a few steps, in a file for chrome://tracing and Perfetto.
//
// A span has a begin and an end on one track; spans of a track nest or are
// disjoint.  When the array is full, further spans are counted and dropped.
#ifndef RUNTIME_TRACE_H
#define RUNTIME_TRACE_H

#include "runtime/rt.h"

struct RtError;

enum {
    RT_TRACK_RUN,     // the main loop: steps and waits
    RT_TRACK_COPIES,  // batches to the device
    RT_TRACK_KERNELS, // on the device
    RT_TRACK_CALLS,   // of libraries, on the device
    RT_TRACK_LOADERS, // and following: one for each loading thread
};

typedef struct {
    int track;
    const char *name;
    double begin, end; // in rt_seconds
    // The launches in it, in terms of the model; the number of a step or a
    // batch, -1: none.
    const RtLaunch *launch;
    int launches;
    int64_t number;
} RtSpan;

typedef struct RtTrace RtTrace;

// NULL: no memory.
RtTrace *rt_trace_new(const char *path);

// Creates the file, so that an error is known before the first step; not
// earlier, as a run that fails before would leave an empty file.
bool rt_trace_open(RtTrace *t, struct RtError *e);

// Spans are recorded from begin to end; any thread may add some.
void rt_trace_begin(RtTrace *t);
void rt_trace_end(RtTrace *t);
void rt_trace_add(RtTrace *t, const RtSpan *span);

// The recorded spans, until the trace is closed.
const RtSpan *rt_trace_spans(const RtTrace *t, int *count);
// The model lines of a span's launches, without repetitions in a row.
void rt_span_lines(char *to, size_t room, const RtSpan *span);

// Writes the file: title names the model and device, note the steps.
bool rt_trace_write(RtTrace *t, const char *title, const char *note,
                    struct RtError *e);
// The same for a program that ends at once; no effect if the file is not open.
void rt_trace_abandon(RtTrace *t, const char *title, const char *why);
void rt_trace_close(RtTrace *t);

#endif
