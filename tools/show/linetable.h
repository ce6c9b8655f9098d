// Line table: from machine code back to the model file.
#ifndef TOOLS_LINETABLE_H
#define TOOLS_LINETABLE_H

#include "base/source.h"
#include "base/text.h"

#include <stdbool.h>

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
