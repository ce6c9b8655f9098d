// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// JSON: see json.h.

#include "base/json.h"
#include "base/terminal.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ---- strings ----

// Most characters are.
static bool is_plain(char c) {
    return c != '"' && c != '\\' && c >= 0x20 && c < 0x7f;
}

size_t json_escape(char *to, size_t room, const char *s, size_t length) {
    const char *last = to + room - TERMINAL_ROOM;
    size_t used = 0;
    while (used < length && to < last)
        if (is_plain(s[used])) {
            *to++ = s[used++];
        } else {
            used += terminal_json(to, s + used, length - used);
            to += strlen(to);
        }
    *to = '\0';
    return used;
}

enum { PIECE = 256 };

void json_put_string(FILE *f, const char *s) {
    char piece[PIECE];
    fputc('"', f);
    for (size_t left = strlen(s), step; left > 0; left -= step, s += step) {
        step = json_escape(piece, sizeof piece, s, left);
        fputs(piece, f);
    }
    fputc('"', f);
}

void json_bytes(Text *t, const char *s, size_t length) {
    char piece[PIECE];
    text_bytes(t, "\"", 1);
    for (size_t step; length > 0; length -= step, s += step) {
        step = json_escape(piece, sizeof piece, s, length);
        text_bytes(t, piece, strlen(piece));
    }
    text_bytes(t, "\"", 1);
}

void json_string(Text *t, const char *s) {
    json_bytes(t, s, strlen(s));
}

// ---- members ----

void json_put_number(FILE *f, const char *name, double value) {
    fprintf(f, isfinite(value) ? ",\"%s\":%.9g" : ",\"%s\":null", name, value);
}

void json_text(Text *t, const char *name, const char *value) {
    text_add(t, ", \"%s\": ", name);
    if (value)
        json_string(t, value);
    else
        text_add(t, "null");
}

void json_count(Text *t, const char *name, int64_t value) {
    text_add(t, ", \"%s\": %" PRId64, name, value);
}

void json_number(Text *t, const char *name, double value) {
    text_add(t, isfinite(value) ? ", \"%s\": %.9g" : ", \"%s\": null", name,
             value);
}

void json_numbers(Text *t, const char *name, const double *value, int count) {
    text_add(t, ", \"%s\": [", name);
    for (int i = 0; i < count; i++)
        text_add(t, isfinite(value[i]) ? "%s%.9g" : "%snull", i ? ", " : "",
                 value[i]);
    text_add(t, "]");
}
