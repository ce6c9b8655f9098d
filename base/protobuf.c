// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "base/protobuf.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };

static void varint(Text *t, uint64_t value) {
    char byte[10];
    size_t count = 0;
    do {
        byte[count] = (char)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
        count++;
    } while (value > 0);
    text_bytes(t, byte, count);
}

static void tag(Text *t, int field, int type) {
    varint(t, (uint64_t)field << 3 | (unsigned)type);
}

void proto_int(Text *t, int field, int64_t value) {
    tag(t, field, VARINT);
    varint(t, (uint64_t)value);
}

void proto_float(Text *t, int field, float value) {
    tag(t, field, FIXED32);
    text_bytes(t, (const char *)&value, sizeof value);
}

void proto_double(Text *t, int field, double value) {
    tag(t, field, FIXED64);
    text_bytes(t, (const char *)&value, sizeof value);
}

void proto_bytes(Text *t, int field, const void *bytes, size_t count) {
    tag(t, field, LENGTH);
    varint(t, count);
    text_bytes(t, bytes, count);
}

void proto_string(Text *t, int field, const char *value) {
    proto_bytes(t, field, value, strlen(value));
}

void proto_message(Text *t, int field, const Text *message) {
    proto_bytes(t, field, text_string(message), message->length);
}
