// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Noise: the errors of values whose operations round at random.
#ifndef IR_NOISE_H
#define IR_NOISE_H

#include "ir/ir.h"

// The value of every node of g with an error of one rounding, drawn for each
// element of each node that is rounded.  leaf is as for graph_eval, and value
// is the result without such errors.  With squares, the variance of a
// convolution also has the error of a sum of squares in f32.
double **noise_eval(const Graph *g, Arena *a, double *const *leaf,
                    double *const *value, bool squares, uint32_t seed);

// As graph_eval_visit for a graph in f32, where each operation that rounds has
// an error of up to `units`, the same for all readers, so that equal values
// stay equal.  Values that would be stored as activations have the units of
// that type, except params, states and their elementwise results.
void noise_visit(const Graph *g, double *const *leaf, DType activations,
                 double units, uint32_t seed, const bool *wanted,
                 NodeVisitor *visit, void *context);

// The same with errors of a few roundings of double.  Here numbers that are
// almost equal have different errors.
void noise_visit_double(const Graph *g, double *const *leaf, uint32_t seed,
                        const bool *wanted, NodeVisitor *visit, void *context);

#endif
