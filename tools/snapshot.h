// What a trainer wrote about a step that was looked at: runtime/snapshot.c.
#ifndef TOOLS_SNAPSHOT_H
#define TOOLS_SNAPSHOT_H

#include "ir/program.h"

// Numbers by node of the step's graph; NULL where there are none.
typedef struct {
    const Step *step;
    double **before; // inputs, params and states
    double **found;  // what launches left
    double **after;  // params and states
} Snapshot;

// Reads the file of a trainer that has this plan: NULL, or what is wrong.
const char *snapshot_read(Arena *a, const char *path, const Plan *plan,
                          Snapshot *out);

#endif
