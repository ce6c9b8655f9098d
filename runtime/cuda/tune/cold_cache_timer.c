// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cold-cache timer: events, and a fill of twice the L2 cache before calls.

#include "runtime/cuda/tune/tune.h"

#include <math.h>
#include <stdlib.h>

static bool events_new(const RtColdTimer *g, CUevent *event, size_t count,
                       RtError *e) {
    for (size_t i = 0; i < count; i++)
        if (!rt_event_create(g->cu, &event[i], 0, e))
            return false;
    return true;
}

bool rt_tune_alloc(const RtDriver *cu, CUdeviceptr *at, size_t bytes,
                   RtError *e) {
    CUresult result = cu->memory_alloc(at, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return rt_fail(e, EXIT_MEMORY,
                       "cannot allocate %.1f MiB in one piece for tuning; use "
                       "--resident=no or a smaller batch",
                       (double)bytes / (1 << 20));
    return rt_driver_good(cu, result, e, "allocate %zu bytes for tuning",
                          bytes);
}

static bool cold_alloc(RtColdTimer *g, const RtGpu *gpu, RtError *e) {
    g->cold_bytes = 2 * gpu->cache;
    return g->cold_bytes == 0 ||
           rt_tune_alloc(g->cu, &g->cold, g->cold_bytes, e);
}

static bool record(const RtColdTimer *g, CUevent event, RtError *e) {
    return rt_driver_good(g->cu, g->cu->event_record(event, g->stream), e,
                          "record an event");
}

static bool flush(const RtColdTimer *g, RtError *e) {
    return g->cold == 0 ||
           rt_driver_good(g->cu,
                          g->cu->fill(g->cold, 0, g->cold_bytes, g->stream), e,
                          "flush the L2 cache");
}

static bool is_within(const RtColdTimer *g, int launch) {
    return g->within != NULL && launch < g->launches && g->within[launch];
}

static bool before_launch(RtLaunchTimer *timer, int launch, int call,
                          RtError *e) {
    RtColdTimer *g = (RtColdTimer *)(void *)timer; // timer is its first field
    g->call[launch] = call;
    if (is_within(g, launch))
        return true;
    return (call < 0 || (record(g, g->end[launch], e) && flush(g, e))) &&
           record(g, g->begin[launch], e);
}

bool rt_cold_timer_open(RtColdTimer *g, const RtGpu *gpu, CUstream stream,
                        int launches, RtError *e) {
    size_t room = (size_t)launches + 1;
    *g = (RtColdTimer){.timer = {.before = before_launch},
                       .cu = gpu->cu,
                       .stream = stream,
                       .launches = launches};
    g->call = calloc(room, sizeof *g->call);
    g->begin = calloc(room, sizeof *g->begin);
    g->end = calloc(room, sizeof *g->end);
    g->timer.failed = calloc(room, sizeof *g->timer.failed);
    bool good = (g->call != NULL && g->begin != NULL && g->end != NULL &&
                 g->timer.failed != NULL) ||
                rt_fail(e, EXIT_MEMORY, "out of memory");
    good = good && cold_alloc(g, gpu, e) && events_new(g, g->begin, room, e) &&
           events_new(g, g->end, room, e);
    if (!good)
        rt_cold_timer_close(g);
    return good;
}

static void events_free(const RtColdTimer *g, CUevent *event) {
    for (int i = 0; event != NULL && i <= g->launches; i++)
        rt_event_destroy(g->cu, event[i]);
    free(event);
}

void rt_cold_timer_close(RtColdTimer *g) {
    events_free(g, g->begin);
    events_free(g, g->end);
    if (g->cold != 0)
        g->cu->memory_free(g->cold);
    free(g->timer.failed);
    free(g->call);
    *g = (RtColdTimer){0};
}

static bool read_launch(const RtColdTimer *g, int launch, double *seconds,
                        RtError *e) {
    float milliseconds = 0;
    int next = launch + 1;
    while (is_within(g, next))
        next++;
    bool cooled = next < g->launches && g->call[next] >= 0;
    CUevent end = cooled ? g->end[next] : g->begin[next];
    if (!rt_driver_good(
            g->cu, g->cu->event_elapsed(&milliseconds, g->begin[launch], end),
            e, "read the time of a launch"))
        return false;
    *seconds = g->timer.failed[launch] ? HUGE_VAL : (double)milliseconds / 1000;
    return true;
}

bool rt_cold_timer_read(RtColdTimer *g, double *seconds, RtError *e) {
    bool good = record(g, g->begin[g->launches], e) &&
                rt_driver_good(g->cu, g->cu->event_sync(g->begin[g->launches]),
                               e, "run a step");
    for (int i = 0; good && i < g->launches; i++) {
        double took = 0;
        good = is_within(g, i) || read_launch(g, i, &took, e);
        if (seconds[i] < 0 || took < seconds[i])
            seconds[i] = took;
    }
    return good;
}
