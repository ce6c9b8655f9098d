// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Terminal: escapes text from files, such as names, for a terminal.
//
// Control characters, and those that change the reading order, become escapes:
// \x1b for a byte, \u202e for a character of several bytes.  Invalid UTF-8
// bytes become escapes too.
#ifndef BASE_TERMINAL_H
#define BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

// Whether a character of `length` bytes changes the reading order: the
// embeddings, overrides and isolates of Unicode's bidirectional algorithm.
bool terminal_reorders(const char *s, size_t length);

// Whether a character of `length` bytes may be shown as it is.
bool terminal_shows(const char *s, size_t length);

// Writes the first character of s, of which `left` bytes exist, and a zero
// byte.  Returns the number of bytes read.
enum { TERMINAL_ROOM = 8 };
size_t terminal_character(char to[TERMINAL_ROOM], const char *s, size_t left);

// The same inside a JSON string, with JSON's escapes; an invalid byte becomes
// the replacement character.
size_t terminal_json(char to[TERMINAL_ROOM], const char *s, size_t left);

// Writes a text, truncated to the room.
void terminal_text(char *to, size_t room, const char *s);

#endif
