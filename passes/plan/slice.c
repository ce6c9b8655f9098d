// Slices of tensors in memory.
//
// A loop over positions reads one slice after another of a sequence.  A kernel
// reads such a slice where it is, by a pointer to its first element, so that
// the kernels of all positions have one text and no slice is stored.  The first
// element begins a row, so vectors are aligned as in any row.

#include "passes/plan/group.h"

int64_t slice_start(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    const Type *outer = g->node[d->arg[0]].type;
    int64_t start = 0, stride = 1;
    for (int i = outer->rank - 1; i >= 0; i--) {
        start += stride * node_ints(d, ATTR_low, i, 0);
        stride *= outer->dim[i];
    }
    return start;
}

bool slice_takes_index(const Graph *g, NodeId n) {
    const Node *d = &g->node[n];
    if (d->op != OP_slice)
        return false;
    const Type *outer = g->node[d->arg[0]].type;
    int last = outer->rank - 1, axes = 0;
    for (int i = 0; i < last; i++) {
        if (d->type->dim[i] != outer->dim[i] && d->type->dim[i] != 1)
            return false;
        axes += d->type->dim[i] != outer->dim[i];
    }
    return axes == 1 && d->type->dim[last] == outer->dim[last];
}
