// Rewrites operations that neither a kernel nor a library can do.
#ifndef PASSES_FIT_H
#define PASSES_FIT_H

#include "ir/ir.h"

// The graph with every reduction over its last axis, over all axes before the
// last, or over everything, sums of rows of a matrix by a vector, and no
// library call on a constant; g itself where that is so already.
Graph *graph_fit(Graph *g, Arena *scratch);

#endif
