// The schedule of a tile kernel: how blocks and loops cover a contraction, and
// the epilogue as kernel IR over tiles.  tile.c makes it from the graph,
// tile_print.c prints it as CUDA Tile C++.
#ifndef CODEGEN_TILE_H
#define CODEGEN_TILE_H

#include "codegen/emit.h"

// The tile of the result that a block computes, the part of the reduced axis
// that it reads at once, and its warps.  Powers of two.
typedef struct {
    int rows, columns, depth, warps;
} TileSizes;

// How rows of the first operand are read.
typedef enum {
    MATRIX_ROWS, // as tiles of a matrix
    WINDOW_TAPS, // gathered, with a loop over taps and blocks of channels
    WINDOW_FLAT, // gathered, with taps and channels as one axis, for few of
                 // them
    WINDOW_GRAD, // gathered from a result's gradient, which windows of the
                 // operand's gradient cover, as WINDOW_TAPS
    WEIGHT_GRAD, // the second operand is gathered; the reduced axis is pixels,
                 // and a matrix of the result a tap
} TileLoad;

// Windows of images [N,H,W,C]; pad: top and left.
typedef struct {
    int64_t n, h, w, c, r, s, oh, ow;
    int64_t stride[2], dilation[2], pad[2];
} TileWindow;

typedef struct {
    const char *name;
    TileSizes size;
    TileSpace space;
    TileLoad load;
    int64_t depth;     // of the reduced axis; with taps: channels
    bool ta, tb;       // a matrix is stored transposed
    TileWindow window; // of the others
    DType act;
    const Kernel *epilogue; // whose parameters it has; NULL: none
    Block statements;       // of the epilogue, from `acc` to the stores
    const char *heading;    // comment
} TileSchedule;

void tile_print(Text *t, const TileSchedule *s);

// Blocks of a launch.
int64_t tile_blocks(const TileSchedule *s);

#endif
