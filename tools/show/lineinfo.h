// Line information: from machine code back to the model file.
#ifndef TOOLS_LINEINFO_H
#define TOOLS_LINEINFO_H

#include "base/source.h"
#include "base/text.h"
#include "passes/plan/plan.h"

// ---- lineinfo.c ----

// The kernels' text with directives that say which line of the model each
// statement is from; name is the text's own file.
Text lineinfo_add(Arena *a, const Plan *plan, const char *name,
                  const Text *kernels);

// ---- linetable.c ----

// Whether a place in that file is the prelude's, and says nothing of a kernel.
bool file_is_header(const char *path);

// What a file is called that machine code names by a path: as it is among the
// sources, which end with NULL, or without its folders.
const char *place_file(const Source *const *source, const char *path);

// Writes for each kernel of an assembly text how many instructions each line
// of these files made, by the table of lines that NVRTC wrote.
void linetable_print(Arena *a, Text *t, const char *ptx,
                     const Source *const *source);

#endif
