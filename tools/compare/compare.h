// A comparison of two ways to build a model.
#ifndef TOOLS_COMPARE_H
#define TOOLS_COMPARE_H

#include "tools/compare/verdict.h"

// What a step costs with the batch of the model file, or of --set.
typedef struct {
    int64_t batch, flops;
    int64_t bytes; // of all that is stored, in double
} Size;

enum { MOST_RUNS = 1000 }; // of bench

typedef struct {
    Side a, b;
    Runs runs;
    int64_t own_batch; // of the model file
    Rows rows;
} Comparison;

// Looks at the model, and for the data and the device.  Returns an exit status;
// what went wrong has been said.
int model_size(const Arguments *arguments, Size *size);

// The batch of a comparison: what the command line says, or so few that double
// takes seconds.
int64_t comparison_batch(const Arguments *arguments, const Size *size);

// Whether the step that was looked at is evaluated in double.
bool is_judged(const Arguments *arguments, const Snapshot *s);

// Builds and runs both sides, whose names and options are set, and compares
// them.  Returns an exit status; what went wrong has been said.
int sides_compare(Arena *a, const Arguments *arguments, Comparison *c);

// Prints what each pass costs and saves; an exit status.
int ablate(Arena *a, const Arguments *arguments);

// ---- comparison.c ----

// What a tensor is stored as.
const char *row_stored_as(Arena *a, const Comparison *c, const Row *r);

// The first tensor that is wrong, and what it is off by; NULL: none is.
const Row *row_first_wrong(const Rows *rows);
void first_print(Text *t, const Comparison *c);

void comparison_print(Text *t, const Comparison *c);

// ---- comparison_json.c ----

// What a side is and costs, in the middle of an object.
void side_json(Text *t, const Side *s);

void comparison_json(Text *t, const Comparison *c);

#endif
