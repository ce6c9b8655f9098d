// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Source: see source.h.
#define _POSIX_C_SOURCE 200809L // fdopen, O_CLOEXEC

#include "base/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Whether the second byte fits the first: no overlong form, no surrogate, no
// code point past U+10FFFF.
static bool is_second_byte(unsigned char first, unsigned char second) {
    unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return second >= least && second <= most;
}

size_t utf8_length(const char *s, size_t left) {
    unsigned char c = (unsigned char)*s;
    size_t length = c >= 0xf0 && c < 0xf5 ? 4
                    : c >= 0xe0           ? 3
                    : c >= 0xc2           ? 2
                                          : 1;
    if (length == 1 || c >= 0xf5 || length > left ||
        !is_second_byte(c, (unsigned char)s[1]))
        return 1;
    for (size_t i = 2; i < length; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 1;
    return length;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void find_lines(Arena *a, Source *s) {
    int lines = 1;
    for (size_t i = 0; i < s->length; i++)
        lines += s->text[i] == '\n';
    uint32_t *start = ARENA_ARRAY(a, (size_t)lines, uint32_t);
    int line = 1;
    for (size_t i = 0; i < s->length; i++)
        if (s->text[i] == '\n')
            start[line++] = (uint32_t)i + 1;
    s->line_start = start;
    s->num_lines = lines;
}

Source *source_new(Arena *a, const char *path, const char *text,
                   size_t length) {
    Source *s = ARENA_NEW(a, Source);
    s->path = arena_string(a, path, strlen(path));
    s->name = base_name(s->path);
    s->text = arena_string(a, text, length);
    s->length = length;
    find_lines(a, s);
    return s;
}

// Reads to the end, or one byte past `limit`, into a growing buffer.
static char *read_bytes(Arena *a, FILE *file, size_t limit, size_t *length) {
    size_t room = 0, got;
    char *text = NULL;
    *length = 0;
    do {
        if (*length == room) {
            size_t more = room ? 2 * room : 1 << 16;
            room = more < limit + 1 ? more : limit + 1;
            char *grown = arena_uninit(a, room, 1);
            if (*length > 0)
                memcpy(grown, text, *length);
            text = grown;
        }
        got = fread(text + *length, 1, room - *length, file);
        *length += got;
    } while (got > 0 && *length <= limit);
    return text;
}

static Source *read_all(Arena *a, FILE *file, const char *path, size_t limit,
                        const char **error) {
    Arena *scratch = arena_new();
    size_t length;
    Source *s = NULL;
    const char *text = read_bytes(scratch, file, limit, &length);
    if (ferror(file))
        *error = arena_format(a, "it cannot be read (%s)", strerror(errno));
    else if (length > limit)
        *error = memchr(text, '\0', length) != NULL
                     ? "it is not text"
                     : arena_format(a, "it is longer than %zu bytes", limit);
    else
        s = source_new(a, path, text, length);
    arena_free(scratch);
    return s;
}

static const char *file_type_error(int file, const char *path) {
    struct stat status;
    if (fstat(file, &status) != 0)
        return strerror(errno);
    if (S_ISDIR(status.st_mode))
        return "it is a directory";
    if (!S_ISREG(status.st_mode) && strcmp(path, "/dev/stdin") != 0)
        return "it is a pipe or a device, not a file";
    return NULL;
}

// Opening a pipe without a writer would block, and reading a device may never
// end.
static FILE *open_file(Arena *a, const char *path, const char **error) {
    bool is_stdin = strcmp(path, "/dev/stdin") == 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | (is_stdin ? 0 : O_NONBLOCK));
    if (file < 0) {
        *error = arena_format(a, "it cannot be opened (%s)", strerror(errno));
        return NULL;
    }
    *error = file_type_error(file, path);
    FILE *stream = *error == NULL ? fdopen(file, "rb") : NULL;
    if (stream == NULL)
        close(file);
    return stream;
}

Source *source_read(Arena *a, const char *path, size_t limit,
                    const char **error) {
    FILE *file = open_file(a, path, error);
    if (file == NULL)
        return NULL;
    Source *s = read_all(a, file, path, limit, error);
    fclose(file);
    return s;
}

// The last line that starts at or before offset.
static int line_at(const Source *s, uint32_t offset) {
    int low = 0, high = s->num_lines;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (s->line_start[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

LineColumn source_line_column(const Source *s, uint32_t offset) {
    int line = line_at(s, offset);
    int column = 1;
    size_t end = offset < s->length ? offset : s->length;
    for (size_t i = s->line_start[line]; i < end; column++)
        i += utf8_length(s->text + i, s->length - i);
    return (LineColumn){line + 1, column};
}

int source_line_of(const Source *s, uint32_t offset) {
    return line_at(s, offset) + 1;
}

const char *source_line(const Source *s, int line, size_t *length) {
    size_t start = s->line_start[line - 1];
    size_t end = line < s->num_lines ? s->line_start[line] - 1u : s->length;
    if (end > start && s->text[end - 1] == '\r')
        end--;
    *length = end - start;
    return s->text + start;
}

Span span_join(Span a, Span b) {
    return (Span){a.source, a.start, b.end};
}
