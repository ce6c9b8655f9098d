// The words of other systems: the table that foreign.def expands to.

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

static char folded(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

// Whether two words are the same but for case and underscores.
static bool same_word(const char *a, const char *b) {
    for (;; a++, b++) {
        a += strspn(a, "_");
        b += strspn(b, "_");
        if (folded(*a) != folded(*b))
            return false;
        if (*a == '\0')
            return true;
    }
}

static int foreign_find(Foreign where, const char *word) {
    for (int i = 0; i < NUM_FOREIGN; i++)
        if (table[i].where == where && same_word(table[i].word, word))
            return i;
    return -1;
}

const char *foreign_name(Foreign where, const char *word) {
    int i = foreign_find(where, word);
    return i < 0 ? NULL : table[i].ours;
}

bool foreign_note(Foreign where, const char *word, Diagnostic *d) {
    int i = foreign_find(where, word);
    if (i < 0)
        return false;
    if (table[i].note != NULL)
        diag_note(d, "%s", table[i].note);
    else
        diag_note(d, "it is called `%s` here", table[i].ours);
    return true;
}
