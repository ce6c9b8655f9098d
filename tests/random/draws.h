// Draws: how often random programs have what they should have.
#ifndef TESTS_RANDOM_DRAWS_H
#define TESTS_RANDOM_DRAWS_H

#include "tests/random/trial.h"

// Grows and plans the programs of some seeds and prints a line for each thing,
// with its share of them.  False where something is rare.
bool draws_print(uint32_t first, int count);

#endif
