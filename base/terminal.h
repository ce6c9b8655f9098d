// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Terminal: text of others, such as names of files, as a terminal may have it.
//
// Characters that steer a terminal, and those that change in which order text
// is read, are written as escapes: \x1b for a byte, and \u202e for a character
// of several bytes.  So is a byte that is no part of UTF-8.
#ifndef BASE_TERMINAL_H
#define BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

// Whether a character of so many bytes changes the order of reading: the
// embeddings, overrides and isolates of Unicode's bidirectional algorithm.
bool terminal_reorders(const char *s, size_t length);

// Whether a character of so many bytes may be shown as it is.
bool terminal_shows(const char *s, size_t length);

// Writes the first character of s, of which `left` bytes are there, and a zero
// byte; returns of how many bytes of s that is.
enum { TERMINAL_ROOM = 8 };
size_t terminal_character(char to[TERMINAL_ROOM], const char *s, size_t left);

// The same of a string in JSON, with the escapes of JSON; for a byte that is no
// part of UTF-8 the replacement character.
size_t terminal_json(char to[TERMINAL_ROOM], const char *s, size_t left);

// Writes a text; where there is no room for all of it, its start.
void terminal_text(char *to, size_t room, const char *s);

#endif
