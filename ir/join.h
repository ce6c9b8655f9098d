// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Joins: kernels that follow each other and may be one launch.
//
// What lies between two library calls, as the statistics of a batch_norm and
// its application, can be one cooperative launch with a barrier of the whole
// grid between the kernels, which then are its phases.  Like a library fusion,
// a join is read off the groups and changes none of them: a device takes it or
// launches the kernels one by one, and both ways fit one memory plan.
#ifndef IR_JOIN_H
#define IR_JOIN_H

#include "ir/group.h"
#include "ir/library_fusion.h"
#include "ir/program.h"

enum {
    MOST_JOINED = 8,          // kernels of a join
    MOST_JOINED_POINTERS = 64 // parameters of a join, the barrier's included
};

// Groups first .. first + count - 1.
typedef struct {
    int first, count;
} Join;

// In their order; a join comes before those of its parts, which are for devices
// on which some of its kernels fusion.
typedef struct {
    Join *join;
    int count;
} Joins;

// Whether joins are looked for in such a step: in those that run often.
bool step_joins(StepKind kind);

Joins graph_joins(const Graph *g, const LibraryFusions *r, Arena *a);

// Which of them a device takes that takes these library fusions: those of
// kernels that are all launched, none of them twice.
bool *joins_taken(const Joins *j, const LibraryFusions *r, const bool *fused,
                  Arena *a);

// Launches that a device saves whose library fusions are those of compute
// capability sm, 0 for none.
int joins_saving(const Joins *j, const LibraryFusions *r, int sm);

// Where the barrier of a graph's joined launches counts: the last ticket.
int join_ticket(const Graph *g);

#endif
