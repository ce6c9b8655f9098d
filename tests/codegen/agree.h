// Agreement: what a program's kernels compute against what its graph means.
#ifndef TESTS_CODEGEN_AGREE_H
#define TESTS_CODEGEN_AGREE_H

#include "frontend/frontend.h"
#include "passes/passes.h"

enum { WATCHED = 2 };

typedef struct {
    // A model, or a graph with name.ir, below the source folder; NULL: a random
    // graph.
    const char *model;
    const Setting *setting;
    int num_settings;
    DType storage; // what activations are on the host here
    int level;     // 0: a kernel for each operation
    int simt;   // 1: every CUDA thread exists; WATCHED: the race checker sees
                // each access too, and values are not compared
    bool reuse; // the real memory plan; only what is left at the end counts
    uint32_t seed; // of the random graph
} Case;

// Runs init, derive, train and eval once on the host device and compares
// every stored tensor with graph_eval.  NULL, or what differs.
const char *agree(Arena *a, const Case *c);

// Runs them in faithful mode with each launch alone, and with those joined that
// may be.  NULL, or where memory differs afterwards.
const char *agree_joined(Arena *a, const Case *c);

#endif
