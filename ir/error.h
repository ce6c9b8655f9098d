// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Error: how far numbers are from right, and how far they may be.
#ifndef IR_ERROR_H
#define IR_ERROR_H

#include "ir/ir.h"

// The root mean square of differences, and of numbers.
double error_rms(const double *x, const double *y, int64_t count);
double error_size(const double *x, int64_t count);

// How far a tensor is from right, how large it is, and how far roundings of
// each operation are: the norms of all its numbers but those that overflow
// alike.
typedef struct {
    double error, size, rounding;
} ErrorNorms;

ErrorNorms error_norms(DType stored, int64_t count, const double *right,
                       const double *rough, const double *found);

// The error that a tensor of a fused plan may have if the unfused plan has the
// error `unfused`, with activations kept in `storage`: docs/numerics.md.
double error_allowed(Type type, DType storage, double unfused,
                     const double *right);

// The error that one kernel may have, relative to the size of the right values.
double error_alone(DType storage);

// How many of `count` whole numbers may differ: where two values of a window
// are all but equal, either place may win.  Few numbers are compared exactly.
int64_t error_places(int64_t count, DType storage);

// The error of a number that is so small that its type has few digits left, or
// none.
double error_underflow(DType stored);

// The norm of a sum, also of products, if none of its terms cancelled: the sum
// is no more exact than its terms.  0 for other nodes.
double error_terms(const Graph *g, NodeId n, double *const *value);

#endif
