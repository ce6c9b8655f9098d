// Line information: from kernels to the model file.
#ifndef TOOLS_LINEINFO_H
#define TOOLS_LINEINFO_H

#include "base/text.h"
#include "passes/plan/plan.h"

// The kernels' text with directives that name the line of the model of each
// statement; name is the text's own file.
Text lineinfo_add(Arena *a, const Plan *plan, const char *name,
                  const Text *kernels);

#endif
