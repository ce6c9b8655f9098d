// Memory: live ranges of a step's buffers, and the peak.
#ifndef TOOLS_MEMORY_H
#define TOOLS_MEMORY_H

#include "codegen/codegen.h"
#include "tools/show/show.h"

// ---- memory.c ----

void memory_json(Arena *a, Text *t, const Program *p, const Plan *plan,
                 const Step *step);

#endif
