// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// __half on the host.
#pragma once
#ifdef __FLT16_MAX__
typedef _Float16 __half;
#else
#include <cmath>
#include <cstdint>
#include <cstring>

// The same bits for compilers without the type, computed in f32.
struct __half {
    uint16_t bits = 0;
    __half() = default;
    // Rounds to nearest, ties to even.  Below 2^-14 a unit is 2^-24.
    __half(float x) {
        const float size = std::fabs(x);
        uint32_t u;
        memcpy(&u, &size, sizeof u);
        bits =
            size != size          ? 0x7e00
            : size >= 0x1.ffep15f ? 0x7c00
            : size < 0x1p-14f
                ? (uint16_t)std::nearbyint(size * 0x1p24f)
                : (uint16_t)((u + 0xfff + (u >> 13 & 1)) >> 13) - (112 << 10);
        bits |= std::signbit(x) ? 0x8000 : 0;
    }
    operator float() const {
        const uint32_t u = (uint32_t)(bits & 0x7fff) << 13;
        float x;
        memcpy(&x, &u, sizeof x);
        x = u >= 31u << 23 ? (u > 31u << 23 ? NAN : INFINITY) : x * 0x1p112f;
        return bits & 0x8000 ? -x : x;
    }
};
#endif
