// Tidy: a kernel's text without the indices that nothing asks for.
//
// A place is worked out before the value at it is, and some values are the same
// at every place.  Going from the last line to the first, an index that no
// later line names is left out, and with it what only it asked for.  So a line
// declares one index.

#include "codegen/emit.h"

#include <ctype.h>
#include <string.h>

// The name of the index that a line declares, and its length; NULL when the
// line is something else.
static const char *declared_index(const char *line, size_t *length) {
    line += strspn(line, " ");
    if (strncmp(line, "const int ", 10) == 0)
        line += 10;
    else if (strncmp(line, "const size_t ", 13) == 0)
        line += 13;
    else
        return NULL;
    size_t digits = strspn(line + 1, "0123456789");
    *length = digits + 1;
    return strchr("ihw", line[0]) != NULL && digits > 0 ? line : NULL;
}

bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static bool line_names(const char *line, const char *end, const char *name,
                       size_t length) {
    for (const char *s = line; s + length < end; s++)
        if (memcmp(s, name, length) == 0 && !is_word(s[length]) &&
            (s == line || !is_word(s[-1])))
            return true;
    return false;
}

static int count_lines(const char *text) {
    int count = 0;
    for (const char *s = text; (s = strchr(s, '\n')) != NULL; s++)
        count++;
    return count;
}

Text text_tidied(Arena *a, const Text *body) {
    const char *text = text_string(body);
    int count = count_lines(text);
    const char **start = ARENA_ARRAY(a, (size_t)count + 1, const char *);
    bool *dropped = ARENA_ARRAY(a, (size_t)count + 1, bool);
    Text tidied = text_new(a);
    start[0] = text;
    for (int i = 0; i < count; i++)
        start[i + 1] = strchr(start[i], '\n') + 1;
    for (int i = count - 1; i >= 0; i--) {
        size_t length = 0;
        const char *name = declared_index(start[i], &length);
        dropped[i] = name != NULL;
        for (int j = i + 1; j < count && dropped[i]; j++)
            dropped[i] =
                dropped[j] || !line_names(start[j], start[j + 1], name, length);
    }
    for (int i = 0; i < count; i++)
        if (!dropped[i])
            text_bytes(&tidied, start[i], (size_t)(start[i + 1] - start[i]));
    return tidied;
}
