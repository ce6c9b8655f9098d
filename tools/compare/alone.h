// A kernel judged alone: by what it really read.
#ifndef TOOLS_ALONE_H
#define TOOLS_ALONE_H

#include "tools/compare/snapshot.h"

typedef enum { ALONE_UNKNOWN, ALONE_RIGHT, ALONE_WRONG } Alone;

// Verdicts about the launches of a snapshot.
typedef struct Alones Alones;

Alones *alones_new(Arena *a, const Snapshot *s);

// Whether what a launch left in node n, or an assignment in its state, is what
// its inputs make of it, but for one rounding.  Unknown: an input is not in the
// snapshot.  A launch is evaluated when it is first asked about.
Alone node_alone(Alones *all, NodeId n);

// What its inputs make of node n, in double; NULL: unknown.
const double *node_meant(Arena *a, const Snapshot *s, NodeId n);

#endif
