// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Profile: the steps that a trace shows, and the main loop's spans in them.

#include "runtime/session/session.h"

#include <stdio.h>
#include <stdlib.h>

// The first steps warm up and capture CUDA graphs; the trace begins after them.
enum { WARM_STEPS = 3, TRACED_STEPS = 8 };

void rt_session_trace_since(const RtSession *s, const char *name, double begin,
                            int64_t number) {
    if (s->traces)
        rt_trace_add(s->run->trace, &(RtSpan){.track = RT_TRACK_RUN,
                                              .name = name,
                                              .begin = begin,
                                              .end = rt_seconds(),
                                              .number = number});
}

static void trace_begin(RtSession *s) {
    s->traces = true;
    rt_trace_begin(s->run->trace);
    s->device->trace(s->device, s->run->trace);
}

// The trace as a table; none without memory.
static void show_launched(const RtSession *s) {
    int count;
    RtLaunchTime *l = rt_launch_times(s->run->trace, s->plan, &count);
    rt_report_launch_times(s->report, l, count);
    free(l);
}

bool rt_session_trace_end(RtSession *s, RtError *e) {
    char title[128], note[200];
    s->device->trace(s->device, NULL);
    rt_trace_end(s->run->trace);
    s->traced = true;
    snprintf(title, sizeof title, "%s on %s", s->run->trainer->model,
             s->device->name);
    snprintf(
        note, sizeof note, "steps %lld to %lld%s",
        (long long)s->traced_from + 1, (long long)s->at.step,
        s->device->replays
            ? ", launched one by one; without a trace they are one CUDA graph"
            : "");
    if (s->at.step <= s->traced_from)
        snprintf(note, sizeof note, "no complete step: the run ended before");
    s->traces = false;
    if (!rt_trace_write(s->run->trace, title, note, e))
        return false;
    if (!s->run->options->quiet)
        rt_report_print(s->report, "%s has a trace of %s",
                        rt_rows_name(s->run->options->profile), note);
    show_launched(s);
    return true;
}

bool rt_session_trace_step(RtSession *s, RtError *e) {
    if (s->run->trace == NULL)
        return true;
    if (s->at.step == s->traced_from)
        trace_begin(s);
    return s->at.step != s->traced_to || rt_session_trace_end(s, e);
}

bool rt_session_trace_plan(RtSession *s, RtError *e) {
    int64_t steps = s->run->options->profile_steps;
    s->traced_from = s->at.step + WARM_STEPS;
    s->traced_to = s->traced_from + (steps > 0 ? steps : TRACED_STEPS);
    return s->run->trace == NULL || rt_trace_open(s->run->trace, e);
}

void rt_session_trace_batch(const RtSession *s, double begin,
                            const RtSubmitted *done) {
    const struct {
        const char *name;
        double seconds;
    } part[] = {{"wait for the device", done->device_wait},
                {"wait for data", done->waited},
                {"give batch", done->copying}};
    rt_session_trace_since(s, "take batch", begin, -1);
    for (int i = 0; s->traces && i < 3; i++) {
        double end = begin + part[i].seconds;
        rt_trace_add(s->run->trace, &(RtSpan){.track = RT_TRACK_RUN,
                                              .name = part[i].name,
                                              .begin = begin,
                                              .end = end,
                                              .number = -1});
        begin = end;
    }
}
