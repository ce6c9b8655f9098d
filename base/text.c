// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text: see text.h.

#include "base/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Text text_new(Arena *a) {
    return (Text){.arena = a};
}

static void make_room(Text *t, size_t more) {
    if (t->capacity - t->length > more)
        return;
    size_t capacity = t->capacity ? t->capacity : 256;
    while (capacity - t->length <= more)
        capacity *= 2;
    char *data = arena_alloc(t->arena, capacity);
    if (t->length)
        memcpy(data, t->data, t->length);
    t->data = data;
    t->capacity = capacity;
}

void text_bytes(Text *t, const char *s, size_t length) {
    make_room(t, length);
    memcpy(t->data + t->length, s, length);
    t->length += length;
    t->data[t->length] = '\0';
}

// Formats before measuring: there is mostly room.
static void add_formatted(Text *t, const char *format, va_list list) {
    va_list again;
    va_copy(again, list);
    size_t room = t->capacity - t->length;
    char *end = room > 0 ? t->data + t->length : NULL;
    int length = vsnprintf(end, room, format, list);
    if (length > 0 && (size_t)length >= room) {
        make_room(t, (size_t)length);
        vsnprintf(t->data + t->length, (size_t)length + 1, format, again);
    }
    va_end(again);
    if (length > 0)
        t->length += (size_t)length;
}

// Emitters spend their time here, mostly with formats that are plain strings.
void text_addv(Text *t, const char *format, va_list list) {
    const char *plain = strcmp(format, "%s") == 0     ? va_arg(list, char *)
                        : strchr(format, '%') == NULL ? format
                                                      : NULL;
    if (plain != NULL)
        text_bytes(t, plain, strlen(plain));
    else
        add_formatted(t, format, list);
}

void text_add(Text *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    text_addv(t, format, list);
    va_end(list);
}

// Digits of the shortest decimal that reads back as the value.  One with up to
// 15 is that of 15 without zeros at the end, unless the value is subnormal.
static int digits_of(double value) {
    char s[64];
    int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG;
    for (; digits < DBL_DECIMAL_DIG; digits++) {
        snprintf(s, sizeof s, "%.*e", digits - 1, value);
        if (strtod(s, NULL) == value)
            break;
    }
    if (digits == DBL_DIG)
        for (const char *end = strchr(s, 'e'); digits > 1 && *--end == '0';)
            digits--;
    return digits;
}

void text_double(Text *t, double value) {
    char s[64];
    if (isnan(value) || isinf(value)) {
        text_add(t, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    int digits = digits_of(value);
    snprintf(s, sizeof s, "%.*e", digits - 1, value);
    int exponent = atoi(strchr(s, 'e') + 1);
    if (exponent >= -4 && exponent < 16) {
        int decimals = digits - 1 - exponent;
        snprintf(s, sizeof s, "%.*f", decimals < 1 ? 1 : decimals, value);
    }
    text_add(t, "%s", s);
}

const char *text_string(const Text *t) {
    return t->data ? t->data : "";
}
