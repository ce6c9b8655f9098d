// Embed: machine code and assembly for a trainer, made when it is built.
#ifndef TOOLS_EMBED_H
#define TOOLS_EMBED_H

#include "tools/tools.h"

// Whether --target names what NVRTC can compile for; a sentence where not.
bool embed_wanted(const Arguments *arguments, int *status);

// The code for each of --target's architectures, as the runtime reads it.
// False, with a sentence and *status, where it cannot be made.
bool embed_make(Arena *a, const Arguments *arguments, const Text *kernels,
                Text *out, int *status);

#endif
