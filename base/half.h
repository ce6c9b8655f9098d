// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Half: decodes IEEE half precision, as not every compiler has the type.
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <math.h>
#include <stdint.h>

static inline double half_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 0   ? ldexp(fraction, -24)
                  : exponent < 31 ? ldexp(1024 + fraction, exponent - 25)
                  : fraction      ? (double)NAN
                                  : (double)INFINITY;
    return bits >> 15 ? -size : size;
}

#endif
