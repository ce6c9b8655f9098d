// Noise: how far from right values are when roundings fall at random.
#ifndef IR_NOISE_H
#define IR_NOISE_H

#include "ir/ir.h"

// The value of every node of g, where each that is rounded when it is computed
// is off by as much, drawn for each element.  leaf is as for graph_eval, and
// value what g is without that.  With squares the variance of a convolution is
// off by what a sum of squares in f32 loses.
double **noise_eval(const Graph *g, Arena *a, double *const *leaf,
                    double *const *value, bool squares, uint32_t seed);

#endif
