// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Convolutions and matrix products in double.
#ifndef IR_PRODUCTS_H
#define IR_PRODUCTS_H

#include "ir/ir.h"

// Adds the result of node n, a conv or one of its gradients, to the elements of
// out.
void conv_eval(const Graph *g, const Node *n, double *const *value,
               double *out);

// The same of a matmul.
void matmul_eval(const Graph *g, const Node *n, double *const *value,
                 double *out);

#endif
