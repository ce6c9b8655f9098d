// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random numbers as a pure function: no generator state, so a draw does not
// depend on the thread or the time.  The mixer is the finalizer of splitmix64
// (Steele, Lea, Flood 2014), applied to key and counter in turn.

#include "runtime/data/data.h"

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t rt_random(uint64_t key, uint64_t counter) {
    return mix(mix(key) ^ counter);
}

double rt_uniform(uint64_t key, uint64_t counter) {
    return (double)(rt_random(key, counter) >> 11) * 0x1p-53;
}

int rt_below(uint64_t key, uint64_t counter, int n) {
    return (int)(rt_uniform(key, counter) * n);
}
