// Tile fusions: contractions that one tile kernel can compute together with the
// kernel behind it, its epilogue.
//
// A tile kernel computes a tile of the result in registers and applies the
// epilogue's operations to it there.  Like a library fusion, it follows from
// the groups and changes none of them: a device launches the tile kernel, or
// the library call and the kernel, and one memory plan fits both ways.
#ifndef PASSES_PLAN_TILE_FUSION_H
#define PASSES_PLAN_TILE_FUSION_H

#include "passes/plan/library_fusion.h"
#include "passes/plan/merged_launch.h"

typedef struct {
    int call;      // which group calls the library
    int kernel;    // which group is the epilogue; -1: none
    bool stores;   // it also stores the call's result, which others read
    int64_t bytes; // not read or written when it is taken
    bool fused;    // the call or the epilogue can be part of a library fusion
    bool taken;    // by the plan's device, see tools/tile.c
} TileFusion;

typedef struct {
    TileFusion *fusion; // in the order of their calls
    int count;
} TileFusions;

// The result of a contraction as `batch` matrices, and the extents of a tensor
// that broadcasts to it: of each of the three, whole or 1.
typedef struct {
    int64_t batch, rows, columns;
} TileSpace;

TileSpace tile_space(const Graph *g, NodeId call);
bool tile_extents(const TileSpace *s, Type t, bool whole[3]);

// The fusions of a graph whose activations have 16 bits, none of another.
TileFusions graph_tile_fusions(const Graph *g, const LibraryFusions *r,
                               const MergedLaunches *j, Arena *a);

// The fusion that is taken and computes group k as its call or its epilogue, or
// NULL.
const TileFusion *tile_taken(const TileFusions *f, int k);

#endif
