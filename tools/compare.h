// A comparison of two ways to build a model.
#ifndef TOOLS_COMPARE_H
#define TOOLS_COMPARE_H

#include "tools/verdict.h"

typedef struct {
    Side a, b;
    Runs runs;
    int64_t batch, own_batch; // compared with, and of the model file
    Rows rows;
} Comparison;

// Builds and runs both sides, whose names and options are set, and compares
// them.  Returns an exit status; what went wrong has been said.
int sides_compare(Arena *a, const Arguments *arguments, Comparison *c);

// ---- comparison.c ----

void comparison_print(Text *t, const Comparison *c);
void comparison_json(Text *t, const Comparison *c);

#endif
