// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The shape rules that ops.def names.
#ifndef IR_SHAPE_SHAPE_H
#define IR_SHAPE_SHAPE_H

#include "ir/ir.h"

#define OP(name, arity, shape, traits) ShapeRule shape_##shape;
#include "ir/ops.def"

#endif
