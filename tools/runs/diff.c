// sinter runs A B: compares two runs: differing settings, evaluations side by
// side, and the final states.
#define _POSIX_C_SOURCE 200809L

#include "tools/runs/runs.h"

#include "base/exits.h"
#include "base/source.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20 };

// Keys that differ between any two runs, or are in the last rows of the table.
static bool is_own(const char *key) {
    static const char *const own[] = {
        "started", "written",  "elapsed",       "checkpoint",
        "loss",    "accuracy", "epochs_done",   "steps_done",
        "state",   "resumed",  "resume_options"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(key, own[i]) == 0)
            return true;
    return false;
}

// The key in a line of settings.json; NULL if it has none.
static const char *key_at(Arena *a, const char *line) {
    const char *quote = strchr(line, '"');
    if (strncmp(line, "  \"", 3) != 0)
        return NULL;
    return arena_string(a, quote + 1, strcspn(quote + 1, "\""));
}

static void difference_print(Arena *a, Text *t, const RunRecord *x,
                             const RunRecord *y, const char *key) {
    const char *left = record_value(a, x->text, key);
    const char *right = record_value(a, y->text, key);
    if (strcmp(left ? left : "", right ? right : "") != 0)
        text_add(t, "%-20s  %s | %s\n", key, left ? left : "-",
                 right ? right : "-");
}

static void differences_print(Arena *a, Text *t, const RunRecord *x,
                              const RunRecord *y) {
    const RunRecord *run[2] = {x, y};
    size_t before = t->length;
    for (int i = 0; i < 2; i++)
        for (const char *line = run[i]->text; *line != '\0';
             line += strcspn(line, "\n"), line += *line == '\n') {
            const char *key = key_at(a, line);
            bool seen = i == 1 && key && record_value(a, x->text, key) != NULL;
            if (key != NULL && !seen && !is_own(key))
                difference_print(a, t, x, y, key);
        }
    if (t->length == before)
        text_add(t, "the settings are equal\n");
}

// Compares the model files in both folders.
static void models_print(Arena *a, Text *t, const RunRecord *x,
                         const RunRecord *y) {
    const char *why;
    const Source *left = source_read(
        a, arena_format(a, "%s/model.net", x->path), MAX_BYTES, &why);
    const Source *right = source_read(
        a, arena_format(a, "%s/model.net", y->path), MAX_BYTES, &why);
    if (left && right && strcmp(left->text, right->text) != 0)
        text_add(t,
                 "model.net             differs: diff %s/model.net "
                 "%s/model.net\n",
                 text_escaped(a, x->path), text_escaped(a, y->path));
}

// An epoch, or a part of one, with rows; a missing number is NAN.
typedef struct {
    double epoch, training_loss, loss, accuracy;
} EpochRow;

typedef struct {
    EpochRow *point;
    int count;
} EpochRows;

// The row of an epoch, which training and evaluation fill.
static EpochRow *point_at(Arena *a, EpochRows *p, double epoch) {
    const EpochRow none = {epoch, (double)NAN, (double)NAN, (double)NAN};
    if (p->count == 0 || p->point[p->count - 1].epoch != epoch)
        ARENA_APPEND(a, p->point, p->count, none);
    return &p->point[p->count - 1];
}

static void epoch_add(Arena *a, EpochRows *p, const JsonRow *row) {
    bool trains = row_is(row, "train"), tests = row_is(row, "test");
    if (!trains && !tests)
        return;
    EpochRow *point = point_at(a, p, row_number(row, "epoch"));
    *(trains ? &point->training_loss : &point->loss) = row_number(row, "loss");
    if (tests)
        point->accuracy = row_number(row, "accuracy");
}

static EpochRows points_read(Arena *a, const RunRecord *r) {
    JsonRow row;
    EpochRows p = {0};
    const Source *s = run_rows(a, r);
    for (int i = 1; s != NULL && i <= s->num_lines; i++)
        if (row_parse(s, i, &row) == ROW_GOOD)
            epoch_add(a, &p, &row);
    return p;
}

static void point_print(Arena *a, Text *t, const EpochRow *p) {
    const EpochRow none = {0, (double)NAN, (double)NAN, (double)NAN};
    if (p == NULL)
        p = &none;
    text_add(t, "  %13s %8s %9s", number_shown(a, "4", p->training_loss),
             number_shown(a, "4", p->loss),
             number_shown(a, "2 %", 100 * p->accuracy));
}

static void points_print(Arena *a, Text *t, const RunRecord *x,
                         const RunRecord *y) {
    EpochRows left = points_read(a, x), right = points_read(a, y);
    text_add(t, "\n%7s  %-32s  B\n", "", "A");
    text_add(t, "%7s", "epoch");
    for (int i = 0; i < 2; i++)
        text_add(t, "  %13s %8s %9s", "training loss", "loss", "accuracy");
    text_add(t, "\n");
    for (int i = 0, k = 0; i < left.count || k < right.count;) {
        const EpochRow *l = i < left.count ? &left.point[i] : NULL;
        const EpochRow *r = k < right.count ? &right.point[k] : NULL;
        if (l && r && l->epoch != r->epoch)
            *(l->epoch < r->epoch ? &r : &l) = NULL;
        text_add(t, "%7.4g", l ? l->epoch : r->epoch);
        point_print(a, t, l);
        point_print(a, t, r);
        text_add(t, "\n");
        i += l != NULL;
        k += r != NULL;
    }
}

static void end_print(Arena *a, Text *t, char letter, const RunRecord *r) {
    text_add(t, "%c  %s: %s, %s epochs, accuracy %s, loss %s, elapsed %s\n",
             letter, text_escaped(a, r->path), r->state, epochs_shown(a, r),
             number_shown(a, "2 %", 100 * r->accuracy),
             number_shown(a, "4", r->loss), time_shown(a, r->elapsed));
}

// A run's path is relative to the current folder, or to runs/.
static bool run_named(Arena *a, const Arguments *arguments, const char *name,
                      RunRecord *r) {
    if (run_read(a, name, name, r) ||
        run_read(a, arena_format(a, "runs/%s", name), name, r))
        return true;
    complain(arguments, "%s holds no run: it has no settings.json", name);
    return false;
}

int runs_compare(Arena *a, const Arguments *arguments) {
    Text t = text_new(a);
    RunRecord x, y;
    if (!run_named(a, arguments, arguments->operand[0], &x) ||
        !run_named(a, arguments, arguments->operand[1], &y))
        return EXIT_DATA;
    if (arguments->json) {
        RunRecord both[2] = {x, y};
        runs_json(&t, &(RunList){both, 2});
    } else {
        end_print(a, &t, 'A', &x);
        end_print(a, &t, 'B', &y);
        text_add(&t, "\n%-20s  A | B\n", "setting");
        differences_print(a, &t, &x, &y);
        models_print(a, &t, &x, &y);
        points_print(a, &t, &x, &y);
    }
    lines_print(&t);
    return EXIT_GOOD;
}
