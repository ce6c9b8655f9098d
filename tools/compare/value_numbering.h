// Value numbering: nodes of two graphs that compute the same expression of the
// same leaves, or a gradient of the same parameter.
#ifndef TOOLS_VALUE_NUMBERING_H
#define TOOLS_VALUE_NUMBERING_H

#include "ir/ir.h"

// For each node of g, an equal node among wanted[] of other, or NO_NODE.
NodeId *equal_nodes(Arena *a, const Graph *g, const Graph *other,
                    const bool *wanted);

#endif
