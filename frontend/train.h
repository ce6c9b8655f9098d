// The train block, as the files that read it share it.
#ifndef FRONTEND_TRAIN_H
#define FRONTEND_TRAIN_H

#include "frontend/expand.h"

typedef enum { UNTOUCHED, IN_PROGRESS, DONE } Progress;

// A name of the train block: one of its keys, or a variable of the run.
struct Lazy {
    const Entry *entry;   // NULL: a variable
    const char *variable; // step, epoch, progress, output, label
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
    Entry *entry;
    int num_entries;
    Lazy *lazy;     // of each entry, for the current graph
    Binding *scope; // of the file
};

// ---- keys.c ----

// The place of a name among the keys that the language has, and among the
// entries of the block; -1 where it is not there.
int key_find(const char *name);
int entry_find(const TrainBlock *t, const char *name);

// Words that may follow the value of a known key.
const char *key_flags(int known);

// The value of a key; NOTHING where it is not given.
Value key_value(Expansion *e, TrainBlock *t, const char *name);

// The value of a key that must be given; poison after a report.
Value key_needed(Expansion *e, TrainBlock *t, const char *name,
                 const char *example);

// Where the value of a key stands.
Span key_at(const TrainBlock *t, const char *name);

// Reports that what is at a place must be what is wanted.
void key_report(Expansion *e, Span at, const char *what, const char *wanted);

// Puts a whole number from least to INT32_MAX into *out; false after a report.
bool key_whole(Expansion *e, Value v, Span at, const char *what, int64_t least,
               int64_t *out);

// ---- clause.c: eval, checkpoint ----

// False, with a report, when one of them is written as a key.
bool clauses_check(Expansion *e, const TrainBlock *t);

// Reads them into e->recipe.  False after a report.
bool clauses_read(Expansion *e, TrainBlock *t);

#endif
