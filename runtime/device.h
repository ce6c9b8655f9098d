// Device: where the arena lives and kernels run.  host.c and cuda/device.c fill
// one.
//
// Calls on one device happen in order; sync waits for all of them.  A call
// that fails says what it was doing and ends the program with EXIT_DEVICE: a
// trainer cannot go on without its device.  Addresses are bytes from the start
// of the arena, so a step is the same list of numbers on every device.
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include "runtime/rt.h"

struct RtDevice {
    const char *name; // "host", "cuda:0"
    // What the device is, for people: processor and threads, or GPU and memory.
    const char *(*describe)(RtDevice *d);
    // Bytes that reserve could get now, and that it will need for the plan:
    // the arena and the libraries' own buffers.
    size_t (*available)(RtDevice *d);
    size_t (*needed)(RtDevice *d);
    // Takes all memory the plan needs and zeroes it; prepares every kernel and
    // library call.  Called once; nothing is allocated after it.
    void (*reserve)(RtDevice *d);
    // The bytes at `from` are free to change when write returns.
    void (*write)(RtDevice *d, size_t to, const void *from, size_t bytes);
    void (*read)(RtDevice *d, void *to, size_t from, size_t bytes);
    // Runs a step: by its function, which calls what follows, or again what an
    // earlier run of it did.  A step does the same each time.
    void (*run)(RtDevice *d, const RtStep *step);
    // Runs kernel number `kernel` of the plan over `grid` blocks; arg[] are
    // addresses in the arena, one for each pointer parameter.
    void (*launch)(RtDevice *d, int kernel, int grid, const size_t *arg);
    // Runs library call number `call` of the plan.
    void (*contract)(RtDevice *d, int call, size_t a, size_t b, size_t out);
    // What follows belongs to this phase of a step, for the time budget.
    void (*phase)(RtDevice *d, RtPhase phase);
    void (*sync)(RtDevice *d);
    // Seconds spent in each phase since the last call; waits like sync.
    void (*times)(RtDevice *d, double seconds[RT_NUM_PHASES]);
    void (*close)(RtDevice *d);
};

// Number of worker threads is threads, or one for each core if that is 0.
RtDevice *host_open(const RtPlan *plan, int threads);

#endif
