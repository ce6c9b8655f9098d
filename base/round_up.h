// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rounding up: quotients and multiples.  No operand is negative, and a + b does
// not overflow.
#ifndef BASE_ROUND_UP_H
#define BASE_ROUND_UP_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// The first multiple of unit from a on.
static inline int64_t round_up(int64_t a, int64_t unit) {
    return divide_up(a, unit) * unit;
}

static inline size_t align_up(size_t bytes, size_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

#endif
