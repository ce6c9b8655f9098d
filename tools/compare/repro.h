// A kernel with what it read, as a program of its own.
#ifndef TOOLS_REPRO_H
#define TOOLS_REPRO_H

#include "tools/compare/side.h"

// Writes kernel.c and kernel.bin into a folder: the launch of the side's host
// plan that makes node n, with its inputs and what they should make of it.
// Returns an exit status; what went wrong, and that a library makes n, has been
// said.
int repro_write(Arena *a, const Arguments *arguments, const Side *s, NodeId n,
                const char *folder);

#endif
