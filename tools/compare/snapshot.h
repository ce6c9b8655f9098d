// What a trainer wrote about a step that was looked at:
// runtime/watch/snapshot.c.
#ifndef TOOLS_SNAPSHOT_H
#define TOOLS_SNAPSHOT_H

#include "passes/plan/plan.h"

// Bytes as memory held them, by node of the step's graph; NULL where there are
// none.
typedef struct {
    const Step *step;
    void **before;   // inputs, params and states
    void **found;    // what launches left
    void **after;    // params and states
    int passed_over; // tensors that launches left, and that are not read
    const Plan *plan;
    const struct Foreign *foreign; // states of other steps, before this one
} Snapshot;

// Reads the file of a trainer that has this plan: NULL, or what is wrong.  Of a
// step beside another, which may be large, only what both leave is read.
const char *snapshot_read(Arena *a, const char *path, const Plan *plan,
                          const Snapshot *beside, Snapshot *out);

// The numbers that such bytes of node n are; NULL: there are none.
double *snapshot_numbers(Arena *a, const Snapshot *s, NodeId n,
                         const void *bytes);

// Whether none of them is infinite, and all are numbers.
bool numbers_finite(const double *x, int64_t count);

// Those of the input, parameter or state of that name before the step, which
// may be one that only other steps have, as weights whose copies this one
// reads.
double *snapshot_before(Arena *a, const Snapshot *s, const char *name);

#endif
