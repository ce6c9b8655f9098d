// Rematerialization: a step as values that launches write and read, and the
// choice of values to recompute.
#ifndef PASSES_REMATERIALIZE_H
#define PASSES_REMATERIALIZE_H

#include "passes/plan/group.h"

// A buffer that a launch writes.
typedef struct {
    NodeId node;
    int def;               // the launch that writes it
    int last_forward_use;  // the last launch before the split that reads it, or
                           // -1
    bool used_after_split; // something after the split reads it, or it is an
                           // output
    bool result;       // it is an output
    bool recomputable; // it can be computed a second time
    bool calls;        // ... which takes a library call
    int64_t bytes, cost; // cost of recomputing it: bytes moved, and flops in
                         // the time of bytes
    int num_operands;
    const int *operand; // values that recomputing it reads
} Value;

typedef struct {
    const Graph *g;
    Arena *arena;
    Group *group;
    int count;
    int split;  // the first launch of the backward pass; count: there is none
    int *value_of; // of each node, its value or -1
    Value *value;
    int num_values;
} Liveness;

// A launch of the step, or a recomputed value.
typedef struct {
    int group, value; // one of them is -1
} ScheduleEntry;

typedef struct {
    int64_t peak; // the largest sum of values that are live at once
    int64_t cost; // of recomputing values
    ScheduleEntry *entry;
    int num_entries;
} Simulation;

// ---- liveness.c ----

// Which nodes of the group node n of it is computed from, and n; of first .. n.
bool *group_own(const Graph *g, const Group *group, NodeId n, Arena *a);

Liveness liveness_of(const Graph *g, Arena *a);

// The step with the dropped values freed after their last use in the forward
// pass, and recomputed where the backward pass first needs them.  The inputs of
// that live until then, or are recomputed before it if they are dropped.
Simulation liveness_simulate(const Liveness *l, const bool *dropped, Arena *a);

// ---- rematerialize_choose.c ----

// Which values to drop so that no more than `budget` bytes are live at once, at
// the least cost that is found; those that come nearest where none fits, and
// then *fits becomes false: a smaller budget gives the same.  budget 0: all
// values that no library call makes, where that saves something.
bool *rematerialize_choose(const Liveness *l, int64_t budget, bool *fits,
                           Arena *a);

// ---- rematerialize_build.c ----

// The graph with copies of the launches that compute dropped values.
Graph *rematerialize_build(const Liveness *l, const bool *dropped, Arena *a);

#endif
