// Embed: machine code and assembly for a trainer, made when it is built.
#ifndef TOOLS_EMBED_H
#define TOOLS_EMBED_H

#include "tools/trainer.h"

// Whether NVRTC can compile for each GPU of --target; a message if not.
bool embed_wanted(const Arguments *arguments, int *status);

// The architectures of --target that tile kernels can be for.
int embed_tile_archs(Arena *a, const Arguments *arguments, int **arch);

// Makes the code of a trainer's kernels and tile kernels for each architecture
// of --target, in the runtime's format.  False, after a message and with
// *status, if it cannot be made.
bool embed_make(Arena *a, const Arguments *arguments, TrainerText *t,
                int *status);

// Adds code of a form (RtCodeForm) in that format.
void embed_add(Text *out, int arch, int form, const char *code, size_t length);

#endif
