// A device that takes every join of a program, over the host device that runs
// its kernels in faithful mode.
#ifndef TESTS_CODEGEN_MERGED_H
#define TESTS_CODEGEN_MERGED_H

#include "runtime/cuda/launch/launch.h"
#include "runtime/device.h"

typedef struct {
    RtDevice device;
    RtDevice *host;
    RtMerging merging;
    bool *taken;
    int merged; // launches that were made so
} MergingDevice;

// For the steps of `plan`, whose merges are those of the plan after it.
MergingDevice merged_device(RtDevice *host, const RtPlan *plan);

// The launches that follow are of this step of the plan.
void merged_begin(MergingDevice *d, int step);

void merged_close(MergingDevice *d);

#endif
