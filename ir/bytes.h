// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers as memory holds them.
#ifndef IR_BYTES_H
#define IR_BYTES_H

#include "ir/ir.h"

// Element i of an array of type d, which is not ACT.  The stored value is one
// of the type: dtype_round gives it.
double bytes_load(const void *bytes, DType d, int64_t i);
void bytes_store(void *bytes, DType d, int64_t i, double value);

#endif
