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

// What a tensor of a fused plan may be off by whose unfused plan is off by so
// much, with activations kept in `storage`: docs/numerics.md.
double error_allowed(Type type, DType storage, double unfused,
                     const double *right);

// What one kernel alone may be off by, relative to the size of what is right.
double error_alone(DType storage);

// Of so many whole numbers, how many may be others: where two values of a
// window are all but equal, either place may win.  Few are compared exactly.
int64_t error_places(int64_t count, DType storage);

// What a number of the type may be off by where it is so small that the type
// has few digits left, or none.
double error_underflow(DType stored);

// Where terms cancel, a sum of them or of products is no more exact than they
// are: the norm of what it would be if none did; 0 for other nodes.
double error_terms(const Graph *g, NodeId n, double *const *value);

#endif
