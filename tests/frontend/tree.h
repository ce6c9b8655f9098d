// Trees as text, so that tests can compare them.
#ifndef TESTS_FRONTEND_TREE_H
#define TESTS_FRONTEND_TREE_H

#include "frontend/text/ast.h"

// An expression with every operation in brackets.
void tree_spell(Text *t, const Expr *x);

// All of a file, without places.
void tree_print(Text *t, const File *f);

#endif
