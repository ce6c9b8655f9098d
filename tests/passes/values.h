// What the tests of passes share: graphs from text, and their values by name.
#ifndef TESTS_PASSES_VALUES_H
#define TESTS_PASSES_VALUES_H

#include "passes/passes.h"

// The graph that a text describes; fails the test when it describes none.
Graph *graph_from(Arena *a, const char *text);

// What PyTorch said, in a file of tests/golden/numbers.
char *numbers_read(Arena *a, const char *name);

// Runs the pass as the compiler does, with deep verification.
Graph *run_pass(Graph *g, const char *pass, DType act);

// How many nodes have this operation.
int count_ops(const Graph *g, Op op);

// Elements for each input, param and state of g: the same for the same name and
// seed, between low and high where they are f32.  States of the run have their
// first value, those of an optimizer are not negative.
double **leaf_values(const Graph *g, Arena *a, uint32_t seed, double low,
                     double high);

// The elements of the output of that name, or else of the value assigned to the
// param or state of that name; NULL when there is neither.
const double *value_named(const Graph *g, double *const *value,
                          const char *name);

// Fails unless every output and assignment of one graph has the same value in
// the other, to a relative tolerance, for the leaves of some seeds.
void check_same_values(const Graph *before, const Graph *after,
                       double tolerance);

// The largest sum of bytes that are live at once: inputs, states and the values
// of the step.
int64_t graph_bound(const Graph *g);

#endif
