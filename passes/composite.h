// The parts of composite operations.  expand writes the forward nodes with
// them and gradients.c the backward ones; since graph_add returns a node that
// is there already, both share their common nodes.
#ifndef PASSES_COMPOSITE_H
#define PASSES_COMPOSITE_H

#include "ir/ir.h"

// Statistics over all axes but the last.
typedef struct {
    NodeId mean, istd; // istd: 1 / sqrt(var + eps)
    NodeId share;      // f32[]: 1 / the elements of each statistic
} Normalized;

// x as batch_norm d normalizes it.
Normalized composite_normalize(Graph *g, NodeId x, const Node *d);

// softmax over one axis: exp / sum, with shifted = x - max(x).
typedef struct {
    NodeId shifted, exp, sum;
} Exponents;

Exponents composite_exponents(Graph *g, NodeId x, int axis);

// f32 [M,K]: how much of each class a row is meant to be, from labels i32[M] or
// shares f32[M,K], of which `smoothing` is spread over all classes.
NodeId composite_target(Graph *g, NodeId logits, NodeId label,
                        double smoothing);

#endif
