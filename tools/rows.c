// Rows: see rows.h.
#include "tools/rows.h"
#include "tools/tools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *past_space(const char *s) {
    return s + strspn(s, " \t\r");
}

// Skips an array or an object; NULL if it does not end in its line.
static const char *past_nest(const char *s) {
    int depth = 0;
    for (; s != NULL && *s != 0 && *s != '\n';) {
        if (*s == '"') {
            s = json_string_end(s);
            continue;
        }
        depth += *s == '[' || *s == '{';
        depth -= *s == ']' || *s == '}';
        s++;
        if (depth == 0)
            return s;
    }
    return NULL;
}

// Skips null, true, NaN or a number.
static const char *past_word(const char *s, double *number) {
    size_t length = strspn(s, "+-.0123456789abcdefghijklmnopqrstuvwxyzIN");
    char *end;
    *number = strtod(s, &end);
    if (end != s + length || end == s)
        *number = NAN;
    bool known = end == s + length || strncmp(s, "null", length) == 0 ||
                 strncmp(s, "true", length) == 0 ||
                 strncmp(s, "false", length) == 0;
    return length > 0 && known ? s + length : NULL;
}

static const char *field_parse(const char *s, Field *f) {
    *f = (Field){.key = s + 1, .number = NAN};
    const char *end = *s == '"' ? json_string_end(s) : NULL;
    if (end == NULL)
        return NULL;
    f->key_length = (size_t)(end - s) - 2;
    s = past_space(end);
    if (*s != ':')
        return NULL;
    s = past_space(s + 1);
    f->text = *s == '"' ? s + 1 : NULL;
    end = *s == '"'                ? json_string_end(s)
          : *s == '[' || *s == '{' ? past_nest(s)
                                   : past_word(s, &f->number);
    f->length = f->text && end ? (size_t)(end - s) - 2 : 0;
    return end;
}

// False if the line is not a JSON object or has more than MAX_KEYS keys.
bool row_read(const char *s, JsonRow *row) {
    row->count = 0;
    s = past_space(s);
    if (*s != '{')
        return false;
    for (char next = ','; next == ',';) {
        if (row->count == MAX_KEYS)
            return false;
        s = field_parse(past_space(s + 1), &row->field[row->count++]);
        if (s == NULL)
            return false;
        s = past_space(s);
        next = *s;
    }
    if (*s != '}')
        return false;
    s = past_space(s + 1);
    return *s == 0 || *s == '\n';
}

RowKind row_parse(const Source *s, int line, JsonRow *row) {
    size_t length;
    const char *text = source_line(s, line, &length);
    if (strspn(text, " \t\r") >= length)
        return ROW_NONE;
    return memchr(text, 0, length) == NULL && row_read(text, row) ? ROW_GOOD
                                                                  : ROW_BAD;
}

const Field *row_field(const JsonRow *row, const char *key) {
    for (int i = 0; i < row->count; i++)
        if (strlen(key) == row->field[i].key_length &&
            strncmp(row->field[i].key, key, strlen(key)) == 0)
            return &row->field[i];
    return NULL;
}

bool field_is(const Field *f, const char *text) {
    return f != NULL && f->text != NULL && strlen(text) == f->length &&
           strncmp(f->text, text, f->length) == 0;
}

double row_number(const JsonRow *row, const char *key) {
    const Field *f = row_field(row, key);
    return f != NULL ? f->number : (double)NAN;
}

bool row_is(const JsonRow *row, const char *split) {
    return field_is(row_field(row, "split"), split);
}

bool line_next(FILE *f, char line[LINE_BYTES]) {
    long at = ftell(f);
    bool begins = true; // a line, not the rest of a longer one
    while (fgets(line, LINE_BYTES, f) != NULL) {
        bool ends = strchr(line, '\n') != NULL;
        if (begins && ends)
            return true;
        begins = ends;
    }
    fseek(f, at, SEEK_SET);
    return false;
}

void series_add(Arena *a, Series *s, double value) {
    ARENA_APPEND(a, s->value, s->count, value);
}

Series rows_series(Arena *a, const char *path, const char *split,
                   const char *key) {
    char line[LINE_BYTES];
    JsonRow row;
    Series series = {0};
    FILE *f = fopen(path, "r");
    while (f != NULL && line_next(f, line))
        if (row_read(line, &row) && row_is(&row, split) &&
            row_field(&row, key) != NULL)
            series_add(a, &series, row_number(&row, key));
    if (f != NULL)
        fclose(f);
    return series;
}
