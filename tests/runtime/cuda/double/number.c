// Numbers of the types that libraries compute with.
#include "tests/runtime/cuda/double/double.h"

#include <math.h>
#include <string.h>

size_t number_bytes(Number n) {
    return n == NUMBER_F32 || n == NUMBER_TF32 ? 4 : 2;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// To nearest, ties to even, with so many bits fewer.
static float shorten(float value, int bits) {
    uint32_t u = bits_of(value), half = ((uint32_t)1 << (bits - 1)) - 1;
    if (value - value != 0)
        return value;
    return of_bits((u + half + (u >> bits & 1)) >> bits << bits);
}

// Halves have as many digits as TF32, down to 2^-14; below it digits of 2^-24.
static uint16_t half_of(float value) {
    uint32_t sign = bits_of(value) >> 16 & 0x8000;
    float size = fabsf(value);
    if (size != size)
        return (uint16_t)(sign | 0x7e00);
    if (size < 0x1p-14f)
        return (uint16_t)(sign | (uint32_t)nearbyintf(size * 0x1p24f));
    if (size >= 65520)
        return (uint16_t)(sign | 0x7c00);
    return (uint16_t)(sign |
                      ((bits_of(shorten(size, 13)) >> 13) - (112 << 10)));
}

static float of_half(uint16_t half) {
    uint32_t exponent = half >> 10 & 31, digits = half & 1023;
    float size = exponent == 0 ? (float)digits * 0x1p-24f
                 : exponent == 31
                     ? of_bits(0x7f800000 | digits << 13)
                     : of_bits((exponent + 112) << 23 | digits << 13);
    return half >> 15 ? -size : size;
}

float number_round(Number n, float value) {
    return n == NUMBER_F16    ? of_half(half_of(value))
           : n == NUMBER_BF16 ? shorten(value, 16)
           : n == NUMBER_TF32 ? shorten(value, 13)
                              : value;
}

float number_get(Number n, const void *from, size_t i) {
    if (n == NUMBER_F16)
        return of_half(((const uint16_t *)from)[i]);
    if (n == NUMBER_BF16)
        return of_bits((uint32_t)((const uint16_t *)from)[i] << 16);
    return number_round(n, ((const float *)from)[i]);
}

void number_put(Number n, void *to, size_t i, float value) {
    if (n == NUMBER_F16)
        ((uint16_t *)to)[i] = half_of(value);
    else if (n == NUMBER_BF16)
        ((uint16_t *)to)[i] = (uint16_t)(bits_of(number_round(n, value)) >> 16 |
                                         (value != value ? 0x40 : 0));
    else
        ((float *)to)[i] = value;
}
