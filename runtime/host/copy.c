// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copy: converts tensors of any type to and from the f32 of oneDNN. Results of
// 16 bits round to nearest, ties to even.

#include "runtime/host/host.h"

#include <string.h>

static float bits_to_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t float_to_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31)
        return bits_to_float(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) {
        float f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    return bits_to_float(sign | (exponent + 112) << 23 | fraction << 13);
}

// Rounds the magnitude to a multiple of 2^bits, ties to even.
static uint32_t round_bits(uint32_t magnitude, int bits) {
    uint32_t odd = magnitude >> bits & 1;
    return (magnitude + ((uint32_t)1 << (bits - 1)) - 1 + odd) >> bits;
}

static uint16_t float_to_half(float f) {
    uint32_t bits = float_to_bits(f), magnitude = bits & 0x7fffffff;
    uint32_t sign = bits >> 16 & 0x8000;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x47800000)
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) { // adding 0.5 rounds at 2^-24, as halves do
        float shifted = bits_to_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (float_to_bits(shifted) - 0x3f000000));
    }
    return (uint16_t)(sign | round_bits(magnitude - 0x38000000, 13));
}

static uint16_t float_to_brain(float f) {
    uint32_t bits = float_to_bits(f);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)round_bits(bits, 16);
}

static float load(RtType type, const char *from, size_t i) {
    float f;
    uint16_t half;
    if (type == RT_F32) {
        memcpy(&f, from + 4 * i, sizeof f);
        return f;
    }
    memcpy(&half, from + 2 * i, sizeof half);
    return type == RT_F16 ? half_to_float(half)
                          : bits_to_float((uint32_t)half << 16);
}

static void store(RtType type, char *to, size_t i, float f) {
    if (type == RT_F32) {
        memcpy(to + 4 * i, &f, sizeof f);
        return;
    }
    uint16_t half = type == RT_F16 ? float_to_half(f) : float_to_brain(f);
    memcpy(to + 2 * i, &half, sizeof half);
}

static void copy_in(void *arg, int me, int members) {
    const RtCopy *c = arg;
    size_t first, last;
    rt_team_share(c->count, me, members, &first, &last);
    for (size_t i = first; i < last; i++)
        c->copy[i] = load(c->type, c->tensor, i);
}

static void copy_out(void *arg, int me, int members) {
    const RtCopy *c = arg;
    size_t first, last;
    rt_team_share(c->count, me, members, &first, &last);
    for (size_t i = first; i < last; i++) {
        float old = c->adds ? load(c->type, c->tensor, i) : 0;
        store(c->type, c->tensor, i, c->adds ? old + c->copy[i] : c->copy[i]);
    }
}

void rt_copy_in(RtCopy *c, int threads) {
    rt_team_run(threads, copy_in, c);
}

void rt_copy_out(RtCopy *c, int threads) {
    rt_team_run(threads, copy_out, c);
}
