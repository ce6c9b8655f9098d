// Repro: a program of one kernel and its inputs.
#ifndef TOOLS_REPRO_H
#define TOOLS_REPRO_H

#include "tools/compare/variant.h"

// Writes kernel.c and kernel.bin into a folder: the launch of the host plan
// that makes node n, its inputs, and its expected outputs.  Returns an exit
// status, after a message if it failed or a library call makes n.
int repro_write(Arena *a, const Arguments *arguments, const Variant *v,
                NodeId n, const char *folder);

#endif
