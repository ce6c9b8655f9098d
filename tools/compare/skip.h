// Steps that are skipped because a gradient in 16 bits overflowed.
#ifndef TOOLS_SKIP_H
#define TOOLS_SKIP_H

#include "tools/compare/snapshot.h"

// Whether the step beside `start`, which has all that both began with, was
// skipped; it may be `start` itself.
bool step_skipped(const Snapshot *start, const Snapshot *s);

// Whether a skipped step decides about what a state of this name and kind, or a
// parameter, is left with.
bool skip_decides(const char *name, const char *kind);

// The step of the model before any pass that decides: one that leaves what it
// must where a gradient is no finite number, given the leaves.
const Graph *step_deciding(const Graph *g, double *const *leaf);

#endif
