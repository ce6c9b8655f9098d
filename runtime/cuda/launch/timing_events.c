// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Timing events: recorded between the phases and kinds of work of a step.

#include "runtime/cuda/launch/launch.h"

#include <stdlib.h>

bool rt_timing_events_open(RtTimingEvents *m, const RtDriver *cu, int capacity,
                           RtError *e) {
    *m = (RtTimingEvents){.cu = cu};
    m->event = calloc((size_t)capacity + 1, sizeof *m->event);
    if (m->event == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (; m->capacity < capacity; m->capacity++)
        if (!rt_event_create(cu, &m->event[m->capacity].event, CU_EVENT_DEFAULT,
                             e))
            return false;
    return rt_event_create(cu, &m->end, CU_EVENT_DISABLE_TIMING, e);
}

void rt_timing_events_close(RtTimingEvents *m) {
    for (int i = 0; i < m->capacity; i++)
        m->cu->event_free(m->event[i].event);
    rt_event_destroy(m->cu, m->end);
    free(m->event);
    *m = (RtTimingEvents){0};
}

void rt_timing_events_begin(RtTimingEvents *m) {
    m->count = 0;
}

// Without room for another event, the last interval lasts longer.
bool rt_timing_events_add(RtTimingEvents *m, RtPhase phase, RtWork work,
                          CUstream stream, bool captured, RtError *e) {
    if (m->count == m->capacity)
        return true;
    RtTimingEvent *own = &m->event[m->count++];
    CUevent event = own->event;
    own->phase = phase;
    own->work = work;
    return rt_driver_good(
        m->cu,
        captured
            ? m->cu->event_record_with(event, stream, CU_EVENT_RECORD_EXTERNAL)
            : m->cu->event_record(event, stream),
        e, "record the event of a phase");
}

bool rt_timing_events_end(RtTimingEvents *m, CUstream stream, RtError *e) {
    m->pending = true;
    return rt_driver_good(m->cu, m->cu->event_record(m->end, stream), e,
                          "record the end of a step");
}

static bool intervals_add(RtTimingEvents *m, RtError *e) {
    for (int i = 0; i + 1 < m->count; i++) {
        const RtTimingEvent *own = &m->event[i];
        float milliseconds = 0;
        if (!rt_driver_good(
                m->cu,
                m->cu->event_elapsed(&milliseconds, own[0].event, own[1].event),
                e, "read the time of a phase"))
            return false;
        double seconds = 1e-3 * (double)milliseconds;
        m->spent.phase[own->phase] += seconds;
        if (own->work < RT_NUM_WORKS)
            m->spent.work[own->work] += seconds;
    }
    m->reads++;
    return true;
}

bool rt_timing_events_read(RtTimingEvents *m, RtError *e) {
    if (!m->pending)
        return true;
    CUresult state = m->cu->event_query(m->end);
    if (state == CUDA_ERROR_NOT_READY)
        return true;
    m->pending = false;
    return rt_driver_good(m->cu, state, e, "run a step") && intervals_add(m, e);
}

void rt_timing_events_forget(RtTimingEvents *m) {
    m->spent = (RtTimes){0};
    m->reads = 0;
}

void rt_timing_events_times(RtTimingEvents *m, RtTimes *t) {
    double share = m->reads > 0 ? (double)m->runs / (double)m->reads : 0;
    for (int i = 0; i < RT_NUM_PHASES; i++)
        t->phase[i] += m->spent.phase[i] * share;
    for (int i = 0; i < RT_NUM_WORKS; i++)
        t->work[i] += m->spent.work[i] * share;
    m->runs = 0;
}
