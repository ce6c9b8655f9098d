// Verdict: compares two variants, tensor by tensor.
#ifndef TOOLS_VERDICT_H
#define TOOLS_VERDICT_H

#include "tools/compare/variant.h"

typedef enum {
    VERDICT_SAME,    // equal bits
    VERDICT_GOOD,    // as near to the reference as b
    VERDICT_CARRIED, // not, but its kernel's inputs explain it
    VERDICT_SKIPPED, // an overflow in a skipped step explains it
    VERDICT_WRONG
} Verdict;

// A tensor that both variants store.
typedef struct {
    const char *name, *kind; // "conv of layer1", "param"
    NodeId node;             // of a
    Type type;
    double absolute, relative;     // largest differences of a from b
    double size, error_a, error_b; // root mean squares
    double allowed;                // of error_a
    bool of_model;                 // a state that the model has as well
    double meant;     // distance of a's plan from the model, in double
    double roundings; // error of f32, as far as known
    double decided;   // error of random roundings in double, if computed
    double explained; // error of random roundings, if computed
    bool overflows;   // in a or b, but not in the reference
    Verdict verdict;
} Row;

typedef struct {
    Row *row;
    int count, only_a, only_b; // tensors that only one of them stores
    int wrong;
    bool judged;           // compared with double; else a with b
    bool skips_a, skips_b; // the step was skipped, as a gradient is not finite
} Rows;

// Whether a's plan, in double, equals the model.
bool row_is_meant(const Row *r);

Rows rows_compare(Arena *a, const Variant *left, const Variant *right,
                  bool judged);

#endif
