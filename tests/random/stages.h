// Stages: what a program has besides the graph that was grown.
#ifndef TESTS_RANDOM_STAGES_H
#define TESTS_RANDOM_STAGES_H

#include "tests/random/trial.h"

// A program whose first stage is g.  One that trains may have later stages in
// which fewer params do, steps that only gather gradients, and averages; any
// may have an evaluation.
Program *stages_program(Arena *a, const Graph *g, const Setup *s);

#endif
