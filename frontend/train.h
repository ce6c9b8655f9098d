// The train block, as the files that read it share it.
#ifndef FRONTEND_TRAIN_H
#define FRONTEND_TRAIN_H

#include "frontend/expand.h"

typedef enum { UNTOUCHED, IN_PROGRESS, DONE } Progress;

// A name of the train block: one of its keys, or a variable of the run.
struct Lazy {
    const Entry *entry;   // NULL: a variable
    const char *variable; // step, epoch, progress, output, label
    bool hides;           // the file gives the variable's name to another
    Phase phase;
    Binding *scope;
    Progress progress;
    bool used;
    Value value;
};

struct TrainBlock {
    const File *file;
    Span at;
    Value model;
    bool doubtful; // keys that others rest on are wrong
    Entry *entry;
    int num_entries;
    Lazy *lazy;                  // of each entry, for the current graph
    struct Regrouped *regrouped; // the optimizers of groups, for it too
    Binding *scope;              // of the file
    Time *freeze_at;             // of each entry; count 0: from the start
    Time *moment;                // the others, once each, ascending
    int num_moments;
};

// ---- keys.c ----

// The place of a name among the keys that the language has, and among the
// entries of the block; -1 where it is not there.
int key_find(const char *name);
const char *key_name(int known); // NULL after the last
int entry_find(const TrainBlock *t, const char *name);

// Whether a key that the language has not is a misspelt one that it has.
bool key_means(const char *key, const char *name);

// Words that may follow the value of a known key.
const char *key_flags(int known);

// Reports too many entries, and keys that are given twice; clauses that name
// parameters may be.
bool keys_check(Expansion *e, Span at, const Entry *entry, int count);

// Reports words after the values of a clause's keys, which have none.
bool keys_check_bare(Expansion *e, const Entry *key, int count);

// The value of a key; NOTHING where it is not given.
Value key_value(Expansion *e, TrainBlock *t, const char *name);

// The value of a key that must be given; poison after a report.
Value key_needed(Expansion *e, TrainBlock *t, const char *name,
                 const char *example);

// Where the value of a key stands.
Span key_at(const TrainBlock *t, const char *name);

// Reports that what is at a place must be what is wanted.
Diagnostic *key_report(Expansion *e, Span at, const char *what,
                       const char *wanted);

// Whether it is a call of that class; false after a report.
bool key_call(Expansion *e, Value v, Span at, Class class, const char *what,
              const char *wanted);

// Puts a whole number from least to INT32_MAX into *out; false after a report.
bool key_whole(Expansion *e, Value v, Span at, const char *what, int64_t least,
               int64_t *out);

// ---- input.c: what the model takes ----

// The parameter that takes the data: the only one with a type.
const Param *input_param(Expansion *e, const Function *model);

// Sets e->image; given has the value of each parameter of the model, NOTHING
// where its default is meant.  False after a report.
bool input_type(Expansion *e, const TrainBlock *block, const Value *given,
                const Param *p);

// Whether the model takes what the key `input` gives.
bool input_check(Expansion *e, const TrainBlock *block, const Value *given,
                 const Param *p, Value input);

// ---- moment.c: times ----

// The time above 0 that is written; false after a report.
bool time_read(Expansion *e, TrainBlock *t, const Expr *x, const char *what,
               Time *out);

// ---- views.c ----

// Reads the list of views into e.  False after a report.
bool views_read(Expansion *e, TrainBlock *t, const Expr *list);

// ---- clause.c: eval, checkpoint, stop ----

// Reads them into e->recipe.  False after a report.
bool clauses_read(Expansion *e, TrainBlock *t);

// ---- glob.c: names of parameters ----

// Whether a clause is about the parameter of that name.
bool glob_matches(Expansion *e, const TrainBlock *t, const Entry *clause,
                  const char *name);

// False, with a report, when a clause is about none.
bool glob_check(Expansion *e, const TrainBlock *t, const Entry *clause);

// ---- group.c: params ----

// False after a report about the blocks themselves.
bool groups_check(Expansion *e, const TrainBlock *t);

// Whether some group has an optimizer of its own.
bool groups_have_optimizer(const TrainBlock *t);

// The optimizer of a parameter, base being that of the train block or NULL;
// NULL after a report.
const Call *group_optimizer(Expansion *e, TrainBlock *t, const Call *base,
                            const Parameter *p);

// ---- freeze.c ----

// Reads the times of freezing.  False after a report.
bool freezes_read(Expansion *e, TrainBlock *t);

// False after a report of a name that is nobody's, or when nothing is left to
// train.
bool freezes_check(Expansion *e, const TrainBlock *t);

#endif
