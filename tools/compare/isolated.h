// Isolated replay: one kernel is evaluated in double on its real inputs.
#ifndef TOOLS_ISOLATED_H
#define TOOLS_ISOLATED_H

#include "tools/compare/snapshot.h"

typedef enum { ISOLATED_UNKNOWN, ISOLATED_RIGHT, ISOLATED_WRONG } Isolated;

// Verdicts about the launches of a snapshot.
typedef struct IsolatedReplay IsolatedReplay;

IsolatedReplay *isolated_replay_new(Arena *a, const Snapshot *s);

// Whether the value that a launch stored in node n, or an assignment in its
// state, follows from its inputs, up to one rounding.  Unknown: an input is not
// in the snapshot.  Evaluates a launch on its first query.
Isolated isolated_replay(IsolatedReplay *all, NodeId n);

// Node n in double, from the real inputs of its kernel; NULL: unknown.
const double *node_meant(Arena *a, const Snapshot *s, NodeId n);

#endif
