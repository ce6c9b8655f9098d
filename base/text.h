// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text: a growing string in an arena; every printer and emitter appends to one.
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/arena.h"

#include <stdarg.h>

typedef struct Text {
    Arena *arena;
    char *data; // ends in a zero byte after the first append
    size_t length, capacity;
    int indent; // levels of four spaces, for the code that prints lines
} Text;

Text text_new(Arena *a);

// Appends as printf does.
void text_add(Text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_addv(Text *t, const char *format, va_list list);

// Appends length bytes.
void text_bytes(Text *t, const char *s, size_t length);

// Appends the shortest decimal form that reads back to the same double, with a
// point or an exponent; infinities and NaN as inf, -inf and nan.
void text_double(Text *t, double value);

// The text as a string; "" before the first append.
const char *text_string(const Text *t);

#endif
