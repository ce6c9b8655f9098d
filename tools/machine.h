// Machine code of kernels, compiled by NVRTC if it is installed.
#ifndef TOOLS_MACHINE_H
#define TOOLS_MACHINE_H

#include "base/arena.h"
#include "base/text.h"
#include "runtime/machine_code.h"

typedef struct Machine Machine;

// Opens NVRTC, first for compute capability sm, as 90; others may follow.
// NULL, with a sentence in *why, if it cannot be opened.  The user's cache
// keeps compiled code.
Machine *machine_open(Arena *a, int sm, const char **why);
void machine_close(Machine *m);
const char *machine_version(const Machine *m); // "NVRTC 13.0"

// Compiles for compute capability sm, to assembly or machine code, with or
// without a table of the text's lines.  NULL, with a sentence in *why, if that
// fails.
const char *machine_code(Machine *m, const char *text, int sm, bool lines,
                         RtCodeForm form, size_t *length, const char **why);

// Resources of a kernel on a GPU.
typedef struct {
    int registers; // of a thread; 0: not known
    int spills;    // bytes stored to memory and loaded, of a thread
    int stack, shared;
} Resources;

// Finds the resources of the named kernels of a text.
bool machine_resources(Machine *m, const char *text, int sm, int count,
                       const char *const *name, Resources *out,
                       const char **why);

#endif
