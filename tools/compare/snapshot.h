// What a trainer wrote about a step that was looked at: runtime/snapshot.c.
#ifndef TOOLS_SNAPSHOT_H
#define TOOLS_SNAPSHOT_H

#include "ir/program.h"

// Bytes as memory held them, by node of the step's graph; NULL where there are
// none.
typedef struct {
    const Step *step;
    void **before;   // inputs, params and states
    void **found;    // what launches left
    void **after;    // params and states
    int passed_over; // tensors that launches left, and that are not read
} Snapshot;

// Reads the file of a trainer that has this plan: NULL, or what is wrong.  Of a
// step beside another, which may be large, only what both leave is read.
const char *snapshot_read(Arena *a, const char *path, const Plan *plan,
                          const Snapshot *beside, Snapshot *out);

// The numbers that such bytes of node n are; NULL: there are none.
double *snapshot_numbers(Arena *a, const Snapshot *s, NodeId n,
                         const void *bytes);

#endif
