// Shared by the files of the interpreter.
#ifndef FRONTEND_INTERPRETER_H
#define FRONTEND_INTERPRETER_H

#include "frontend/expand/expand.h"

// ---- scope.c ----

// The innermost binding of a name before `end`; NULL for none.
Binding *scope_find(Expansion *e, Atom name, const Binding *end);

// Rebinds a name of the current function.
void scope_assign(Expansion *e, Atom name, Value v);

// Gives a value to one name, or the items of a list to several.  False, with
// poison and a report at `at`, if there are not as many.
bool targets_assign(Expansion *e, const Targets *to, Value v, Span at,
                    Bind *bind);

Value expand_name(Expansion *e, const Expr *x);

// Whether x is a name without a definition, such as another system's module.
bool name_unknown(Expansion *e, const Expr *x);

// ---- unknown.c ----

// Reports a name without a definition.
Value unknown_name(Expansion *e, const Expr *x);

// Reports that left has no member `name`; left is NONE unless it has a
// value.
Value unknown_member(Expansion *e, const Expr *x, Value left);

// The first name of a path such as torch.optim.SGD.
const Expr *path_root(const Expr *x);

// ---- type.c ----

// Whether v matches its declared type; `subject` is that of the report.
bool type_check(Expansion *e, const Function *f, const TypeExpr *t, Value v,
                Span at, const char *subject);

// ---- kind.c ----

// As expect_kind, with a note, or NULL.
bool advise_kind(Expansion *e, Value v, ValueKind kind, Span at,
                 const char *subject, const char *advice);

// The next of several words, separated by spaces; NULL after the last.
const char *next_word(Expansion *e, const char **words);
// "zero, edge, reflect"
const char *word_list(Expansion *e, const char *words);
bool word_allowed(const char *words, const char *word);

// "a whole number from 1": the values that a parameter accepts.
const char *kind_expected(Expansion *e, const ParamInfo *p);

// Whether the parameter accepts v; words and true are read before.
bool kind_accepts(Expansion *e, const ParamInfo *p, Value v);

// A number without a unit.
bool is_plain(Value v);

// ---- call.c ----

// Whether a function of that name is on the call stack.
bool call_is_active(const Expansion *e, Atom name);

// Expands a call; x |> f and x |> f(a) pass x as the first argument.
Value expand_call(Expansion *e, const Expr *x, const Value *piped);

// ---- expand.c ----

// The value of a block is its last statement's.
Value expand_block(Expansion *e, const Block *b);

#endif
