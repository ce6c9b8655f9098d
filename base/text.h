// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text: a growing string in an arena; every printer and emitter writes into
// one.
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/arena.h"

#include <stdarg.h>

typedef struct Text {
    Arena *arena;
    char *data; // always ends in a zero byte once something was added
    size_t length, capacity;
    int indent; // levels of four spaces that text_line puts first
} Text;

Text text_new(Arena *a);

// Append as printf would.
void text_add(Text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_addv(Text *t, const char *format, va_list list);

// Append length bytes.
void text_bytes(Text *t, const char *s, size_t length);

// Append one indented line and its newline.  An empty format gives an empty
// line without spaces.
void text_line(Text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Append the decimal form with the fewest digits that reads back to the same
// double, always with a point or an exponent; inf and nan as those words.
void text_double(Text *t, double value);

// The text as a string; "" when nothing was added.
const char *text_string(const Text *t);

#endif
