// Tensors: numbers in a device's memory, and those that leaves start with.
#ifndef TESTS_CODEGEN_TENSORS_H
#define TESTS_CODEGEN_TENSORS_H

#include "ir/ir.h"
#include "runtime/device.h"

// The elements of a stored node of a planned graph.
double *tensor_read(RtDevice *d, Arena *a, const Graph *g, NodeId n);
void tensor_write(RtDevice *d, Arena *a, const Graph *g, NodeId n,
                  const double *value);

// The elements of an input, param or state: the same for the same name and
// seed.  Labels are below `classes`.
double *tensor_leaf(const Graph *g, Arena *a, NodeId n, uint32_t seed,
                    int classes);

#endif
