// Rows: one JSON object on each line, as a trainer's --metrics has them.
#ifndef TOOLS_ROWS_H
#define TOOLS_ROWS_H

#include "base/source.h"

#include <stdbool.h>
#include <stdio.h>

enum { MAX_METRICS = 1 << 28, MAX_KEYS = 64, LINE_BYTES = 4096 };

// A key and its value: a number, or NaN and a text.
typedef struct {
    const char *key, *text; // neither ends in a zero byte
    size_t key_length, length;
    double number;
} Field;

typedef struct {
    Field field[MAX_KEYS];
    int count;
} JsonRow;

// A line of a file, from 1: an empty one, a row, or neither.
typedef enum { ROW_NONE, ROW_GOOD, ROW_BAD } RowKind;
RowKind row_parse(const Source *s, int line, JsonRow *row);

const Field *row_field(const JsonRow *row, const char *key); // NULL: no such
bool field_is(const Field *f, const char *text);             // f may be NULL

// NaN: there is no number under that key.
double row_number(const JsonRow *row, const char *key);

// Whether the row's "split" is this one: train, test ...
bool row_is(const JsonRow *row, const char *split);

// Parses a line; the row points into it.
bool row_read(const char *line, JsonRow *row);

// The next complete line of a file that grows; false if there is none yet.
// Longer lines, such as those of confusion matrices, are passed over.
bool line_next(FILE *f, char line[LINE_BYTES]);

typedef struct {
    double *value;
    int count;
} Series;

void series_add(Arena *a, Series *s, double value);
// The numbers under `key` in all rows of a split that have it.
Series rows_series(Arena *a, const char *path, const char *split,
                   const char *key);

#endif
