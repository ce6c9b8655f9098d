// Trees as text, so that tests can compare them.
#ifndef TESTS_FRONTEND_TREE_H
#define TESTS_FRONTEND_TREE_H

#include "frontend/text/ast.h"

// An expression, fully parenthesised.
void tree_spell(Text *t, const Expr *x);

// The whole file, without spans.
void tree_print(Text *t, const File *f);

#endif
