// Numbers: those that a trial's program starts from, and what its graphs mean
// for them.
#ifndef TESTS_RANDOM_NUMBERS_H
#define TESTS_RANDOM_NUMBERS_H

#include "ir/program.h"

// What the loss of programs in f16 is multiplied by: gradients of graphs this
// small fit.
enum { LOSS_SCALE = 8 };

// The elements of an input, param or state, which follow from its name.
double *number_leaf(const Graph *g, Arena *a, NodeId n, uint32_t seed);
double **number_leaves(const Graph *g, Arena *a, uint32_t seed);

// What a step starts from and comes to, for each node of its graph.
typedef struct {
    double **leaf, **value;
} Values;

// Of each step of a plan, every node rounded as it is stored, or in double.
Values *number_steps(const Plan *p, Arena *a, uint32_t seed, bool round);

bool number_finite(const Graph *g, double *const *value);

#endif
