// Confusion: the last confusion matrix of a run as an HTML table, each count
// over a colour by its share of its label.
#include "tools/plot/plot.h"
#include "tools/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 100 };

typedef struct {
    double count[MOST_CLASSES][MOST_CLASSES];
    int classes;
    double epoch;
} Matrix;

// Reads [[1,2],[3,4]], whose lists have equal lengths; false if it is another
// text.
static bool matrix_read(Matrix *m, const char *s) {
    int row = 0, column = 0, width = -1;
    if (*s++ != '[')
        return false;
    for (; *s == '[' && row < MOST_CLASSES; row++) {
        for (column = 0, s++; column < MOST_CLASSES; column++, s++) {
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

static Matrix *matrix_find(Arena *a, const Source *s) {
    for (int i = s->num_lines; i > 0; i--) {
        JsonRow row;
        if (row_parse(s, i, &row) != ROW_GOOD || !row_is(&row, "confusion"))
            continue;
        const Field *counts = row_field(&row, "counts");
        Matrix *m = ARENA_NEW(a, Matrix);
        m->epoch = row_number(&row, "epoch");
        bool good = counts != NULL &&
                    matrix_read(m, counts->key + counts->key_length + 2);
        return good ? m : NULL;
    }
    return NULL;
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

void confusion_add(Arena *a, Text *t, const char *path) {
    const char *why;
    const Source *s = source_read(a, run_file(a, path), MOST_METRICS, &why);
    const Matrix *m = s != NULL ? matrix_find(a, s) : NULL;
    if (m == NULL)
        return;
    text_add(t, "<table class=\"confusion\"><caption>");
    xml_add(t, path);
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
