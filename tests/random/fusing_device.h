// A device whose library takes the statistics of what its convolutions compute,
// over the host device that does all else.
#ifndef TESTS_RANDOM_FUSING_DEVICE_H
#define TESTS_RANDOM_FUSING_DEVICE_H

#include "passes/plan/group.h"
#include "runtime/device.h"

typedef struct {
    RtDevice device;
    RtDevice *host;
    Arena *a;
    const RtPlan *plan;
    const Graph *graph;     // of the step
    const Group *group;     // of the graph, one for each launch
    unsigned char *squares; // what the program's kernels ask
    bool *taken;            // of the plan's fusions
    int step, launch;       // what comes next
} FusingDevice;

// Takes the statistics that a library can of a step of the plan, whose graph is
// g, and says whether there are any.
bool fusing_device(FusingDevice *d, Arena *a, RtDevice *host,
                   const RtPlan *plan, unsigned char *squares, const Graph *g,
                   int step);

// Runs the step.
void fusing_run(FusingDevice *d);

#endif
