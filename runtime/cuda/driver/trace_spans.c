// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trace spans: a pair of events for each span.  One event, for which the host
// waits, ties the GPU's clock to the host's; GPU spans appear late by that
// wait, some microseconds.

#include "runtime/cuda/driver/driver.h"

#include <stdlib.h>

bool rt_trace_spans_open(RtTraceSpans *w, const RtDriver *cu, CUstream stream,
                         RtTrace *trace, RtError *e) {
    *w = (RtTraceSpans){.cu = cu, .trace = trace};
    bool good = rt_event_create(cu, &w->zero, CU_EVENT_DEFAULT, e) &&
                rt_driver_good(cu, cu->event_record(w->zero, stream), e,
                               "record the start of a trace") &&
                rt_driver_good(cu, cu->event_sync(w->zero), e,
                               "record the start of a trace");
    w->began = rt_seconds();
    return good;
}

void rt_trace_spans_close(RtTraceSpans *w) {
    for (int i = 0; i < w->count; i++) {
        rt_event_destroy(w->cu, w->timed[i].begin);
        rt_event_destroy(w->cu, w->timed[i].end);
    }
    rt_event_destroy(w->cu, w->zero);
    free(w->timed);
    *w = (RtTraceSpans){0};
}

static bool grow(RtTraceSpans *w, RtError *e) {
    int room = w->room > 0 ? 2 * w->room : 256;
    RtTimedSpan *grown = realloc(w->timed, (size_t)room * sizeof *grown);
    if (grown == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    w->timed = grown;
    w->room = room;
    return true;
}

static bool record(const RtTraceSpans *w, CUevent *event, CUstream stream,
                   RtError *e) {
    return rt_event_create(w->cu, event, CU_EVENT_DEFAULT, e) &&
           rt_driver_good(w->cu, w->cu->event_record(*event, stream), e,
                          "record the event of a launch");
}

bool rt_trace_spans_begin(RtTraceSpans *w, const RtSpan *span, CUstream stream,
                          RtError *e) {
    if (w->trace == NULL)
        return true;
    if (w->count == w->room && !grow(w, e))
        return false;
    w->timed[w->count] = (RtTimedSpan){.span = *span};
    return record(w, &w->timed[w->count++].begin, stream, e);
}

bool rt_trace_spans_end(RtTraceSpans *w, CUstream stream, RtError *e) {
    return w->trace == NULL ||
           record(w, &w->timed[w->count - 1].end, stream, e);
}

static bool read_time(const RtTraceSpans *w, CUevent event, double *seconds,
                      RtError *e) {
    float milliseconds = 0;
    bool good = rt_driver_good(
        w->cu, w->cu->event_elapsed(&milliseconds, w->zero, event), e,
        "read the time of a launch");
    *seconds = w->began + 1e-3 * (double)milliseconds;
    return good;
}

bool rt_trace_spans_read(RtTraceSpans *w, RtError *e) {
    for (int i = 0; i < w->count; i++) {
        RtSpan *s = &w->timed[i].span;
        if (!read_time(w, w->timed[i].begin, &s->begin, e) ||
            !read_time(w, w->timed[i].end, &s->end, e))
            return false;
        rt_trace_add(w->trace, s);
    }
    return true;
}
