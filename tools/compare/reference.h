// The reference of a comparison: the values of rows after a step, in double.
//
// The reference of a tensor is the plan of a variant, evaluated in double; that
// of a state is the model, before any pass has rewritten it.
#ifndef TOOLS_REFERENCE_H
#define TOOLS_REFERENCE_H

#include "tools/compare/verdict.h"

// The assignment to a state, or NO_NODE.
NodeId assignment_of(const Graph *g, const char *name);

// Receives the reference of row i, and the value to hold it against.
typedef void RowSeen(void *whose, int i, const double *value,
                     const double *beside);

// Rows from `first` on, each as soon as its value is known, since all values of
// a step take gigabytes; beside them the model's value of states, and NULL for
// all others.
void rows_reference(const Variant *variant, const Rows *rows, int first,
                    RowSeen *seen, void *whose);

// The rows with each operation rounded, beside their reference.
void rows_rounded(const Variant *variant, const Rows *rows, const bool *row,
                  RowSeen *seen, void *whose);

// States of the model with random roundings in double, by the model and by the
// plan, each with the value without them.
void rows_decided(const Variant *variant, const Rows *rows, const bool *row,
                  uint32_t seed, RowSeen *seen, void *whose);

// States by the model with random roundings of so many units, drawn by the
// seed, and the value without them.
void rows_disturbed(const Variant *variant, const Rows *rows, const bool *row,
                    double units, uint32_t seed, RowSeen *seen, void *whose);

#endif
