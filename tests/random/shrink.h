// Shrink: the least of a graph that still fails.
#ifndef TESTS_RANDOM_SHRINK_H
#define TESTS_RANDOM_SHRINK_H

#include "tests/random/batch.h"

// Takes nodes away as long as the same comes of it.
Graph *shrink_graph(Arena *a, Graph *g, const Setup *s, Mode mode,
                    BatchResult result);

#endif
