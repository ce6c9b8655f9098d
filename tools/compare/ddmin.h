// Delta debugging (Zeller and Hildebrandt, ddmin): the parts of a model file
// that can be left out, or be smaller.
#ifndef TOOLS_DDMIN_H
#define TOOLS_DDMIN_H

#include "base/arena.h"

// Bytes start .. end-1 of a text, and their replacement.
typedef struct {
    size_t start, end;
    const char *with;
} Cut;

// All cuts of a text, the longest first.
Cut *ddmin_cuts(Arena *a, const char *text, int *count);

// The text after a cut.
const char *ddmin_cut(Arena *a, const char *text, const Cut *cut);

#endif
