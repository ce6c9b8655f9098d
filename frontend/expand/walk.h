// What the files that walk over the tree share.
#ifndef FRONTEND_WALK_H
#define FRONTEND_WALK_H

#include "frontend/functions/functions.h"

// ---- value.c ----

// As expect_kind, with advice, or NULL.
bool advise_kind(Expansion *e, Value v, ValueKind kind, Span at,
                 const char *what, const char *advice);

// ---- scope.c ----

// The innermost binding of a name, of those before `end`; NULL for none.
Binding *scope_find(Expansion *e, Atom name, const Binding *end);

// An assignment gives a name of the current function a new value.
void scope_assign(Expansion *e, Atom name, Value v);

Value expand_name(Expansion *e, const Expr *x);

// Whether x is a name that nothing has, as of a module of another language.
bool name_unknown(Expansion *e, const Expr *x);

// ---- unknown.c ----

// Reports a name that nothing defines.
Value unknown_name(Expansion *e, const Expr *x);

// Reports left.name where there is no such member; where left has a value, it
// is not NOTHING.
Value unknown_member(Expansion *e, const Expr *x, Value left);

// The name at which a path such as torch.optim.SGD begins.
const Expr *path_root(const Expr *x);

// ---- type.c ----

// Whether v is what its type in a function says; what is the subject of the
// report.
bool type_check(Expansion *e, const Function *f, const TypeExpr *t, Value v,
                Span at, const char *what);

// ---- kind.c ----

// The next of words, which are separated by spaces; NULL after the last.
const char *next_word(Expansion *e, const char **words);
// "zero, edge, reflect"
const char *word_list(Expansion *e, const char *words);
bool word_allowed(const char *words, const char *word);

// "a whole number from 1": what a parameter takes.
const char *kind_wanted(Expansion *e, const ParamInfo *p);

// Whether it takes v, words and true having been read as such.
bool kind_suits(Expansion *e, const ParamInfo *p, Value v);

// A number without a unit.
bool is_plain(Value v);

// ---- call.c ----

// Whether a function of that name is being expanded.
bool call_is_active(const Expansion *e, Atom name);

// x |> f and x |> f(a) call f with x before its other arguments.
Value expand_call(Expansion *e, const Expr *x, const Value *piped);

// ---- expand.c ----

// The value of a block is that of its last statement.
Value expand_block(Expansion *e, const Block *b);

// Ends the expansion, with a report.
void expand_stop(Expansion *e, DiagId id, Span at, const char *why);

#endif
