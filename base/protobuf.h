// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Protobuf: the wire format of Protocol Buffers, for writing
// (protobuf.dev/programming-guides/encoding).  A message is a Text of fields;
// a message in another one is a field of its bytes.
#ifndef BASE_PROTOBUF_H
#define BASE_PROTOBUF_H

#include "base/text.h"

#include <stdint.h>

void proto_int(Text *t, int field, int64_t value);
void proto_float(Text *t, int field, float value);
void proto_double(Text *t, int field, double value);
void proto_bytes(Text *t, int field, const void *bytes, size_t count);
void proto_string(Text *t, int field, const char *value);
void proto_message(Text *t, int field, const Text *message);

#endif
