// Library: the header of a model's library.
#ifndef TOOLS_LIBRARY_H
#define TOOLS_LIBRARY_H

#include "tools/tools.h"

// The name that the functions of the library at a path begin with: its base
// name without lib, as a C identifier.
const char *library_name(Arena *a, const char *path);

// Whether the plan's contractions are few and plain enough for the runtime's
// own functions.
bool library_is_small(const Plan *plan);

// The header of the library of that name.
Text library_header(Arena *a, const Program *p, const Plan *plan,
                    const char *name);

#endif
