// Turns characters into tokens, and names into atoms.
#ifndef FRONTEND_LEX_H
#define FRONTEND_LEX_H

#include "base/source.h"
#include "frontend/report.h"

#include <stdbool.h>

// ---- atoms.c ----

// An interned string: equal names are equal pointers.
typedef const char *Atom;

typedef struct Atoms Atoms;
Atoms *atoms_new(Arena *a);
Atom atom_of(Atoms *atoms, const char *s, size_t length);

typedef struct {
    Atom name; // NULL: free
    void *value;
} AtomSlot;

// A map from names to pointers; a zeroed one is empty.
typedef struct {
    AtomSlot *slot;
    size_t size, count;
} AtomMap;

// The value of a name, initially NULL; the pointer is valid until the next
// call.
void **atom_value(Arena *a, AtomMap *m, Atom name);

// ---- lex.c ----

typedef enum {
    TOKEN_END, // end of file
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
    bool broken;  // unterminated string
    bool skipped; // invalid characters precede it
    Span at;
    Atom text; // NAME and STRING; of a keyword its spelling
    double number;
} Token;

enum { MAX_NAME = 255, MAX_FILE = 1 << 20 };

// The tokens of s; the last is TOKEN_END.  Reports and skips invalid
// characters.
const Token *lex(Arena *a, Atoms *atoms, const Source *s, Diagnostics *d,
                 int *count);

#endif
