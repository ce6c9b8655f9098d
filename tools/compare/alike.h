// Value numbering: nodes of two graphs that compute the same expression of the
// same leaves, or a gradient of the same parameter.
#ifndef TOOLS_ALIKE_H
#define TOOLS_ALIKE_H

#include "ir/ir.h"

// For each node of g, an equal node among wanted[] of other, or NO_NODE.
NodeId *nodes_alike(Arena *a, const Graph *g, const Graph *other,
                    const bool *wanted);

#endif
