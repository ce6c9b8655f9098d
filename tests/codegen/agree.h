// Agreement: what a program's kernels compute against what its graph means.
#ifndef TESTS_CODEGEN_AGREE_H
#define TESTS_CODEGEN_AGREE_H

#include "frontend/frontend.h"
#include "passes/passes.h"

// How kernels run.
typedef enum {
    FAST,     // blocks are loops on the host
    FAITHFUL, // every CUDA thread exists
    WATCHED,  // and the race checker sees each access; values are not compared
    TILED,    // fast, and contractions are tile kernels with the meaning of
              // runtime/prelude/tile
    ON_GPU    // GPU 0, where library calls do nothing else on the way
} How;

typedef struct {
    const char *model; // or a graph with name.ir, below the source folder
    const Setting *setting;
    int num_settings;
    DType storage; // what activations are here
    int level;     // 0: a kernel for each operation
    How how;
    bool reuse; // the real memory plan; only what is left at the end counts
} Case;

// Multiprocessors of the GPU that cases are planned for; 0: the usual.
extern int agree_multiprocessors;

// Runs init, derive, train and eval once on the host or a GPU and compares
// every stored tensor with graph_eval.  NULL, or what differs.
const char *agree(Arena *a, const Case *c);

// The same, and compares sums of the first step's outputs with those that a
// file below the source folder has (tests/pytorch/contractions.py).
const char *agree_sums(Arena *a, const Case *c, const char *file);

// Runs them in faithful mode with each launch alone, and with those merged that
// may be.  NULL, or where memory differs afterwards.
const char *agree_merged(Arena *a, const Case *c);

#endif
