// Marks: events in a step.

#include "runtime/cuda/marks.h"

#include <string.h>

bool rt_marks_open(RtMarks *m, const RtDriver *cu, RtError *e) {
    *m = (RtMarks){.cu = cu};
    for (int i = 0; i < RT_MOST_MARKS; i++)
        if (!rt_driver_good(cu, cu->event_new(&m->event[i], CU_EVENT_DEFAULT),
                            e, "make an event"))
            return false;
    return rt_driver_good(cu, cu->event_new(&m->end, CU_EVENT_DISABLE_TIMING),
                          e, "make an event");
}

void rt_marks_close(RtMarks *m) {
    for (int i = 0; i < RT_MOST_MARKS; i++)
        if (m->event[i] != NULL)
            m->cu->event_free(m->event[i]);
    if (m->end != NULL)
        m->cu->event_free(m->end);
    *m = (RtMarks){0};
}

void rt_marks_begin(RtMarks *m) {
    m->count = 0;
}

// Without room for another, the phase before lasts longer.
bool rt_marks_add(RtMarks *m, RtPhase phase, CUstream stream, bool captured,
                  RtError *e) {
    if (m->count == RT_MOST_MARKS)
        return true;
    CUevent event = m->event[m->count];
    m->phase[m->count++] = phase;
    return rt_driver_good(
        m->cu,
        captured
            ? m->cu->event_record_with(event, stream, CU_EVENT_RECORD_EXTERNAL)
            : m->cu->event_record(event, stream),
        e, "mark a phase of a step");
}

bool rt_marks_end(RtMarks *m, CUstream stream, RtError *e) {
    m->pending = true;
    return rt_driver_good(m->cu, m->cu->event_record(m->end, stream), e,
                          "mark the end of a step");
}

static bool intervals_add(RtMarks *m, RtError *e) {
    for (int i = 0; i + 1 < m->count; i++) {
        float milliseconds = 0;
        if (!rt_driver_good(
                m->cu,
                m->cu->event_time(&milliseconds, m->event[i], m->event[i + 1]),
                e, "read how long a phase took"))
            return false;
        m->spent[m->phase[i]] += 1e-3 * (double)milliseconds;
    }
    m->reads++;
    return true;
}

bool rt_marks_read(RtMarks *m, RtError *e) {
    if (!m->pending)
        return true;
    CUresult state = m->cu->event_query(m->end);
    if (state == CUDA_ERROR_NOT_READY)
        return true;
    m->pending = false;
    return rt_driver_good(m->cu, state, e, "run a step") && intervals_add(m, e);
}

void rt_marks_forget(RtMarks *m) {
    memset(m->spent, 0, sizeof m->spent);
    m->reads = 0;
}

void rt_marks_times(RtMarks *m, double seconds[RT_NUM_PHASES]) {
    for (int i = 0; m->reads > 0 && i < RT_NUM_PHASES; i++)
        seconds[i] += m->spent[i] / (double)m->reads * (double)m->runs;
    m->runs = 0;
}
