// Access regions: the part of a tensor that a kernel touches.
#ifndef PASSES_PLAN_ACCESS_REGION_H
#define PASSES_PLAN_ACCESS_REGION_H

#include "passes/plan/group.h"

typedef struct AccessRegion {
    NodeId node; // an input of the group
    int64_t bytes;
    bool exact; // else the elements depend on numbers, or form no box: at most
                // so many bytes
} AccessRegion;

// The region that the group touches of each of its inputs, in the order of
// their nodes.  A library call touches all.
AccessRegion *group_regions(const Graph *g, const Group *group, Arena *a);

// The entry of an input.
const AccessRegion *region_find(const AccessRegion *region, int count,
                                NodeId n);

// Bytes that an assignment writes: zeros around a padded value stay.
int64_t assigned_bytes(const Graph *g, NodeId assign);

// The most bytes of its result that a scatter reads, since it adds to them: a
// row for each element of the index.  0 for other nodes.
int64_t scattered_bytes(const Graph *g, NodeId n);

// Bytes that a planned group reads and writes, of marked tensors only if marked
// is given.  A value that two phases read counts twice; the workspace does not
// count.
int64_t group_bytes(const Graph *g, const Group *group, const bool *marked);

#endif
