// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bytes: numbers as memory holds them.
#include "ir/bytes.h"
#include "base/half.h"

#include <math.h>
#include <string.h>

static uint16_t half_bits(double value) {
    unsigned sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(dtype_round(F16, value));
    int exponent;
    if (isnan(size) || isinf(size))
        return (uint16_t)(sign | (isnan(size) ? 0x7e00 : 0x7c00));
    frexp(size, &exponent); // size = 0.1... * 2^exponent
    if (size == 0 || exponent < -13)
        return (uint16_t)(sign | (unsigned)ldexp(size, 24));
    unsigned digits = (unsigned)ldexp(size, 11 - exponent); // 1024 .. 2047
    return (uint16_t)(sign | ((unsigned)(exponent + 14) << 10) |
                      (digits - 1024));
}

double bytes_load(const void *bytes, DType d, int64_t i) {
    switch (d) {
    case F32:
        return ((const float *)bytes)[i];
    case I32:
        return ((const int32_t *)bytes)[i];
    case F16:
        return half_value(((const uint16_t *)bytes)[i]);
    case BF16: {
        uint32_t u = (uint32_t)((const uint16_t *)bytes)[i] << 16;
        float f;
        memcpy(&f, &u, 4);
        return f;
    }
    default:
        return ((const uint8_t *)bytes)[i];
    }
}

void bytes_store(void *bytes, DType d, int64_t i, double value) {
    float f = (float)value;
    uint32_t u;
    switch (d) {
    case F32:
        ((float *)bytes)[i] = f;
        break;
    case I32:
        ((int32_t *)bytes)[i] = (int32_t)value;
        break;
    case F16:
        ((uint16_t *)bytes)[i] = half_bits(value);
        break;
    case BF16: // the values given here are exact
        memcpy(&u, &f, 4);
        ((uint16_t *)bytes)[i] = (uint16_t)(u >> 16);
        break;
    default:
        ((uint8_t *)bytes)[i] = (uint8_t)value;
    }
}
