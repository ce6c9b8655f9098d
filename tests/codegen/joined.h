// A device that takes every join of a program, over the host device that runs
// its kernels in faithful mode.
#ifndef TESTS_CODEGEN_JOINED_H
#define TESTS_CODEGEN_JOINED_H

#include "runtime/cuda/launch/launch.h"
#include "runtime/device.h"

typedef struct {
    RtDevice device;
    RtDevice *host;
    RtMerging joining;
    bool *taken;
    int joined; // launches that were made so
} JoinedDevice;

// For the steps of `plan`, whose joins are those of the plan after it.
JoinedDevice joined_device(RtDevice *host, const RtPlan *plan);

// What comes next is this step of the plan.
void joined_begin(JoinedDevice *d, int step);

void joined_close(JoinedDevice *d);

#endif
