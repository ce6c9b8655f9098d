// JSON: checks that a text is JSON.
#include "tools/tools.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// Each function NAME_end returns the end of a NAME, or NULL.
enum { DEEPEST = 64 };

static const char *space_end(const char *s) {
    return s + strspn(s, " \t\r\n");
}

const char *json_string_end(const char *s) {
    if (*s++ != '"')
        return NULL;
    for (; *s != '"'; s++) {
        if ((unsigned char)*s < 0x20)
            return NULL;
        if (*s != '\\')
            continue;
        s++;
        if (*s == 'u' && strspn(s + 1, "0123456789abcdefABCDEF") >= 4)
            s += 4;
        else if (*s == 0 || !strchr("\"\\/bfnrt", *s))
            return NULL;
    }
    return s + 1;
}

// The character of an escape that begins behind the backslash.
static uint32_t escaped(const char *s) {
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *control = strchr(from, *s);
    unsigned code = (unsigned char)*s;
    if (*s == 'u')
        sscanf(s + 1, "%4x", &code);
    return control != NULL ? (uint32_t)to[control - from] : code;
}

const char *json_string_read(Arena *a, const char *s) {
    const char *end = json_string_end(s);
    if (end == NULL)
        return NULL;
    Text t = text_new(a);
    for (s++; s < end - 1; s++) {
        if (*s != '\\') {
            text_bytes(&t, s, 1);
            continue;
        }
        uint32_t code = escaped(++s);
        s += *s == 'u' ? 4 : 0;
        if (code >= 0x800)
            text_add(&t, "%c%c%c", 0xe0 | code >> 12, 0x80 | (code >> 6 & 63),
                     0x80 | (code & 63));
        else if (code >= 0x80)
            text_add(&t, "%c%c", 0xc0 | code >> 6, 0x80 | (code & 63));
        else
            text_add(&t, "%c", code);
    }
    return text_string(&t);
}

static const char *digits_end(const char *s) {
    size_t count = strspn(s, "0123456789");
    return count > 0 ? s + count : NULL;
}

static const char *number_end(const char *s) {
    s += *s == '-';
    s = *s == '0' ? s + 1 : digits_end(s);
    if (s != NULL && *s == '.')
        s = digits_end(s + 1);
    if (s != NULL && (*s == 'e' || *s == 'E'))
        s = digits_end(s + 1 + (s[1] == '+' || s[1] == '-'));
    return s;
}

static const char *word_end(const char *s) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(s, words[i], strlen(words[i])) == 0)
            return s + strlen(words[i]);
    return NULL;
}

static const char *value_end(const char *s, int depth);

// The values of an array, or the names and values of an object.
static const char *list_end(const char *s, int depth) {
    char close = *s == '{' ? '}' : ']';
    s = space_end(s + 1);
    if (*s == close)
        return s + 1;
    for (;; s = space_end(s + 1)) {
        if (close == '}') {
            s = json_string_end(s);
            s = s ? space_end(s) : NULL;
            if (s == NULL || *s++ != ':')
                return NULL;
            s = space_end(s);
        }
        s = value_end(s, depth + 1);
        if (s == NULL)
            return NULL;
        s = space_end(s);
        if (*s == close)
            return s + 1;
        if (*s != ',')
            return NULL;
    }
}

static const char *value_end(const char *s, int depth) {
    if (depth == DEEPEST)
        return NULL;
    if (*s == '{' || *s == '[')
        return list_end(s, depth);
    if (*s == '"')
        return json_string_end(s);
    return isalpha((unsigned char)*s) ? word_end(s) : number_end(s);
}

bool json_is_object(const char *text) {
    const char *s = space_end(text);
    const char *end = *s == '{' ? value_end(s, 0) : NULL;
    return end != NULL && *space_end(end) == 0;
}
