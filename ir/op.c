// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arrays of the tables ops.def and reasons.def.

#include "ir/ir.h"
#include "ir/shape/shape.h"

#include <string.h>

const OpInfo op_info[NUM_OPS] = {
#define OP(name, arity, shape, traits) {#name, arity, shape_##shape, traits},
#include "ir/ops.def"
};

const struct ReasonInfo reason_info[NUM_REASONS] = {
    {"none", ""},
#define REASON(name, text) {#name, text},
#include "ir/reasons.def"
};

bool op_find(const char *name, size_t length, Op *found) {
    for (int op = 0; op < NUM_OPS; op++)
        if (strlen(op_info[op].name) == length &&
            memcmp(op_info[op].name, name, length) == 0) {
            *found = (Op)op;
            return true;
        }
    return false;
}
