// Legalization: rewrites operations that neither a kernel nor a library has.
#ifndef PASSES_LEGALIZE_H
#define PASSES_LEGALIZE_H

#include "ir/ir.h"

// The same values, computed by operations that kernels and libraries have:
//
// - Reductions are over the last axis, all axes before it, or all axes.
// - gather_grad adds rows of a matrix by a vector of indices.
// - No operand of a library call is a constant.
//
// Returns g itself if it is legal already.
Graph *graph_legalize(Graph *g, Arena *scratch);

#endif
