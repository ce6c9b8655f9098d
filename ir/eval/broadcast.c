// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BroadcastWalk: the axes over which a broadcast tensor is iterated.
#include "ir/eval/broadcast.h"

static void axis_add(BroadcastWalk *p, int64_t size, int64_t step) {
    int last = p->rank - 1;
    if (size == 1)
        return;
    if (last >= 0 && step == p->step[last] * p->size[last]) {
        p->size[last] *= size;
        return;
    }
    p->size[p->rank] = size;
    p->step[p->rank++] = step;
}

BroadcastWalk broadcast_walk(Type large, Type small) {
    BroadcastWalk p = {.size = {1}, .step = {1}};
    int64_t stride = 1;
    for (int k = 1; k <= large.rank; k++) {
        int64_t own = k <= small.rank ? small.dim[small.rank - k] : 1;
        axis_add(&p, large.dim[large.rank - k], own == 1 ? 0 : stride);
        stride *= own;
    }
    p.rank += p.rank == 0;
    return p;
}
