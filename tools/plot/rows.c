// Rows: reads rows of a trainer's --metrics, one JSON object on each line.
// Rows of splits without curves (load, time) are skipped silently, and lines
// that are not rows with a warning: the file of a killed run may end in one.
#include "tools/rows.h"
#include "base/exits.h"
#include "tools/plot/plot.h"
#include "tools/runs/runs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_SERIES = 256 };

// ---- series ----

// The split of a row; NULL for one without curves.
static const char *row_split(const JsonRow *row) {
    const Field *on = row_field(row, "on");
    if (row_is(row, "test"))
        return field_is(on, "validation") ? "validation"
               : field_is(on, "train")    ? "evaluated on train"
                                          : "test";
    return row_is(row, "train") ? "train" : row_is(row, "step") ? "step" : NULL;
}

// The series of a key; NULL if there are too many: such keys are not metrics.
static PlotSeries *series_at(Arena *a, PlotRun *r, const Field *f,
                             const char *split) {
    for (int i = 0; i < r->count; i++) {
        PlotSeries *s = &r->series[i];
        if (s->split == split && strlen(s->metric) == f->key_length &&
            strncmp(s->metric, f->key, f->key_length) == 0)
            return s;
    }
    if (r->count == MAX_SERIES)
        return NULL;
    PlotSeries s = {.metric = arena_string(a, f->key, f->key_length),
                    .split = split};
    ARENA_APPEND(a, r->series, r->count, s);
    return &r->series[r->count - 1];
}

// Whether arithmetic on it, such as the width of a range, stays finite.
static bool is_drawable(double value) {
    return fabs(value) < 1e300;
}

static void point_add(Arena *a, PlotSeries *s, double x, double y) {
    PlotPoint point = {x, is_drawable(y) ? y : NAN};
    if (s != NULL)
        ARENA_APPEND(a, s->point, s->count, point);
}

static bool is_x(const Field *f) {
    static const char *const name[] = {"epoch", "step", "elapsed"};
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++)
        if (strlen(name[i]) == f->key_length &&
            strncmp(f->key, name[i], f->key_length) == 0)
            return true;
    return false;
}

// Adds a row; false if it has no place on the axis.
static bool row_add(Arena *a, PlotRun *r, const JsonRow *row, const char *split,
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
    const char *run = run_path(a, path);
    bool folder = stat(run, &s) == 0 && S_ISDIR(s.st_mode);
    return folder ? arena_format(a, "%s/metrics.jsonl", run) : run;
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

// Lines that are not rows.
typedef struct {
    int count, first;
} Bad;

// Returns the number of rows with a place on the axis, or -1 if there are rows
// and none has one.
static int rows_read(Arena *a, const Source *s, const char *axis, PlotRun *out,
                     Bad *bad) {
    int taken = 0, without = 0;
    JsonRow row;
    for (int i = 1; i <= s->num_lines; i++) {
        RowKind kind = row_parse(s, i, &row);
        const char *split = kind == ROW_GOOD ? row_split(&row) : NULL;
        if (kind == ROW_BAD)
            bad->first = bad->count++ > 0 ? bad->first : i;
        else if (split == NULL)
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
                text_escaped(a, file), bad->count, bad->first);
    return EXIT_GOOD;
}

int curves_read(Arena *a, const Arguments *arguments, const char *path,
                const char *x, PlotRun *out) {
    const char *file = run_file(a, path), *why = "";
    const char *axis = strcmp(x, "time") == 0 ? "elapsed" : x;
    const Source *s = source_read(a, file, MAX_METRICS, &why);
    Bad bad = {0};
    *out = (PlotRun){.name = name_of(a, path)};
    if (s == NULL) {
        file_report(a, arguments, file, why);
        return EXIT_IO;
    }
    int taken = rows_read(a, s, axis, out, &bad);
    return rows_judge(a, arguments, file, axis, taken, &bad);
}

const PlotSeries *run_series(const PlotRun *r, const char *metric,
                             const char *split) {
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->series[i].metric, metric) == 0 &&
            strcmp(r->series[i].split, split) == 0)
            return &r->series[i];
    return NULL;
}

bool run_has(const PlotRun *r, const char *metric) {
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->series[i].metric, metric) == 0)
            for (int k = 0; k < r->series[i].count; k++)
                if (isfinite(r->series[i].point[k].y))
                    return true;
    return false;
}
