// Random graphs, for properties that every graph must keep.
#ifndef TESTS_GRAPHS_GRAPHS_H
#define TESTS_GRAPHS_GRAPHS_H

#include "ir/ir.h"

// A valid, primitive and typed graph: images, vectors and rows through
// pointwise operations, reductions over any axes, windows, moves, library
// calls and updates, in so many steps.  The same for the same seed.  Every
// value that nothing else uses is an output.
Graph *random_graph(Arena *a, uint32_t seed, int steps);

// What random programs are like.
typedef struct {
    int steps;
    int64_t max_elements; // of a node
    bool source;          // as from the front end, with a loss and optimizers
    bool vanishes;        // a dimension may be 0
} Habit;

// As random_graph, of any habit.
Graph *random_graph_of(Arena *a, uint32_t seed, const Habit *habit);

// How many a test looks at.  Each is a process of its own, which is slow under
// AddressSanitizer.
#ifdef __SANITIZE_ADDRESS__
enum { NUM_GRAPHS = 10 };
#else
enum { NUM_GRAPHS = 60 };
#endif

#endif
