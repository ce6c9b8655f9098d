// Occupancy: the blocks that are resident on a multiprocessor, as the CUDA
// occupancy calculator counts them, the bytes that they load at once, and the
// time to issue a launch's instructions.
#include "passes/plan/group.h"
#include "tools/device.h"

#include <math.h>

// Registers are allocated for a warp, and shared memory for a block, in units.
enum { REGISTER_UNIT = 256, WARP = 32, SHARED_UNIT = 128, RESERVED = 1024 };

static double rounded(double value, double unit) {
    return ceil(value / unit) * unit;
}

int max_resident_blocks(const KernelCost *k, const Device *d) {
    double warps = BLOCK_THREADS / WARP;
    double registers = warps * rounded(k->registers * WARP, REGISTER_UNIT);
    double shared = rounded(k->shared, SHARED_UNIT) + RESERVED;
    double blocks = fmin(d->blocks, floor(d->threads / BLOCK_THREADS));
    if (registers > 0)
        blocks = fmin(blocks, floor(d->registers / registers));
    return (int)fmin(blocks, floor((d->shared + RESERVED) / shared));
}

int resident_blocks(const KernelCost *k, int blocks, const Device *d) {
    return (int)fmin(max_resident_blocks(k, d),
                     ceil(blocks / d->multiprocessors));
}

double issue_seconds(const KernelCost *k, int blocks, const Device *d) {
    enum { SCHEDULERS = 4, SPECIAL = 8 }; // of a multiprocessor; its cycles
    double slots = 0;
    for (int i = 0; i < NUM_ISSUES; i++)
        slots += k->issue[i];
    slots = fmax(slots, SPECIAL * k->issue[ISSUE_SPECIAL]);
    return slots * ceil(blocks / d->multiprocessors) * (BLOCK_THREADS / WARP) /
           (SCHEDULERS * d->clock);
}

int64_t bytes_in_flight(const KernelCost *k, int blocks, const Device *d) {
    return (int64_t)k->in_flight * BLOCK_THREADS *
           resident_blocks(k, blocks, d);
}
