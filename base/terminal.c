// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Terminal: see terminal.h.

#include "base/terminal.h"
#include "base/source.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

// The code point of a character of several bytes.
static uint32_t code_point(const char *s, size_t length) {
    uint32_t code = (unsigned char)*s & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)s[i] & 0x3fu);
    return code;
}

bool terminal_reorders(const char *s, size_t length) {
    uint32_t code = length > 1 ? code_point(s, length) : 0;
    return (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

bool terminal_shows(const char *s, size_t length) {
    unsigned char c = (unsigned char)*s;
    if (length == 1)
        return c >= 0x20 && c < 0x7f;
    uint32_t code = code_point(s, length);
    bool mark = code == 0x061c || code == 0x200e || code == 0x200f;
    return code >= 0xa0 && !mark && !terminal_reorders(s, length);
}

size_t terminal_character(char to[TERMINAL_ROOM], const char *s, size_t left) {
    size_t length = utf8_length(s, left);
    if (terminal_shows(s, length)) {
        memcpy(to, s, length);
        to[length] = '\0';
    } else if (length == 1) {
        snprintf(to, TERMINAL_ROOM, "\\x%02x", (unsigned char)*s);
    } else {
        snprintf(to, TERMINAL_ROOM, "\\u%04x", (uint16_t)code_point(s, length));
    }
    return length;
}

size_t terminal_json(char to[TERMINAL_ROOM], const char *s, size_t left) {
    unsigned char c = (unsigned char)*s;
    size_t length = terminal_character(to, s, left);
    if (c == '"' || c == '\\')
        snprintf(to, TERMINAL_ROOM, "\\%c", c);
    else if (length == 1 && !terminal_shows(s, 1))
        snprintf(to, TERMINAL_ROOM, "\\u%04x", c < 0x80 ? c : 0xfffd);
    return length;
}

void terminal_text(char *to, size_t room, const char *s) {
    char shown[TERMINAL_ROOM];
    for (size_t left = strlen(s), step; left > 0; left -= step, s += step) {
        step = terminal_character(shown, s, left);
        size_t length = strlen(shown);
        if (length >= room)
            break;
        memcpy(to, shown, length);
        to += length;
        room -= length;
    }
    *to = '\0';
}
