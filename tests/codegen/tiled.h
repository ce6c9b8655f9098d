// Tiled: a device that launches a plan's tile kernels, with their meaning on
// the host, and leaves the rest to another.
#ifndef TESTS_CODEGEN_TILED_H
#define TESTS_CODEGEN_TILED_H

#include "runtime/device.h"

typedef struct {
    RtDevice device; // launch, library_call and phase
    RtDevice *host;
    const RtPlan *plan;
    void *kernels;    // library_tiles
    int step, launch; // of the step, the next one
    const RtTile *pending;
    size_t arg[3]; // of its call
    int launched;  // tile kernels, so far
    int skipped;   // kernels that are prologues of these
} TilingDevice;

// For the steps of `plan`, whose tile kernels are those of the plan after it.
TilingDevice tiled_device(RtDevice *host, const RtPlan *plan, void *kernels);
// The launches that follow are of step number `step`.
void tiled_begin(TilingDevice *d, int step);

#endif
