// Expansion: turns the tree into values, and tensors into nodes of a graph.
#ifndef FRONTEND_EXPAND_H
#define FRONTEND_EXPAND_H

#include "frontend/functions/functions.h"

// ---- scope.c: name lookup ----

// Whether a name has a value here, and whether a file defines it.
bool name_exists(Expansion *e, Atom name);
bool name_defined(Expansion *e, Atom name);

// Defines a name from here on.
void scope_bind(Expansion *e, Atom name, Value v);

// Evaluates an assignment, and defines its names through `bind`.
typedef void Bind(Expansion *e, Atom name, Value v);
void targets_bind(Expansion *e, const Stmt *s, Bind *bind);

// ---- type.c: types of parameters and results ----

// Evaluates the declared type of a tensor of type `found`; new names of
// dimensions take their sizes from it.  False after a report.
bool type_expand(Expansion *e, const Function *f, const TypeExpr *t, Type found,
                 Type *out);

// ---- call.c ----

// Calls a user's function or model with a value for each parameter, NONE for
// a default.
Value expand_function(Expansion *e, Value function, const Value *arg, Span at);

// ---- expand.c: expressions and statements ----

Value expand(Expansion *e, const Expr *x);

// ---- argument.c: matching arguments to parameters ----

// An argument of a call: an expression, or the value from a chain.
typedef struct {
    Atom name; // NULL: positional
    Span at;   // of the name, or of the value
    const Expr *expr;
    const Value *value; // NULL: expand expr
    bool overrides;     // overrides an earlier one
} ActualArg;

ActualArg actual_arg(const Argument *a);

// Finds the argument of each parameter.  False, with reports, on a mismatch.
typedef struct {
    const char *function;
    Span at;          // of the call
    Span declared_at; // no source for a builtin
    int num_params;
    const char *const *name;
    const bool *optional;
    bool rest; // the last parameter takes all remaining arguments
    bool list; // the last parameter is a list of numbers
} Signature;
bool match_arguments(Expansion *e, const Signature *s, const ActualArg *given,
                     int num_args, int *slot);

// Checks and converts the arguments of a builtin.  False after a report.
bool bind_builtin(Expansion *e, Call *c, const ActualArg *given, int num_args);

// ---- kind.c ----

// Whether v at a span is of a kind; reports `subject` if not.
bool expect_kind(Expansion *e, Value v, ValueKind kind, Span at,
                 const char *subject);

// ---- names.c: checks of names before expansion ----

typedef enum {
    NAMES_ONCE, // no name is defined twice
    NAMES_USED, // every value is used
} NameCheck;

void names_check(Arena *a, const File *f, NameCheck check, Diagnostics *d);

// ---- import.c: files ----

// Parses, checks and expands the top level of a source in an empty scope, and
// leaves its names in e->scope.
File *file_expand(Expansion *e, const Source *s);

// Whether a function of a module of `std/` is a builtin.
bool function_is_native(const Function *f);

// The imported files, without those of `std/`.
const ImportedFile *files_imported(Expansion *e, int *count);

// Checks the names of the main file and of all imports.
void files_check(Expansion *e, NameCheck check);

// ---- lazy.c: names of the train block ----

typedef enum { UNTOUCHED, IN_PROGRESS, DONE } Progress;

// A name of the train block: one of its keys, or a variable of the run.
struct Lazy {
    const Entry *entry;   // NULL: a variable
    const char *variable; // step, epoch, progress, output, label, input
    bool shadowed;        // the file has another value of the variable's name
    Phase phase;
    Binding *scope;
    Progress progress;
    bool used;
    Value value;
};

// The value of a name of the train block, computed at its first use.
Value lazy_force(Expansion *e, Lazy *lazy, Span at);

// Whether it is input, output or label, which have members in the loss; and a
// member.
bool lazy_has_members(const Lazy *lazy);
Value lazy_member(Expansion *e, Lazy *lazy, Atom name, Span at);

#endif
