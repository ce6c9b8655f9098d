// What can be taken out of a model file, or made smaller in it.
#ifndef TOOLS_CUTS_H
#define TOOLS_CUTS_H

#include "base/arena.h"

// Bytes start .. end-1 of a text, and what comes in their place.
typedef struct {
    size_t start, end;
    const char *with;
} Cut;

// The cuts that a text offers, the longest first.
Cut *cuts_of(Arena *a, const char *text, int *count);

// The text after a cut.
const char *cut_make(Arena *a, const char *text, const Cut *cut);

#endif
