// The tiles of attention's kernels: see codegen/attention.c.
#ifndef PASSES_PLAN_ATTENTION_TILES_H
#define PASSES_PLAN_ATTENTION_TILES_H

#include "ir/attention.h"

// Unused floats at the end of each row of a tile in shared memory, so that
// threads which read different rows use different banks.
enum { ATTENTION_PAD = 4 };

// Positions of tiles, BM and BN in kernels (FlashAttention: kBlockM, kBlockN).
// Forward, a block has a tile of BM queries and iterates over tiles of BN keys.
// Backward, it has BM queries or BM keys and iterates over BN of the others.
// BM is a multiple of BN.
typedef struct {
    int bm, bn;
    bool one_pass; // backward, a block has all tiles of keys of a head: one
                   // pass over the weights for all three gradients
} AttentionTiles;

// Returns the tiles on a GPU: of attention or, if `backward`, of its gradient.
AttentionTiles attention_tiles(const Attention *s, bool backward);

// Returns the number of blocks that have work on a GPU.
int64_t attention_blocks(const Attention *s, bool backward);

#endif
