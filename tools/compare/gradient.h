// Which of the tensors in memory are gradients of parameters.
#ifndef TOOLS_GRADIENT_H
#define TOOLS_GRADIENT_H

#include "ir/ir.h"

// A stored tensor that the update of a parameter is made from.
typedef struct {
    const char *param;
    NodeId node;
} Gradient;

// Those of a planned graph; of one parameter the nearest to its update first.
Gradient *gradients_of(Arena *a, const Graph *g, int *count);

#endif
