// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The types that the nodes of graphs have, each once: nodes point to them, and
// are compared and copied the faster for it.
#ifndef IR_TYPES_H
#define IR_TYPES_H

#include "ir/ir.h"

typedef struct Types Types;

Types *types_new(Arena *a);

// The one that is equal to *t, a copy of it in the arena at first.
const Type *types_add(Types *s, const Type *t);

#endif
