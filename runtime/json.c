// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// JSON: reads the headers of safetensors files and tokenizers.

#include "runtime/runtime.h"

#include <string.h>

static bool fail(RtJson *j) {
    j->failed = true;
    return false;
}

static void skip_space(RtJson *j) {
    while (j->at < j->end && strchr(" \t\r\n", *j->at) != NULL && *j->at != 0)
        j->at++;
}

bool rt_json_accept(RtJson *j, char c) {
    skip_space(j);
    if (j->failed || j->at == j->end || *j->at != c)
        return false;
    j->at++;
    return true;
}

bool rt_json_take(RtJson *j, char c) {
    return rt_json_accept(j, c) || fail(j);
}

bool rt_json_end(RtJson *j) {
    skip_space(j);
    return !j->failed && j->at == j->end;
}

bool rt_json_count(RtJson *j, uint64_t *value) {
    skip_space(j);
    const char *start = j->at;
    *value = 0;
    while (!j->failed && j->at < j->end && *j->at >= '0' && *j->at <= '9') {
        if (*value > (uint64_t)INT64_MAX / 10 - 1)
            return fail(j);
        *value = *value * 10 + (uint64_t)(*j->at++ - '0');
    }
    bool padded = j->at - start > 1 && *start == '0';
    return (j->at > start && !padded) || fail(j);
}

static bool parse_hex(RtJson *j, unsigned *code) {
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    *code = 0;
    for (int i = 0; i < 4; i++) {
        const char *d =
            j->at < j->end && *j->at != 0 ? strchr(digits, *j->at) : NULL;
        if (d == NULL)
            return fail(j);
        *code = *code << 4 | ((unsigned)(d - digits) & 15);
        j->at++;
    }
    return true;
}

// The second half of a character above 0xffff.
static bool parse_low_half(RtJson *j, unsigned *code) {
    unsigned low;
    if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
        return false;
    j->at += 2;
    if (!parse_hex(j, &low) || low < 0xdc00 || low > 0xdfff)
        return false;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

// One escape as UTF-8.  Halves of characters and zero bytes are refused.
static size_t parse_escape(RtJson *j, char to[4]) {
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    char c = j->at < j->end ? *j->at++ : 0;
    const char *name = c != 0 ? strchr(names, c) : NULL;
    unsigned code;
    if (name != NULL) {
        to[0] = bytes[name - names];
        return 1;
    }
    if (c != 'u' || !parse_hex(j, &code) || code == 0 ||
        (code >= 0xdc00 && code < 0xe000))
        return 0;
    if (code >= 0xd800 && code < 0xdc00 && !parse_low_half(j, &code))
        return 0;
    return rt_utf8_put(to, code);
}

bool rt_json_string(RtJson *j, char *to, size_t room) {
    if (!rt_json_take(j, '"'))
        return false;
    size_t length = 0;
    while (j->at < j->end && *j->at != '"') {
        char bytes[4] = {*j->at++};
        size_t some = 1;
        if ((unsigned char)bytes[0] < 0x20)
            return fail(j);
        if (bytes[0] == '\\')
            some = parse_escape(j, bytes);
        if (some == 0 || length + some >= room)
            return fail(j);
        memcpy(to + length, bytes, some);
        length += some;
    }
    to[length] = '\0';
    return rt_json_take(j, '"');
}

bool rt_json_word(RtJson *j, const char *word) {
    size_t length = strlen(word);
    skip_space(j);
    if (j->failed || (size_t)(j->end - j->at) < length ||
        memcmp(j->at, word, length) != 0)
        return false;
    j->at += length;
    return true;
}

// Skips a string, whatever its escapes stand for.
static bool skip_string(RtJson *j) {
    for (j->at++; j->at < j->end && *j->at != '"'; j->at++)
        j->at += *j->at == '\\' && j->end - j->at > 1;
    return rt_json_take(j, '"');
}

bool rt_json_skip(RtJson *j) {
    int depth = 0;
    do {
        skip_space(j);
        char c = j->at < j->end ? *j->at : '\0';
        if (j->failed || c == '\0')
            return fail(j);
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (depth < 0)
            return fail(j);
        if (c == '"') {
            if (!skip_string(j))
                return false;
        } else if (strchr("{}[],:", c) != NULL) {
            j->at++;
        } else {
            size_t left = (size_t)(j->end - j->at), length = 0;
            while (length < left && j->at[length] != '\0' &&
                   strchr(",:]}[{\" \t\r\n", j->at[length]) == NULL)
                length++;
            j->at += length;
        }
    } while (depth > 0);
    return true;
}
