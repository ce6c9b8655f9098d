// Joined: see joined.h.
//
// A cooperative launch may have fewer blocks than there is work for, so that
// each does that of several.
#include "tests/codegen/joined.h"

#include <stdlib.h>

enum { MOST_BLOCKS = 5 };

static JoinedDevice *joined_of(RtDevice *d) {
    return (JoinedDevice *)(void *)d; // device is its first field
}

static void launch(RtDevice *device, int kernel, int grid, const size_t *arg) {
    JoinedDevice *d = joined_of(device);
    int was = kernel;
    if (!rt_merging_add(&d->joining, &kernel, &grid, &arg))
        return;
    bool joins = kernel != was;
    d->joined += joins;
    d->host->launch(d->host, kernel,
                    joins && grid > MOST_BLOCKS ? MOST_BLOCKS : grid, arg);
}

static void contract(RtDevice *device, int call, size_t a, size_t b,
                     size_t out) {
    JoinedDevice *d = joined_of(device);
    rt_merging_skip(&d->joining);
    d->host->library_call(d->host, call, a, b, out);
}

static void begin_phase(RtDevice *device, RtPhase phase) {
    RtDevice *host = joined_of(device)->host;
    host->phase(host, phase);
}

JoinedDevice joined_device(RtDevice *host, const RtPlan *plan) {
    const RtPlan *other = plan + 1;
    JoinedDevice d = {.device = {.name = "joined",
                                 .launch = launch,
                                 .library_call = contract,
                                 .phase = begin_phase},
                      .host = host};
    bool *fused = calloc((size_t)other->num_fusions + 1, sizeof *fused);
    d.taken = calloc((size_t)other->num_merged + 1, sizeof *d.taken);
    if (fused == NULL || d.taken == NULL)
        abort();
    rt_merges_choose(other, fused, NULL, d.taken);
    free(fused);
    d.joining.plan = other;
    return d;
}

void joined_begin(JoinedDevice *d, int step) {
    rt_merging_begin(&d->joining, d->joining.plan, d->taken, step);
}

void joined_close(JoinedDevice *d) {
    free(d->taken);
}
