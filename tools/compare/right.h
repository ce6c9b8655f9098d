// What a step should leave in rows, in double.
//
// Right is what the plan of a side comes to.  What is left in states is right
// if it is what the model means, before any pass has rewritten it.
#ifndef TOOLS_RIGHT_H
#define TOOLS_RIGHT_H

#include "tools/compare/verdict.h"

// The assignment to the state of that name, or NO_NODE.
NodeId assignment_of(const Graph *g, const char *name);

// Is shown what row i comes to, and what that is held against.
typedef void RowSeen(void *whose, int i, const double *value,
                     const double *beside);

// Rows from `first` on, each as soon as its value is there, as all values of a
// step take gigabytes; with the first, beside what the model means by states,
// and NULL for all others.
void rows_right(const Side *side, const Rows *rows, int first, RowSeen *seen,
                void *whose);

// Those rows with each operation rounded, beside what is right.
void rows_rounded(const Side *side, const Rows *rows, const bool *row,
                  RowSeen *seen, void *whose);

// Rows that are states of the model, with roundings of double at random as the
// model has them and as the plan does, each beside what that is without.
void rows_decided(const Side *side, const Rows *rows, const bool *row,
                  uint32_t seed, RowSeen *seen, void *whose);

// States among those rows as the model has them with roundings of so many units
// at random, drawn by the seed, beside what it means by them.
void rows_disturbed(const Side *side, const Rows *rows, const bool *row,
                    double units, uint32_t seed, RowSeen *seen, void *whose);

#endif
