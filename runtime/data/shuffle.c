// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shuffle: the order of an epoch's samples.
//
// A Feistel network over the smallest power of two that holds the samples is a
// permutation of it for any round function.  A position that it maps past the
// last sample is mapped again until it is a sample (cycle walking), at most
// twice on average.  So any position of any epoch is computed directly: nothing
// is stored or saved, and a resumed run continues.

#include "runtime/data/data.h"

enum { ROUNDS = 6 };

// Each round replaces one half by itself xor a function of the other.  The
// halves alternate, so they may differ in width by a bit.
static uint64_t permute(uint64_t key, uint64_t x, int bits) {
    int low = bits / 2, high = bits - low;
    uint64_t low_mask = ((uint64_t)1 << low) - 1;
    uint64_t high_mask = ((uint64_t)1 << high) - 1;
    uint64_t a = x >> low, b = x & low_mask; // a: high bits, b: low bits
    for (int i = 0; i < ROUNDS; i += 2) {
        a ^= rt_random(key + (uint64_t)i, b) & high_mask;
        b ^= rt_random(key + (uint64_t)i + 1, a) & low_mask;
    }
    return a << low | b;
}

int64_t rt_shuffled(uint64_t seed, int64_t epoch, int64_t position,
                    int64_t count) {
    int bits = 0;
    while (bits < 62 && (int64_t)1 << bits < count)
        bits++;
    uint64_t key = rt_random(rt_random(seed, 0x6f72646572u), (uint64_t)epoch);
    uint64_t x = (uint64_t)position;
    do
        x = permute(key, x, bits);
    while (x >= (uint64_t)count);
    return (int64_t)x;
}
