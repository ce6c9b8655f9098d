// Line table: maps machine code to lines of the model file.
#ifndef TOOLS_LINETABLE_H
#define TOOLS_LINETABLE_H

#include "base/source.h"
#include "base/text.h"

#include <stdbool.h>

// Whether a file is a header, such as the prelude, and not a kernel's.
bool file_is_header(const char *path);

// The name of a file that machine code names by a path: that in the sources,
// which end with NULL, or the path without folders.
const char *place_file(const Source *const *source, const char *path);

// Writes the number of instructions of each line for each kernel of a PTX text,
// from NVRTC's table of lines.
void linetable_print(Arena *a, Text *t, const char *ptx,
                     const Source *const *source);

#endif
