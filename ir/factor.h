// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Factors of matrices in double, for eval.c.
#ifndef IR_FACTOR_H
#define IR_FACTOR_H

#include "base/arena.h"

#include <stdint.h>

// The eigenvalues of the symmetric matrix a [n,n], descending, in row 0 of out
// [n+1,n]; below them the unit eigenvectors, one in each row, the largest
// element of each positive.  Only the upper triangle of a is read.
void factor_eigh(const double *a, int64_t n, double *out, Arena *scratch);

// The matrix with orthonormal columns (rows where m < n) that a [m,n] is times
// a triangle with a positive diagonal.
void factor_orthogonal(const double *a, int64_t m, int64_t n, double *out);

#endif
