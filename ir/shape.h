// The shape rules that ops.def names; shape.c defines each.
#ifndef IR_SHAPE_H
#define IR_SHAPE_H

#include "ir/ir.h"

#define OP(name, arity, shape, facts) ShapeRule shape_##shape;
#include "ir/ops.def"

#endif
