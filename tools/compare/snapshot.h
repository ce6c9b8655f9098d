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
    int passed_over; // tensors that launches left, and that are not read
} Snapshot;

// Reads the file of a trainer that has this plan: NULL, or what is wrong.  Of a
// step beside another, which may be large, only what both leave is read.
const char *snapshot_read(Arena *a, const char *path, const Plan *plan,
                          const Snapshot *beside, Snapshot *out);

#endif
