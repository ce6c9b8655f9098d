// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attributes as graph.c compares, hashes and keeps them.
#ifndef IR_ATTR_H
#define IR_ATTR_H

#include "ir/ir.h"

// The bytes of an attribute's value: two are equal if their bytes are.
const void *attr_bytes(const Attr *attr, size_t *size);
bool attr_equal(const Attr *a, const Attr *b);

// Copies the attributes of a node to a.
const Attr *attrs_copy(Arena *a, const Node *n);

#endif
