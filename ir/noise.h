// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Noise: how far from right values are when roundings fall at random.
#ifndef IR_NOISE_H
#define IR_NOISE_H

#include "ir/ir.h"

// The value of every node of g, where each that is rounded when it is computed
// is off by as much, drawn for each element.  leaf is as for graph_eval, and
// value what g is without that.  With squares the variance of a convolution is
// off by what a sum of squares in f32 loses.
double **noise_eval(const Graph *g, Arena *a, double *const *leaf,
                    double *const *value, bool squares, uint32_t seed);

// As graph_eval_seen for a graph in f32, where each operation that rounds is
// off by up to so many units, of which all that read it see the same: so what
// is equal stays equal.  What would be stored as activations has their units,
// all but params, states and what is made of one element by element.
void noise_seen(const Graph *g, double *const *leaf, DType activations,
                double units, uint32_t seed, const bool *wanted, NodeSeen *seen,
                void *whose);

// The same of a few roundings of double, of which numbers that are all but
// equal have others.
void noise_seen_double(const Graph *g, double *const *leaf, uint32_t seed,
                       const bool *wanted, NodeSeen *seen, void *whose);

#endif
