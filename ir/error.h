// Error: how far numbers are from right, and how far they may be.
#ifndef IR_ERROR_H
#define IR_ERROR_H

#include "ir/ir.h"

// The root mean square of differences, and of numbers.
double error_rms(const double *x, const double *y, int64_t count);
double error_size(const double *x, int64_t count);

// What a tensor of a fused plan may be off by whose unfused plan is off by so
// much, with activations kept in `storage`: docs/numerics.md.
double error_allowed(Type type, DType storage, double unfused,
                     const double *right);

// What one kernel alone may be off by, relative to the size of what is right.
double error_alone(DType storage);

// Of so many whole numbers, how many may be others: where two values of a
// window are all but equal, either place may win.  Few are compared exactly.
int64_t error_places(int64_t count, DType storage);

// Where terms cancel, a sum is no more exact than they are: the root mean
// square of what it would be if none did, for a sum; 0 for other nodes.
double error_terms(const Graph *g, NodeId n, double *const *value);

#endif
