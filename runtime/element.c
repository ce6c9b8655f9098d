// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element: reads one element of a tensor of any type.
#include "base/half.h"
#include "runtime/runtime.h"

#include <float.h>
#include <string.h>

size_t rt_type_bytes(RtType t) {
    static const size_t bytes[] = {
        [RT_F32] = 4, [RT_F16] = 2, [RT_BF16] = 2,
        [RT_I32] = 4, [RT_U8] = 1,  [RT_BOOL] = 1,
    };
    return bytes[t];
}

double rt_number(const void *from, RtType type, int64_t i) {
    const char *at = (const char *)from + (size_t)i * rt_type_bytes(type);
    float f;
    int32_t whole;
    uint16_t half;
    switch (type) {
    case RT_F32:
        memcpy(&f, at, sizeof f);
        return f;
    case RT_I32:
        memcpy(&whole, at, sizeof whole);
        return whole;
    case RT_F16:
        memcpy(&half, at, sizeof half);
        return half_value(half);
    case RT_BF16:
        memcpy(&half, at, sizeof half);
        whole = (int32_t)((uint32_t)half << 16);
        memcpy(&f, &whole, sizeof f);
        return f;
    default:
        return *(const uint8_t *)at;
    }
}

double rt_type_max(RtType type) {
    return type == RT_F16 ? 65504 : type == RT_BF16 ? 0x1.fep127 : FLT_MAX;
}
