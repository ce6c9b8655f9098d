// Parts: removes parts of a training step, to measure their time.
#ifndef TOOLS_PARTS_H
#define TOOLS_PARTS_H

#include "ir/program.h"

// The trainer skips loading and passes skip updates; the others are removed
// from the graphs.
typedef enum {
    PART_NONE,
    PART_LOADING,
    PART_AUGMENTATION,
    PART_NORMS, // and activations
    PART_UPDATES,
    NUM_PARTS
} Part;

extern const char *const part_name[NUM_PARTS];

// Removes a part from the training steps; false if there is none.
bool part_remove(Program *p, Part part);

#endif
