// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Spans: events around all that streams are given, for a trace.
#ifndef RUNTIME_CUDA_SPANS_H
#define RUNTIME_CUDA_SPANS_H

#include "runtime/cuda/driver/driver.h"
#include "runtime/report/trace.h"

typedef struct {
    RtSpan span; // its times are not known yet
    CUevent begin, end;
} RtTimedSpan;

typedef struct {
    const RtDriver *cu;
    RtTrace *trace; // NULL: nothing is traced
    CUevent zero;   // that times are counted from, and when that was
    double began;
    RtTimedSpan *timed;
    int count, room;
} RtTraceSpans;

// The streams are idle.
bool rt_trace_spans_open(RtTraceSpans *w, const RtDriver *cu, CUstream stream,
                         RtTrace *trace, RtError *e);
// What the stream is given between these is the span; both do nothing where
// nothing is traced.
bool rt_trace_spans_begin(RtTraceSpans *w, const RtSpan *span, CUstream stream,
                          RtError *e);
bool rt_trace_spans_end(RtTraceSpans *w, CUstream stream, RtError *e);
// Gives the spans to the trace.  The streams are idle again.
bool rt_trace_spans_read(RtTraceSpans *w, RtError *e);
void rt_trace_spans_close(RtTraceSpans *w);

#endif
