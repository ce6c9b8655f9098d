// Embed: machine code and assembly for a trainer, made when it is built.
#ifndef TOOLS_EMBED_H
#define TOOLS_EMBED_H

#include "tools/tools.h"

// Whether NVRTC can compile for each GPU of --target; a message if not.
bool embed_wanted(const Arguments *arguments, int *status);

// Makes the code for each architecture of --target, in the runtime's format.
// False, after a message and with *status, if it cannot be made.
bool embed_make(Arena *a, const Arguments *arguments, const Text *kernels,
                Text *out, int *status);

#endif
