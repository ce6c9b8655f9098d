// A kernel judged alone: by what it really read.
#ifndef TOOLS_ALONE_H
#define TOOLS_ALONE_H

#include "tools/compare/snapshot.h"

typedef enum { ALONE_RIGHT, ALONE_WRONG, ALONE_UNKNOWN } Alone;

// Whether what a launch left in node n, or an assignment in its state, is what
// its inputs make of it, but for one rounding.  Unknown: an input is not in the
// snapshot.
Alone node_alone(const Snapshot *s, NodeId n);

// What its inputs make of node n, in double; NULL: unknown.
const double *node_meant(Arena *a, const Snapshot *s, NodeId n);

#endif
