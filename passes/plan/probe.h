// Probe: the value of an expression of a group at a few points.
#ifndef PASSES_PLAN_PROBE_H
#define PASSES_PLAN_PROBE_H

#include "ir/ir.h"

enum { PROBE_POINTS = 8 };

// A tensor and the value of one element of it at each point.
typedef struct {
    NodeId node;
    double at[PROBE_POINTS];
} Probe;

// Computes an element of node n of group k from those of stored tensors, in
// double.  false if n needs other elements of the given tensors, or another
// tensor.
bool probe_eval(const Graph *g, int k, NodeId n, const Probe *given, int count,
                double out[PROBE_POINTS]);

// Whether two lists of values are the same but for rounding of constants.
bool probe_equal(const double *a, const double *b);

#endif
