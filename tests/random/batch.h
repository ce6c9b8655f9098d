// Batch: trials that are compiled together, in a process of their own.
#ifndef TESTS_RANDOM_BATCH_H
#define TESTS_RANDOM_BATCH_H

#include "tests/random/trial.h"

// How kernels are compiled, and where they run.
typedef enum { MODE_FAST, MODE_FAITHFUL, MODE_GPU, MODE_TILED } Mode;

typedef enum {
    BATCH_GOOD,
    BATCH_WRONG,
    BATCH_UNCOMPILED,
    BATCH_DIED
} BatchResult;

// Runs the trials of some seeds, or of one graph with one setup, and prints
// what is wrong.
BatchResult batch_seeds(uint32_t first, int count, Mode mode, bool unfused,
                        Counts *counts);
BatchResult batch_graph(const Graph *g, const Setup *s, Mode mode,
                        Counts *counts, bool quiet);

#endif
