// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Source: a named text; an offset in it is a line and a column.
#ifndef BASE_SOURCE_H
#define BASE_SOURCE_H

#include "base/arena.h"

#include <stdint.h>

typedef struct {
    const char *path; // as the user wrote it
    const char *name; // the path without its directories
    const char *text; // ends in a zero byte
    size_t length;
    const uint32_t *line_start; // offset of each line
    int num_lines;
} Source;

// Bytes start .. end-1 of a source.  NULL source: no location.
typedef struct {
    const Source *source;
    uint32_t start, end;
} Span;

// Lines and columns count from 1; a column is a character, not a byte.
typedef struct {
    int line, column;
} LineColumn;

// Copies text, which must be shorter than 4 GiB.
Source *source_new(Arena *a, const char *path, const char *text, size_t length);

// Reads a file of at most `limit` bytes.  NULL on failure, with a phrase
// for the reason in *error.
Source *source_read(Arena *a, const char *path, size_t limit,
                    const char **error);

LineColumn source_line_column(const Source *s, uint32_t offset);

// The line alone, cheaper than source_line_column on a long line.
int source_line_of(const Source *s, uint32_t offset);

// The line's text, without its end.
const char *source_line(const Source *s, int line, size_t *length);

// From the start of a to the end of b; both in one source.
Span span_join(Span a, Span b);

// Length of the character at s, of which `left` bytes exist: 1 for a byte that
// starts no UTF-8 sequence.
size_t utf8_length(const char *s, size_t left);

#endif
