// Characters become tokens, and names atoms.
#ifndef FRONTEND_LEX_H
#define FRONTEND_LEX_H

#include "base/source.h"
#include "frontend/report.h"

#include <stdbool.h>

// ---- atoms.c ----

// A name as a unique string: equal names are equal pointers.
typedef const char *Atom;

typedef struct Atoms Atoms;
Atoms *atoms_new(Arena *a);
Atom atom_of(Atoms *atoms, const char *s, size_t length);

typedef struct {
    Atom name; // NULL: free
    void *value;
} AtomSlot;

// A map from names to pointers; one of zeroes is empty.
typedef struct {
    AtomSlot *slot;
    size_t size, count;
} AtomMap;

// The value of a name, NULL at first; it stays in its place until another name
// is asked for.
void **atom_value(Arena *a, AtomMap *m, Atom name);

// ---- lex.c ----

typedef enum {
    TOKEN_END, // of the file
    TOKEN_NAME,
    TOKEN_NUMBER,
    TOKEN_STRING,
#define KEYWORD(name, spelling) TOKEN_##name,
#define PUNCT(name, spelling) TOKEN_##name,
#include "frontend/text/tokens.def"
    NUM_TOKENS
} TokenKind;

// "`|>`", "a name".
const char *token_name(TokenKind k);

typedef struct {
    TokenKind kind;
    bool first;   // of its line
    bool broken;  // a string that did not end
    bool skipped; // what was before it is no token
    Span at;
    Atom text; // NAME and STRING; of a keyword its spelling
    double number;
} Token;

enum { MAX_NAME = 255, MAX_FILE = 1 << 20 };

// The tokens of s; the last is TOKEN_END.  What is no token is reported and
// left out.
const Token *lex(Arena *a, Atoms *atoms, const Source *s, Diagnostics *d,
                 int *count);

#endif
