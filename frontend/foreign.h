// What a beginner brings from other systems, answered with what is written
// here.
#ifndef FRONTEND_FOREIGN_H
#define FRONTEND_FOREIGN_H

#include "frontend/text/lex.h"

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

// Whether two words are the same but for case and underscores.
bool foreign_same(const char *a, const char *b);

// What a word of another system is called here; NULL where nothing is known.
const char *foreign_name(Foreign where, const char *word);

// Adds a note about such a word.  False where nothing is known of it.
bool foreign_note(Foreign where, const char *word, Diagnostic *d);

// The same for an argument of a function that has those of the names: what is
// called differently by different functions has a row for each.
bool foreign_argument_note(const char *word, const char *const *name, int count,
                           Diagnostic *d);

// ---- syntax.c ----

// Adds notes to the report that t[at] is not what was expected.
void syntax_note(const Token *t, int at, const char *expected, Diagnostic *d);

#endif
