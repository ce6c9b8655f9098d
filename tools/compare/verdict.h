// What a comparison of two sides finds, tensor by tensor.
#ifndef TOOLS_VERDICT_H
#define TOOLS_VERDICT_H

#include "tools/compare/side.h"

typedef enum {
    VERDICT_SAME,    // to the bit
    VERDICT_GOOD,    // as near to what is right as b is
    VERDICT_CARRIED, // not, but what its kernel read makes it so
    VERDICT_SKIPPED, // so does what overflowed in a step that was skipped
    VERDICT_WRONG
} Verdict;

// A tensor that both sides keep in memory.
typedef struct {
    const char *name, *kind; // "conv of layer1", "param"
    NodeId node;             // of a
    Type type;
    double absolute, relative;     // largest differences of a from b
    double size, error_a, error_b; // root mean squares
    double allowed;                // of error_a
    bool of_model;                 // a state that the model has as well
    double meant;     // how far a's plan is in double from what the model means
    double roundings; // what f32 costs, as far as is known
    double decided;   // how far roundings of double take either, where asked
    double explained; // how far roundings at random take it, where asked
    bool overflows;   // in a or b, and not in what is right
    Verdict verdict;
} Row;

typedef struct {
    Row *row;
    int count, only_a, only_b; // tensors that one of them keeps
    int wrong;
    bool judged;           // against double; else a is measured by b
    bool skips_a, skips_b; // the step, as a gradient is not finite
} Rows;

// Whether a's plan is in double what the model means.
bool row_is_meant(const Row *r);

Rows rows_compare(Arena *a, const Side *left, const Side *right, bool judged);

#endif
