// Names of other systems: notes with the equivalents here.
#ifndef FRONTEND_FOREIGN_H
#define FRONTEND_FOREIGN_H

#include "base/diag.h"

// ---- foreign.c ----

typedef enum {
    FOREIGN_FUNCTION,
    FOREIGN_MODULE,
    FOREIGN_METHOD,
    FOREIGN_LOSS,
    FOREIGN_SURPLUS,
    FOREIGN_ARGUMENT,
    FOREIGN_KEY,
    FOREIGN_WORD,
    FOREIGN_SYNTAX
} Foreign;

// Whether two words are equal, ignoring case and underscores.
bool foreign_equal(const char *a, const char *b);

// The name here of another system's word; NULL if unknown.
const char *foreign_name(Foreign where, const char *word);

// Adds a note about such a word.  False if it is unknown.
bool foreign_note(Foreign where, const char *word, Diagnostic *d);

// The same for an argument of a function with these parameters: a word with
// several meanings has a row for each.
bool foreign_argument_note(const char *word, const char *const *name, int count,
                           Diagnostic *d);

#endif
