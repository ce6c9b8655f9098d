// What the two files of the formatter share.
#ifndef FRONTEND_FORMAT_H
#define FRONTEND_FORMAT_H

#include "frontend/text/lex.h"

// ---- spacing.c ----

// Whether token i, which t ends with, is the last of an operand.
bool ends_operand(const Token *t, int i);

// For each token, whether a space stands before it when it does not begin a
// line.
bool *spaces_find(Arena *a, const Token *t, int count);

#endif
