// Gauge: events.

#include "runtime/cuda/gauge.h"

#include <math.h>
#include <stdlib.h>

bool rt_gauge_open(RtGauge *g, const RtDriver *cu, CUstream stream,
                   int launches, RtError *e) {
    size_t room = (size_t)launches + 1;
    *g = (RtGauge){.cu = cu, .stream = stream, .launches = launches};
    g->call = calloc(room, sizeof *g->call);
    g->event = calloc(room, sizeof *g->event);
    g->failed = calloc(room, sizeof *g->failed);
    bool good = (g->call != NULL && g->event != NULL && g->failed != NULL) ||
                rt_fail(e, EXIT_MEMORY, "out of memory");
    for (size_t i = 0; good && i < room; i++)
        good = rt_driver_good(cu, cu->event_new(&g->event[i], 0), e,
                              "make an event");
    if (!good)
        rt_gauge_close(g);
    return good;
}

void rt_gauge_close(RtGauge *g) {
    for (int i = 0; g->event != NULL && i <= g->launches; i++)
        if (g->event[i] != NULL)
            g->cu->event_free(g->event[i]);
    free(g->failed);
    free(g->event);
    free(g->call);
    *g = (RtGauge){0};
}

static bool record(const RtGauge *g, int i, RtError *e) {
    return rt_driver_good(g->cu, g->cu->event_record(g->event[i], g->stream), e,
                          "record an event");
}

bool rt_gauge_note(RtGauge *g, int launch, int call, RtError *e) {
    g->call[launch] = call;
    return record(g, launch, e);
}

bool rt_gauge_read(RtGauge *g, double *seconds, RtError *e) {
    bool good = record(g, g->launches, e) &&
                rt_driver_good(g->cu, g->cu->event_sync(g->event[g->launches]),
                               e, "run a step");
    for (int i = 0; good && i < g->launches; i++) {
        float milliseconds = 0;
        good = rt_driver_good(
            g->cu,
            g->cu->event_time(&milliseconds, g->event[i], g->event[i + 1]), e,
            "read how long a launch took");
        double took = g->failed[i] ? HUGE_VAL : (double)milliseconds / 1000;
        if (seconds[i] < 0 || took < seconds[i])
            seconds[i] = took;
    }
    return good;
}
