// Judged: what PyTorch made of a step of a small model, from a file of
// tests/golden/numbers.
//
// A line is a kind, for all but the loss a name, and numbers:
//
//   loss 1.5                what is minimised
//   input label 3 1         what the data of the step are; others are 0
//   gradient linear_1.weight 0.1 0.2
//   state batch_norm_1.running_mean 0.3    after the step
#ifndef TESTS_NUMBERS_JUDGED_H
#define TESTS_NUMBERS_JUDGED_H

#include "base/arena.h"

typedef struct {
    const char *kind, *name; // name: "" for the loss
    double *value;
    int count;
} Line;

typedef struct {
    const char *model; // path of the .net
    Line *line;
    int count;
} Judged;

// A file; fails the test when it cannot be read.
char *judged_text(Arena *a, const char *path);

// Reads tests/golden/numbers/NAME.txt; fails the test when it cannot.
Judged judged_read(Arena *a, const char *name);

// Fails unless `found` has the line's numbers: each to a relative tolerance of
// its own size and the line's.
void judged_compare(const Line *l, const double *found, double tolerance);

#endif
