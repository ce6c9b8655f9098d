// Names of other systems: the table of foreign.def.

#include "frontend/foreign.h"

#include <string.h>

static const struct {
    Foreign where;
    const char *word, *ours, *note;
} table[] = {
#define FOREIGN(where, word, ours, note) {FOREIGN_##where, word, ours, note},
#include "frontend/foreign.def"
};

enum { NUM_FOREIGN = sizeof table / sizeof table[0] };

static char folded_char(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool foreign_equal(const char *a, const char *b) {
    for (;; a++, b++) {
        a += strspn(a, "_");
        b += strspn(b, "_");
        if (folded_char(*a) != folded_char(*b))
            return false;
        if (*a == '\0')
            return true;
    }
}

static int foreign_find(Foreign where, const char *word) {
    for (int i = 0; i < NUM_FOREIGN; i++)
        if (table[i].where == where && foreign_equal(table[i].word, word))
            return i;
    return -1;
}

const char *foreign_name(Foreign where, const char *word) {
    int i = foreign_find(where, word);
    return i < 0 ? NULL : table[i].ours;
}

static void note_row(int i, Diagnostic *d) {
    if (table[i].note != NULL)
        diag_note(d, "%s", table[i].note);
    else
        diag_note(d, "it is called `%s` here", table[i].ours);
}

bool foreign_note(Foreign where, const char *word, Diagnostic *d) {
    int i = foreign_find(where, word);
    if (i >= 0)
        note_row(i, d);
    return i >= 0;
}

static bool contains_name(const char *word, const char *const *name,
                          int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(name[i], word) == 0)
            return true;
    return false;
}

bool foreign_argument_note(const char *word, const char *const *name, int count,
                           Diagnostic *d) {
    for (int i = 0; i < NUM_FOREIGN; i++)
        if (table[i].where == FOREIGN_ARGUMENT &&
            foreign_equal(table[i].word, word) &&
            (table[i].ours == NULL ||
             contains_name(table[i].ours, name, count))) {
            note_row(i, d);
            return true;
        }
    return false;
}
