// Confusion: the last confusion matrix of a run, or of each of its outputs, as
// an HTML table, each count over a colour by its share of its label.
#include "tools/plot/plot.h"
#include "tools/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CLASSES = 100 };

typedef struct {
    double count[MAX_CLASSES][MAX_CLASSES];
    int classes;
    double epoch;
    const char *output; // its name; "": it has none
} Matrix;

// Reads [[1,2],[3,4]], whose lists have equal lengths; false if it is another
// text.
static bool matrix_read(Matrix *m, const char *s) {
    int row = 0, column = 0, width = -1;
    if (*s++ != '[')
        return false;
    for (; *s == '[' && row < MAX_CLASSES; row++) {
        for (column = 0, s++; column < MAX_CLASSES; column++, s++) {
            char *end;
            m->count[row][column] = strtod(s, &end);
            if (end == s)
                return false;
            s = end;
            if (*s != ',')
                break;
        }
        if (*s++ != ']' || (width >= 0 && width != column))
            return false;
        width = column;
        s += *s == ',';
    }
    m->classes = row;
    return *s == ']' && row == column + 1;
}

// NULL: the row has another form.
static Matrix *matrix_of_row(Arena *a, const JsonRow *row) {
    const Field *counts = row_field(row, "counts");
    const Field *output = row_field(row, "output");
    Matrix *m = ARENA_NEW(a, Matrix);
    m->epoch = row_number(row, "epoch");
    m->output =
        output != NULL ? arena_string(a, output->text, output->length) : "";
    bool good =
        counts != NULL && matrix_read(m, counts->key + counts->key_length + 2);
    return good ? m : NULL;
}

// The matrices of the last evaluation that has some, last first.
typedef struct {
    Matrix **item;
    int count;
} Matrices;

static bool has_output(const Matrices *all, const char *output) {
    for (int i = 0; i < all->count; i++)
        if (strcmp(all->item[i]->output, output) == 0)
            return true;
    return false;
}

static Matrices matrices_find(Arena *a, const Source *s) {
    Matrices all = {0};
    for (int i = s->num_lines; i > 0; i--) {
        JsonRow row;
        if (row_parse(s, i, &row) != ROW_GOOD || !row_is(&row, "confusion"))
            continue;
        Matrix *m = matrix_of_row(a, &row);
        if (m == NULL || has_output(&all, m->output))
            break;
        ARENA_APPEND(a, all.item, all.count, m);
    }
    return all;
}

static void row_add(Text *t, const Matrix *m, int label) {
    double all = 0;
    for (int k = 0; k < m->classes; k++)
        all += m->count[label][k];
    text_add(t, "<tr><th>%d</th>", label);
    for (int k = 0; k < m->classes; k++) {
        double share = all > 0 ? m->count[label][k] / all : 0;
        text_add(t, "<td style=\"background:rgba(%s,%.3f)\">%.9g</td>",
                 k == label ? "46,160,67" : "218,54,51", sqrt(share),
                 m->count[label][k]);
    }
    text_add(t, "</tr>\n");
}

static void matrix_add(Text *t, const Matrix *m, const char *path) {
    text_add(t, "<table class=\"confusion\"><caption>");
    xml_add(t, path);
    if (*m->output != '\0') {
        text_add(t, ", output ");
        xml_add(t, m->output);
    }
    text_add(t, ", epoch %.6g: a row for each label, a column for each "
                "predicted class</caption>\n<tr><th></th>",
             m->epoch);
    for (int k = 0; k < m->classes; k++)
        text_add(t, "<th>%d</th>", k);
    text_add(t, "</tr>\n");
    for (int i = 0; i < m->classes; i++)
        row_add(t, m, i);
    text_add(t, "</table>\n");
}

void confusion_add(Arena *a, Text *t, const char *path) {
    const char *why;
    const Source *s = source_read(a, run_file(a, path), MAX_METRICS, &why);
    Matrices all = s != NULL ? matrices_find(a, s) : (Matrices){0};
    while (all.count > 0)
        matrix_add(t, all.item[--all.count], path);
}
