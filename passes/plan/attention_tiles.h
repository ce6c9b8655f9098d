// The tiles of attention's kernels: see codegen/attention.c.
#ifndef PASSES_PLAN_ATTENTION_TILES_H
#define PASSES_PLAN_ATTENTION_TILES_H

#include "ir/attention.h"

// Unused floats at the end of each row of a tile in shared memory, so that
// threads which read different rows use different banks.
enum { ATTENTION_PAD = 4 };

// Positions of tiles: forward a block has a tile of `own` queries and iterates
// over tiles of `other` keys.  Backward it has one of queries or one of keys,
// or, in one pass, all tiles of keys of a head, and computes weights once.
// `own` is a multiple of `other`.
typedef struct {
    int own, other;
    bool one_pass;
} AttentionTiles;

// Returns the tiles on a GPU: of attention or, if `backward`, of its gradient.
AttentionTiles attention_tiles(const Attention *s, bool backward);

// Returns the number of blocks that have work on a GPU.
int64_t attention_blocks(const Attention *s, bool backward);

#endif
