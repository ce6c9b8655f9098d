// Values that all batches of an evaluation share.
#ifndef PASSES_BATCH_INVARIANT_H
#define PASSES_BATCH_INVARIANT_H

#include "ir/ir.h"

// Whether g runs a batch of evaluation or prediction.
bool is_evaluation(const Graph *g);

// Whether each node has the same value in all batches.
bool *find_invariant(const Graph *g, Arena *scratch);

#endif
