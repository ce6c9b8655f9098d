// Machine code: what NVRTC, where it is installed, makes of kernels.
#ifndef TOOLS_MACHINE_H
#define TOOLS_MACHINE_H

#include "base/arena.h"
#include "base/text.h"

#include <stdbool.h>

typedef struct Machine Machine;

// For compute capability sm, as 90, first; others may follow.  NULL where NVRTC
// cannot be opened, with a sentence in *why.  What is compiled is kept in the
// user's cache.
Machine *machine_open(Arena *a, int sm, const char **why);
void machine_close(Machine *m);
const char *machine_version(const Machine *m); // "NVRTC 13.0"

// Compiles for compute capability sm: to assembly or to machine code,
// with a table of the text's lines or without.  NULL, and why not, when that
// fails.
typedef enum { PTX, CUBIN } MachineForm;
const char *machine_code(Machine *m, const char *text, int sm, bool lines,
                         MachineForm form, size_t *length, const char **why);

// What a kernel takes of a GPU.
typedef struct {
    int registers; // of a thread; 0: not known
    int spills;    // bytes stored to memory and loaded, of a thread
    int stack, shared;
} Resources;

// What each of the kernels in a text takes, by its name.
bool machine_resources(Machine *m, const char *text, int sm, int count,
                       const char *const *name, Resources *out,
                       const char **why);

#endif
