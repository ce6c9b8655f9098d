// Occupancy: the blocks that are resident on a multiprocessor, as the CUDA
// occupancy calculator counts them, and the bytes that they load at once.
#include "passes/plan/group.h"
#include "tools/device.h"

#include <math.h>

// Registers are allocated for a warp, and shared memory for a block, in units.
enum { REGISTER_UNIT = 256, WARP = 32, SHARED_UNIT = 128, RESERVED = 1024 };

static double rounded(double value, double unit) {
    return ceil(value / unit) * unit;
}

int resident_blocks(const KernelCost *k, const Device *d) {
    double warps = BLOCK_THREADS / WARP;
    double registers = warps * rounded(k->registers * WARP, REGISTER_UNIT);
    double shared = rounded(k->shared, SHARED_UNIT) + RESERVED;
    double blocks = fmin(d->blocks, floor(d->threads / BLOCK_THREADS));
    if (registers > 0)
        blocks = fmin(blocks, floor(d->registers / registers));
    return (int)fmin(blocks, floor((d->shared + RESERVED) / shared));
}

int64_t bytes_in_flight(const KernelCost *k, const Device *d) {
    return (int64_t)k->in_flight * BLOCK_THREADS * resident_blocks(k, d);
}
