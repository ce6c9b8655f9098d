// Wrap: words separated by commas, wrapped at the page's width.

#include "codegen/program.h"

#include <string.h>

void wrap_add(Wrap *w, const char *word) {
    enum { PAGE = 79 };
    int length = (int)strlen(word);
    if (w->written++ > 0) {
        text_add(w->t, ",");
        if (w->column + length + 3 > PAGE) {
            text_add(w->t, "\n%*s", w->indent, "");
            w->column = w->indent;
        } else {
            text_add(w->t, " ");
            w->column += 2;
        }
    }
    text_add(w->t, "%s", word);
    w->column += length;
}
