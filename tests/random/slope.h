// Slope: gradients against differences of the loss.
#ifndef TESTS_RANDOM_SLOPE_H
#define TESTS_RANDOM_SLOPE_H

#include "ir/ir.h"

// Compares the gradient of each param that g trains, as autodiff appends it,
// with what moving the param does to the loss; adds a line to the report for
// each that is wrong.  g is as the front end leaves it, and seed that of its
// numbers.
void slope_judge(const Graph *g, uint32_t seed, Text *report);

#endif
