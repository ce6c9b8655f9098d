// Merged: see merged.h.
//
// A cooperative launch may have fewer blocks than there is work for, so that
// each does that of several.
#include "tests/codegen/merged.h"

#include <stdlib.h>

enum { MAX_BLOCKS = 5 };

static MergingDevice *merged_of(RtDevice *d) {
    return (MergingDevice *)(void *)d; // device is its first field
}

static void launch(RtDevice *device, int kernel, int grid, const size_t *arg) {
    MergingDevice *d = merged_of(device);
    int was = kernel;
    if (!rt_merging_add(&d->merging, &kernel, &grid, &arg))
        return;
    bool merges = kernel != was;
    d->merged += merges;
    d->host->launch(d->host, kernel,
                    merges && grid > MAX_BLOCKS ? MAX_BLOCKS : grid, arg);
}

static void contract(RtDevice *device, int call, size_t a, size_t b,
                     size_t out) {
    MergingDevice *d = merged_of(device);
    rt_merging_skip(&d->merging);
    d->host->library_call(d->host, call, a, b, out);
}

static void begin_phase(RtDevice *device, RtPhase phase) {
    RtDevice *host = merged_of(device)->host;
    host->phase(host, phase);
}

MergingDevice merged_device(RtDevice *host, const RtPlan *plan) {
    const RtPlan *other = plan + 1;
    MergingDevice d = {.device = {.name = "merged",
                                 .launch = launch,
                                 .library_call = contract,
                                 .phase = begin_phase},
                      .host = host};
    bool *fused = calloc((size_t)other->num_fusions + 1, sizeof *fused);
    d.taken = calloc((size_t)other->num_merged + 1, sizeof *d.taken);
    if (fused == NULL || d.taken == NULL)
        abort();
    rt_merges_choose(other, NULL, fused, NULL, d.taken);
    free(fused);
    d.merging.plan = other;
    return d;
}

void merged_begin(MergingDevice *d, int step) {
    rt_merging_begin(&d->merging, d->merging.plan, d->taken, step);
}

void merged_close(MergingDevice *d) {
    free(d->taken);
}
