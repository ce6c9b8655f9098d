// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The meaning of optimizer and clip nodes, for ir/eval.c.
#ifndef IR_FIRST_UPDATE_H
#define IR_FIRST_UPDATE_H

#include "ir/ir.h"

// The factor by which a norm multiplies all gradients, or the limit of their
// elements.
double clip_eval(const Graph *g, const Node *n, double *const *value);

// The parameter of an optimizer node after its update, in out.
void update_eval(const Graph *g, const Node *n, double *const *value, Arena *a,
                 double *out);

#endif
