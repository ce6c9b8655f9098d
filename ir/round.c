// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Round: numbers as an element type can hold them.
#include "ir/ir.h"

#include <math.h>

// To the nearest number with `bits` of significand and exponents low .. high,
// ties to even, subnormals below, infinity above.
static double round_float(double v, int bits, int low, int high) {
    if (v == 0 || !isfinite(v))
        return v;
    int exponent = ilogb(v) < low ? low : ilogb(v);
    int unit = exponent - (bits - 1);
    double rounded = ldexp(nearbyint(ldexp(v, -unit)), unit);
    return isinf(rounded) || ilogb(rounded) > high ? copysign(INFINITY, v)
                                                   : rounded;
}

// Towards zero, and to the nearest end when out of range; NaN is 0.
static double round_whole(double v, double least, double most) {
    if (isnan(v))
        return 0;
    return v < least ? least : v > most ? most : trunc(v);
}

double dtype_round(DType d, double value) {
    switch (d) {
    case F16:
        return round_float(value, 11, -14, 15);
    case BF16:
        return round_float(value, 8, -126, 127);
    case I32:
        return round_whole(value, INT32_MIN, INT32_MAX);
    case U8:
        return round_whole(value, 0, UINT8_MAX);
    case BOOL:
        return value != 0;
    default: // as the language defines, and much faster than round_float
        return (float)value;
    }
}
