// Rows of a trainer's --metrics, one JSON object on each line.  Rows of splits
// without curves (load, time) are skipped silently.  Lines that are no rows are
// skipped with a warning: the file of a killed run may end in one.
#include "base/exits.h"
#include "base/source.h"
#include "tools/plot/plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 1 << 28, MOST_KEYS = 64, MOST_SERIES = 256 };

// A key and its value: a number, or NaN and a text.
typedef struct {
    const char *key, *text;
    size_t key_length, length;
    double number;
} Field;

typedef struct {
    Field field[MOST_KEYS];
    int count;
} Row;

// ---- one line ----

static const char *past_space(const char *s) {
    return s + strspn(s, " \t\r");
}

// Behind a string whose first quote is at s; NULL where it does not end.
static const char *past_string(const char *s) {
    for (s++; *s != 0 && *s != '\n' && *s != '"'; s++)
        if (*s == '\\' && s[1] != 0 && s[1] != '\n')
            s++;
    return *s == '"' ? s + 1 : NULL;
}

// Behind an array or an object, whose text nobody needs; NULL where it does not
// end in its line.
static const char *past_nest(const char *s) {
    int depth = 0;
    for (; s != NULL && *s != 0 && *s != '\n';) {
        if (*s == '"') {
            s = past_string(s);
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

// Behind null, true, NaN and numbers.
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
    const char *end = *s == '"' ? past_string(s) : NULL;
    if (end == NULL)
        return NULL;
    f->key_length = (size_t)(end - s) - 2;
    s = past_space(end);
    if (*s != ':')
        return NULL;
    s = past_space(s + 1);
    f->text = *s == '"' ? s + 1 : NULL;
    end = *s == '"'                ? past_string(s)
          : *s == '[' || *s == '{' ? past_nest(s)
                                   : past_word(s, &f->number);
    f->length = f->text && end ? (size_t)(end - s) - 2 : 0;
    return end;
}

// False where the line is no JSON object, or has more keys than a row has.
static bool row_parse(const char *s, Row *row) {
    row->count = 0;
    s = past_space(s);
    if (*s != '{')
        return false;
    for (char next = ','; next == ',';) {
        if (row->count == MOST_KEYS)
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

static const Field *row_field(const Row *row, const char *key) {
    for (int i = 0; i < row->count; i++)
        if (strlen(key) == row->field[i].key_length &&
            strncmp(row->field[i].key, key, strlen(key)) == 0)
            return &row->field[i];
    return NULL;
}

static bool field_is(const Field *f, const char *text) {
    return f != NULL && f->text != NULL && strlen(text) == f->length &&
           strncmp(f->text, text, f->length) == 0;
}

// ---- series ----

// The split of a row; NULL for one without curves.
static const char *row_split(const Row *row) {
    const Field *split = row_field(row, "split"), *on = row_field(row, "on");
    if (field_is(split, "test"))
        return field_is(on, "validation") ? "validation"
               : field_is(on, "train")    ? "evaluated on train"
                                          : "test";
    return field_is(split, "train")  ? "train"
           : field_is(split, "step") ? "step"
                                     : NULL;
}

// NULL where there are too many: such keys are nobody's metrics.
static Series *series_at(Arena *a, Run *r, const Field *f, const char *split) {
    for (int i = 0; i < r->count; i++) {
        Series *s = &r->series[i];
        if (s->split == split && strlen(s->metric) == f->key_length &&
            strncmp(s->metric, f->key, f->key_length) == 0)
            return s;
    }
    if (r->count == MOST_SERIES)
        return NULL;
    if (r->count == r->room) {
        Series *more = ARENA_ARRAY(a, 2 * (size_t)r->room + 8, Series);
        if (r->count > 0)
            memcpy(more, r->series, (size_t)r->count * sizeof *more);
        r->series = more;
        r->room = 2 * r->room + 8;
    }
    Series *s = &r->series[r->count++];
    *s = (Series){.metric = arena_string(a, f->key, f->key_length),
                  .split = split};
    return s;
}

// Whether arithmetic on it, as the width of a range, stays finite.
static bool is_drawable(double value) {
    return fabs(value) < 1e300;
}

static void point_add(Arena *a, Series *s, double x, double y) {
    if (s == NULL)
        return;
    if (s->count == s->room) {
        Point *more = ARENA_ARRAY(a, 2 * (size_t)s->room + 16, Point);
        if (s->count > 0)
            memcpy(more, s->point, (size_t)s->count * sizeof *more);
        s->point = more;
        s->room = 2 * s->room + 16;
    }
    s->point[s->count++] = (Point){x, is_drawable(y) ? y : NAN};
}

static bool is_x(const Field *f) {
    static const char *const name[] = {"epoch", "step", "elapsed"};
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        if (strlen(name[i]) == f->key_length &&
            strncmp(f->key, name[i], f->key_length) == 0)
            return true;
    return false;
}

// Returns whether the row has a place on the axis.
static bool row_add(Arena *a, Run *r, const Row *row, const char *split,
                    const char *axis) {
    const Field *x = row_field(row, axis);
    if (x == NULL || !is_drawable(x->number))
        return false;
    for (int i = 0; i < row->count; i++) {
        const Field *f = &row->field[i];
        if (f->text == NULL && !is_x(f))
            point_add(a, series_at(a, r, f, split), x->number, f->number);
    }
    return true;
}

// ---- the file ----

static bool ends_in(const char *s, const char *end) {
    size_t length = strlen(s), of_end = strlen(end);
    return length > of_end && strcmp(s + length - of_end, end) == 0;
}

static const char *name_of(Arena *a, const char *path) {
    size_t length = strlen(path);
    if (ends_in(path, "/metrics.jsonl"))
        length -= strlen("/metrics.jsonl");
    else if (ends_in(path, ".jsonl"))
        length -= strlen(".jsonl");
    while (length > 1 && path[length - 1] == '/')
        length--;
    return arena_string(a, path, length);
}

const char *run_file(Arena *a, const char *path) {
    struct stat s;
    bool folder = stat(path, &s) == 0 && S_ISDIR(s.st_mode);
    return folder ? arena_format(a, "%s/metrics.jsonl", path) : path;
}

bool run_is_out(Arena *a, const Arguments *arguments, const char *const *path,
                int count, const char *out) {
    struct stat of_out, s;
    if (stat(out, &of_out) != 0)
        return false;
    for (int i = 0; i < count; i++)
        if (stat(run_file(a, path[i]), &s) == 0 && s.st_dev == of_out.st_dev &&
            s.st_ino == of_out.st_ino) {
            complain(arguments,
                     "%s would be overwritten; choose another file with --out",
                     out);
            return true;
        }
    return false;
}

// Which lines are no rows.
typedef struct {
    int count, first;
} Bad;

// Returns how many rows have a place on the axis, or -1 where rows have none.
static int rows_take(Arena *a, const Source *s, const char *axis, Run *out,
                     Bad *bad) {
    int taken = 0, without = 0;
    Row row;
    for (int i = 1; i <= s->num_lines; i++) {
        size_t length;
        const char *line = source_line(s, i, &length), *split;
        if (strspn(line, " \t\r") >= length)
            continue;
        if (memchr(line, 0, length) != NULL || !row_parse(line, &row))
            bad->first = bad->count++ > 0 ? bad->first : i;
        else if ((split = row_split(&row)) == NULL)
            continue;
        else if (row_add(a, out, &row, split, axis))
            taken++;
        else
            without++;
    }
    return taken == 0 && without > 0 ? -1 : taken;
}

static int rows_judge(Arena *a, const Arguments *arguments, const char *file,
                      const char *axis, int taken, const Bad *bad) {
    if (taken < 0)
        complain(arguments,
                 "%s: no row has a number \"%s\" for the x axis; "
                 "choose another with --x",
                 file, axis);
    else if (taken == 0 && bad->count > 0)
        complain(arguments, "%s:%d is no row of --metrics, and none follows",
                 file, bad->first);
    else if (taken == 0)
        complain(arguments, "%s has no rows of training or evaluation", file);
    if (taken <= 0)
        return EXIT_DATA;
    if (bad->count > 0)
        fprintf(stderr,
                "sinter: warning: lines of %s that are not drawn: %d; the "
                "first is line %d, which is no row\n",
                text_shown(a, file), bad->count, bad->first);
    return EXIT_GOOD;
}

int curves_read(Arena *a, const Arguments *arguments, const char *path,
                const char *x, Run *out) {
    const char *file = run_file(a, path), *why = "";
    const char *axis = strcmp(x, "time") == 0 ? "elapsed" : x;
    const Source *s = source_read(a, file, MOST_BYTES, &why);
    Bad bad = {0};
    *out = (Run){.name = name_of(a, path)};
    if (s == NULL) {
        file_report(a, arguments, file, why);
        return EXIT_IO;
    }
    int taken = rows_take(a, s, axis, out, &bad);
    return rows_judge(a, arguments, file, axis, taken, &bad);
}

const Series *run_series(const Run *r, const char *metric, const char *split) {
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->series[i].metric, metric) == 0 &&
            strcmp(r->series[i].split, split) == 0)
            return &r->series[i];
    return NULL;
}

bool run_has(const Run *r, const char *metric) {
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->series[i].metric, metric) == 0)
            for (int k = 0; k < r->series[i].count; k++)
                if (isfinite(r->series[i].point[k].y))
                    return true;
    return false;
}
