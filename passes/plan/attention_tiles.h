// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tiles of attention's kernels: see codegen/attention.c.
#ifndef PASSES_PLAN_ATTENTION_TILES_H
#define PASSES_PLAN_ATTENTION_TILES_H

#include "ir/attention.h"

// Floats that a row of a tile in shared memory is longer than its elements, so
// that threads which read different rows use different banks.
enum { ATTENTION_PAD = 4 };

typedef struct {
    int own, other; // positions of a block's tile, and of those it iterates over
    bool one_pass; // backward: a block has all tiles of the heads that share
                   // keys, and computes their weights once
} AttentionTiles;

// On a GPU, of attention or, if `backward`, of its gradient.
AttentionTiles attention_tiles(const Attention *s, bool backward);

// Blocks that have work on a GPU.
int64_t attention_blocks(const Attention *s, bool backward);

#endif
