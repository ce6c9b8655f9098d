// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Spans: events around all that streams are given, for a trace.
#ifndef RUNTIME_CUDA_SPANS_H
#define RUNTIME_CUDA_SPANS_H

#include "runtime/cuda/driver/driver.h"
#include "runtime/report/trace.h"

typedef struct {
    RtSpan span; // its times are not known yet
    CUevent begin, end;
} RtTimed;

typedef struct {
    const RtDriver *cu;
    RtTrace *trace; // NULL: nothing is traced
    CUevent zero;   // that times are counted from, and when that was
    double began;
    RtTimed *timed;
    int count, room;
} RtSpans;

// The streams are idle.
bool rt_spans_open(RtSpans *w, const RtDriver *cu, CUstream stream,
                   RtTrace *trace, RtError *e);
// What the stream is given between these is the span; both do nothing where
// nothing is traced.
bool rt_spans_begin(RtSpans *w, const RtSpan *span, CUstream stream,
                    RtError *e);
bool rt_spans_end(RtSpans *w, CUstream stream, RtError *e);
// Gives the spans to the trace.  The streams are idle again.
bool rt_spans_read(RtSpans *w, RtError *e);
void rt_spans_close(RtSpans *w);

#endif
