// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// UTF-8: characters as bytes (RFC 3629).

#include "runtime/runtime.h"

size_t rt_utf8(const char *s, size_t length, unsigned *code) {
    unsigned char c = (unsigned char)*s;
    size_t bytes = c < 0x80                ? 1
                   : c >= 0xc2 && c < 0xe0 ? 2
                   : c >= 0xe0 && c < 0xf0 ? 3
                   : c >= 0xf0 && c < 0xf5 ? 4
                                           : 0;
    if (bytes == 0 || bytes > length)
        return 0;
    *code = bytes == 1 ? c : c & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | ((unsigned char)s[i] & 0x3f);
    }
    return bytes;
}

size_t rt_utf8_put(char to[4], unsigned code) {
    size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes; i-- > 1; code >>= 6)
        to[i] = (char)(0x80 | (code & 63));
    to[0] = (char)(first[bytes - 1] | code);
    return bytes;
}
