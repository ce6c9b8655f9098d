// Parts of a training step that it can do without when only its time counts.
#ifndef TOOLS_PARTS_H
#define TOOLS_PARTS_H

#include "ir/program.h"

// Loading is left to the trainer, updates to the passes; the others are taken
// out of the graphs.
typedef enum {
    PART_NONE,
    PART_LOADING,
    PART_AUGMENTATION,
    PART_NORMS, // and activations
    PART_UPDATES,
    NUM_PARTS
} Part;

extern const char *const part_name[NUM_PARTS];

// Takes a part out of what trains; false: there is none of it.
bool part_remove(Program *p, Part part);

#endif
