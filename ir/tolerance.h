// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tolerance: measures the error of numbers and bounds the allowed error.
#ifndef IR_TOLERANCE_H
#define IR_TOLERANCE_H

#include "ir/ir.h"

// The root mean square of x - y, and of x.
double error_rms(const double *x, const double *y, int64_t count);
double error_size(const double *x, int64_t count);

// L2 norms over the elements of a tensor, without those that overflow in both:
// found - right, right, and rough - right, where `rough` rounds the result of
// each operation.
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

// The number of `count` indices that may differ: where two values of a window
// are nearly equal, either may be the maximum.  Up to 1,000 indices must be
// equal.
int64_t error_indices(int64_t count, DType storage);

// The rounding error of a subnormal number of the type.
double error_underflow(DType stored);

// The norm of a sum, also of products, if none of its terms cancelled: the sum
// is no more exact than its terms.  0 for other nodes.
double error_terms(const Graph *g, NodeId n, double *const *value);

#endif
