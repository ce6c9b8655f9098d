// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where the elements of a large tensor, one after the other, are in a small
// one, which broadcasts to it.  As a reduction's result broadcasts back to its
// operand, this is also where they are reduced to.
#ifndef IR_EVAL_BROADCAST_H
#define IR_EVAL_BROADCAST_H

#include "ir/ir.h"

// Axes along which the small one is walked alike are one; the last is first.
typedef struct {
    int rank; // at least 1
    int64_t size[MAX_RANK], step[MAX_RANK], index[MAX_RANK];
    int64_t at;
} BroadcastWalk;

BroadcastWalk broadcast_walk(Type large, Type small);

// Goes on to the next elements that lie in a row, at most `most`, and says how
// many: the first is at *at of the small one, and each other step[0], which is
// 0 or 1, after the one before.
static inline int64_t broadcast_next(BroadcastWalk *p, int64_t most,
                                     int64_t *at) {
    int64_t left = p->size[0] - p->index[0], count = left < most ? left : most;
    *at = p->at;
    p->index[0] += count;
    p->at += count * p->step[0];
    for (int k = 0; k + 1 < p->rank && p->index[k] == p->size[k]; k++) {
        p->index[k] = 0;
        p->index[k + 1]++;
        p->at += p->step[k + 1] - p->size[k] * p->step[k];
    }
    return count;
}

#endif
