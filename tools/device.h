// A device that is not here, described: what a plan is judged for.
#ifndef TOOLS_DEVICE_H
#define TOOLS_DEVICE_H

#include "ir/join.h"
#include "tools/tools.h"

// A description is a JSON object.  These numbers are read from it; it may hold
// all others that cuDNN wants to know of a device under cuDNN's names.
typedef struct Device {
    const char *name; // deviceName
    int sm;           // deviceVer / 10: the compute capability, as 90
    bool cooperative; // unless supportCoopLaunch is 0: launches with a barrier
    double multiprocessors, memory, cache, bandwidth, f16_flops, f32_flops;
    const char *text; // the whole description
} Device;

// The device that --device or --device-file names, by default an H200.  false
// and an exit status when there is none, which has been said on stderr.
bool device_find(Arena *a, const Arguments *arguments, Device *out,
                 int *status);

// ---- support.c ----

// Whether the device's libraries have what a plan calls; if not, says which
// layer's call they lack.
bool plan_supported(Arena *a, const Arguments *arguments, const Plan *plan,
                    const Device *device);

// ---- judge.c ----

// What a device saves in a step of a plan if it takes all that it can: fusions
// of the library, and joins of launches without them and beside them.
typedef struct {
    const Device *device;
    Rides rides;
    Joins joins;
    bool *ridden, *joined; // which of them it takes together
    Saving saving;
    int joins_alone, joins_beside; // launches fewer
} Judged;

Judged step_judge(Arena *a, const Plan *plan, const Step *step,
                  const Device *device);

#endif
