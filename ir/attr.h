// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attributes as graph.c compares, hashes and keeps them.
#ifndef IR_ATTR_H
#define IR_ATTR_H

#include "ir/ir.h"

// What an attribute holds, as bytes: two are equal when these are.
const void *attr_bytes(const Attr *attr, size_t *size);
bool attr_equal(const Attr *a, const Attr *b);

// Those of a node, in a.
const Attr *attrs_copy(Arena *a, const Node *n);

#endif
