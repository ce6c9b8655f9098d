// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Optimizers: queries of the table optimizers.def.

#include "ir/ir.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    Op op;
    const char *name;
} scalars[] = {
#define SCALAR(optimizer, name, default, range) {OP_##optimizer, #name},
#include "ir/optimizers.def"
};

enum { NUM_SCALARS = sizeof scalars / sizeof scalars[0] };

static const bool counts[NUM_OPS] = {
#define COUNT(optimizer) [OP_##optimizer] = true,
#include "ir/optimizers.def"
};

#define SLOT(optimizer, name, scope, initial)                                  \
    static double initial_##optimizer##_##name(const Node *n) {                \
        (void)n;                                                               \
        return initial;                                                        \
    }
#include "ir/optimizers.def"

const OptimizerSlot optimizer_slots[] = {
#define SLOT(optimizer, name, scope, initial)                                  \
    {OP_##optimizer, #name, SLOT_##scope, initial_##optimizer##_##name},
#include "ir/optimizers.def"
};

const int num_optimizer_slots = sizeof optimizer_slots / sizeof(OptimizerSlot);

bool is_optimizer(Op op) {
    return optimizer_num_scalars(op) > 0;
}

int optimizer_num_scalars(Op op) {
    int count = 0;
    for (int i = 0; i < NUM_SCALARS; i++)
        count += scalars[i].op == op;
    return count;
}

bool optimizer_counts(Op op) {
    return counts[op];
}

const char *optimizer_scalar(Op op, int i) {
    for (int k = 0; k < NUM_SCALARS; k++)
        if (scalars[k].op == op && --i == 0)
            return scalars[k].name;
    return NULL;
}

NodeId optimizer_in(const Node *n, const char *scalar) {
    int i = 1;
    for (const char *name; (name = optimizer_scalar(n->op, i)) != NULL; i++)
        if (strcmp(name, scalar) == 0)
            return n->arg[i];
    abort();
}

NodeId optimizer_count(const Node *n) {
    assert(optimizer_counts(n->op));
    return n->arg[n->num_args - 1];
}

const OptimizerSlot *optimizer_slot(Op op, const char *name) {
    for (int i = 0; i < num_optimizer_slots; i++)
        if (optimizer_slots[i].op == op &&
            strcmp(optimizer_slots[i].name, name) == 0)
            return &optimizer_slots[i];
    abort();
}
