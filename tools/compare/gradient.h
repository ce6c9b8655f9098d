// Gradient: finds the stored tensors that are gradients of parameters.
#ifndef TOOLS_GRADIENT_H
#define TOOLS_GRADIENT_H

#include "ir/ir.h"

// A stored tensor from which the update of a parameter is computed.
typedef struct {
    const char *param;
    NodeId node;
} Gradient;

// The gradients of a planned graph; for one parameter, the nearest to its
// update comes first.
Gradient *gradients_of(Arena *a, const Graph *g, int *count);

#endif
