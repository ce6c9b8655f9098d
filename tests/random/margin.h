// Margin: where a value is so close to a jump that a rounding decides.
#ifndef TESTS_RANDOM_MARGIN_H
#define TESTS_RANDOM_MARGIN_H

#include "ir/ir.h"

// For each node, whether a relative error of `unit` in its operands could
// change it by more than such an error does: at a comparison of all but equal
// numbers, the largest of such, a whole number next to another; and what
// follows from one of these.
bool *margin_unsure(const Graph *g, double *const *value, double unit,
                    Arena *a);

#endif
