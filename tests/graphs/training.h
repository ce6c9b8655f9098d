// How a random graph is trained.
#ifndef TESTS_GRAPHS_TRAINING_H
#define TESTS_GRAPHS_TRAINING_H

#include "tests/graphs/random_graph.h"

// Adds an output "loss" of some of the values, and an optimizer for most
// params.
void training_add(Random *b);

#endif
