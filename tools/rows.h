// Rows: one JSON object on each line, as a trainer's --metrics has them.
#ifndef TOOLS_ROWS_H
#define TOOLS_ROWS_H

#include "base/source.h"

#include <stdbool.h>

enum { MOST_METRICS = 1 << 28, MOST_KEYS = 64 };

// A key and its value: a number, or NaN and a text.
typedef struct {
    const char *key, *text; // neither ends in a zero byte
    size_t key_length, length;
    double number;
} Field;

typedef struct {
    Field field[MOST_KEYS];
    int count;
} Row;

// A line of a file, from 1: an empty one, a row, or neither.
typedef enum { ROW_NONE, ROW_GOOD, ROW_BAD } RowKind;
RowKind row_parse(const Source *s, int line, Row *row);

const Field *row_field(const Row *row, const char *key); // NULL: no such
bool field_is(const Field *f, const char *text);         // f may be NULL

// NaN: there is no number under that key.
double row_number(const Row *row, const char *key);

// Whether the row is one of training, evaluation ..., its "split".
bool row_is(const Row *row, const char *split);

#endif
