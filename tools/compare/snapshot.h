// Snapshot: a recorded step, written by runtime/watch/snapshot.c.
#ifndef TOOLS_SNAPSHOT_H
#define TOOLS_SNAPSHOT_H

#include "passes/plan/plan.h"

// Bytes of tensors by node of the step's graph; NULL if not recorded.
typedef struct {
    const Step *step;
    void **before;   // inputs, params and states
    void **found;    // results of launches
    void **after;    // params and states
    int passed_over; // results that are not loaded
    const Plan *plan;
    const struct Foreign *foreign; // states of other steps, before this one
} Snapshot;

// Reads the file of a trainer with this plan.  Returns NULL, or the error.
// Beside another step only the tensors that both store are loaded.
const char *snapshot_read(Arena *a, const char *path, const Plan *plan,
                          const Snapshot *beside, Snapshot *out);

// Converts such bytes of node n to double; NULL if there are none.
double *snapshot_numbers(Arena *a, const Snapshot *s, NodeId n,
                         const void *bytes);

// Whether all numbers are finite.
bool numbers_finite(const double *x, int64_t count);

// The value of an input, parameter or state before the step.  The state may
// belong to other steps only, such as weights whose copies this one reads.
double *snapshot_before(Arena *a, const Snapshot *s, const char *name);

#endif
