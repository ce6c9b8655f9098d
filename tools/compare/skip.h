// Skip: steps that a trainer skips because a 16-bit gradient overflowed.
#ifndef TOOLS_SKIP_H
#define TOOLS_SKIP_H

#include "tools/compare/snapshot.h"

// Whether the step of s was skipped; `start` has the states before it, and may
// be s.
bool step_skipped(const Snapshot *start, const Snapshot *s);

// Whether skipping keeps the value of a state of this name and kind, or of a
// parameter.
bool skip_decides(const char *name, const char *kind);

// The model's step before any pass, with the rule for skipped steps, for these
// leaves.
const Graph *step_deciding(const Graph *g, double *const *leaf);

#endif
