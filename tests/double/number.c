// Numbers of the types that libraries compute with.
#include "tests/double/double.h"

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

float number_round(Number n, float value) {
    if (n == NUMBER_F16)
        return (float)(_Float16)value;
    return n == NUMBER_BF16   ? shorten(value, 16)
           : n == NUMBER_TF32 ? shorten(value, 13)
                              : value;
}

float number_get(Number n, const void *from, size_t i) {
    if (n == NUMBER_F16)
        return (float)((const _Float16 *)from)[i];
    if (n == NUMBER_BF16)
        return of_bits((uint32_t)((const uint16_t *)from)[i] << 16);
    return number_round(n, ((const float *)from)[i]);
}

void number_put(Number n, void *to, size_t i, float value) {
    if (n == NUMBER_F16)
        ((_Float16 *)to)[i] = (_Float16)value;
    else if (n == NUMBER_BF16)
        ((uint16_t *)to)[i] = (uint16_t)(bits_of(number_round(n, value)) >> 16 |
                                         (value != value ? 0x40 : 0));
    else
        ((float *)to)[i] = value;
}
