// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// __nv_bfloat16 on the host: stored in 16 bits, computed in f32.
#pragma once
#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
    uint16_t bits = 0;
    __nv_bfloat16() = default;
    // Rounds to nearest, ties to even.
    __nv_bfloat16(float x) {
        uint32_t u;
        memcpy(&u, &x, sizeof u);
        bits = x != x ? 0x7fff : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
    operator float() const {
        const uint32_t u = (uint32_t)bits << 16;
        float x;
        memcpy(&x, &u, sizeof x);
        return x;
    }
};
