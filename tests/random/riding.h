// A device whose library takes the statistics of what its convolutions compute,
// over the host device that does all else.
#ifndef TESTS_RANDOM_RIDING_H
#define TESTS_RANDOM_RIDING_H

#include "ir/ir.h"
#include "runtime/device.h"

typedef struct {
    RtDevice device;
    RtDevice *host;
    Arena *a;
    const RtPlan *plan;
    const Graph *graph;     // of the step
    unsigned char *squares; // what the program's kernels ask
    bool *taken;            // of the plan's fusions
    int step, launch;       // what comes next
    bool loses;             // squares have lost digits of some variance
} RidingDevice;

// Takes all statistics of the plan that a library can, and says whether there
// are any.
bool riding_device(RidingDevice *d, Arena *a, RtDevice *host,
                   const RtPlan *plan, unsigned char *squares);

// Runs a step of the plan, whose graph is g.
void riding_run(RidingDevice *d, const Graph *g, int step);

#endif
