// Shared by the two files of the formatter.
#ifndef FRONTEND_FORMAT_H
#define FRONTEND_FORMAT_H

#include "frontend/text/lex.h"

// ---- spacing.c ----

// Whether the last token, t[i], ends an operand.
bool ends_operand(const Token *t, int i);

// For each token, whether a space precedes it inside a line.
bool *spaces_find(Arena *a, const Token *t, int count);

#endif
