// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// JSON: how strings and numbers are written in it, to a buffer, a file or a
// text.  Characters that control a terminal are escaped too.
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct Text Text; // text.h

// Writes the characters of a string with their escapes, and a zero byte, while
// more than TERMINAL_ROOM of the `room` bytes are free.  Returns the number of
// bytes of s that it wrote.
size_t json_escape(char *to, size_t room, const char *s, size_t length);

// Writes a string in quotes.
void json_put_string(FILE *f, const char *s);
void json_string(Text *t, const char *s);
void json_bytes(Text *t, const char *s, size_t length);

// Write a member of an object behind another, without spaces to a file and with
// them to a text.  NULL and numbers that are not finite are null.
void json_put_number(FILE *f, const char *name, double value);
void json_text(Text *t, const char *name, const char *value);
void json_count(Text *t, const char *name, int64_t value);
void json_number(Text *t, const char *name, double value);
void json_numbers(Text *t, const char *name, const double *value, int count);

#endif
