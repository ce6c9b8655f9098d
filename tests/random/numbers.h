// Numbers: those that a trial's program starts from, and what its graphs mean
// for them.
#ifndef TESTS_RANDOM_NUMBERS_H
#define TESTS_RANDOM_NUMBERS_H

#include "passes/plan/plan.h"

// What the loss of programs in f16 is multiplied by: gradients of graphs this
// small fit.
enum { LOSS_SCALE = 8 };

// What a leaf of that name has in place of numbers that are drawn.
typedef struct {
    const char *name;
    int64_t count;
    const double *value;
} Given;

// What a step starts from.
typedef struct {
    uint32_t seed; // of what is drawn
    const Given *given;
    int num_given;
} Start;

// The elements of an input, param or state, which follow from its name.
double *number_leaf(const Graph *g, Arena *a, NodeId n, const Start *s);
double **number_leaves(const Graph *g, Arena *a, const Start *s);

// What a step starts from and comes to, for each node of its graph.
typedef struct {
    double **leaf, **value;
} Values;

// Of a step of a plan, behind those that derive states for it, every node
// rounded as it is stored, or in double.
Values number_step(const Plan *p, int step, Arena *a, const Start *s,
                   bool round);

// Whether a step of that kind runs before one of the other to derive states.
bool number_derives(StepKind kind, StepKind before);

bool number_finite(const Graph *g, double *const *value);

#endif
