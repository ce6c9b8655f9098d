// Tile: chooses the tile kernels of a plan, and compiles them.
#ifndef TOOLS_TILE_H
#define TOOLS_TILE_H

#include "runtime/machine_code.h"
#include "tools/device.h"
#include "tools/trainer.h"

// NVIDIA's compilers of tile kernels, all of one release.
typedef struct {
    RtTileCompiler *nvrtc;
    const char *version;  // "13.5"
    const char *tileiras; // its path
    const char *root;     // the folder of all
} TileToolchain;

// Finds them, with a folder for temporary files.  False, with a sentence in
// *why, if one is missing or of another release.
bool tile_toolchain(Arena *a, const char *folder, TileToolchain *out,
                    const char **why);

// Ranks the configurations of tile kernels for a GPU.
TileModel tile_model(const Device *d);

// Seconds of a contraction and the kernels around it on a GPU, as a library
// call and launches, and as a tile kernel: the roofline with the usual parts of
// the peaks.  Each operand that a prologue computes has an equal share of the
// time of its launch.  The time of a tile kernel is that of its best
// configuration for the first GPU for which they are ranked: its whole tiles,
// in waves of a block for each multiprocessor, or more if their warps are few.
typedef struct {
    double library, tile;
} TileTime;

TileTime tile_time(const Launches *l, const TileKernel *k, const Device *d);
// The same as if the kernel that computes an operand of windows were a
// prologue, in place of that kernel and the faster way without it.
TileTime tile_time_with_windows(const Launches *l, const TileKernel *k,
                                int operand, const Device *d);

// Whether --tile is for the host: it runs the text of tile kernels as C++.
bool tiles_on_host(const Arguments *arguments);

// Marks the tile fusions that --tile takes for the GPUs of --target, or of the
// plan for the host: all, none, or those that the estimate for the first GPU
// finds faster by TILE_GAIN or more, as nothing was measured.  Without a
// toolchain for the GPUs it takes none of these, and says so.  Returns the
// GPUs; for the host the one that is described.
#define TILE_GAIN 1.3
TileModels tiles_take(Arena *a, const Arguments *arguments, const Plan *gpu,
                      const Plan *host);

// Replaces the seconds of the launches of a step whose work tile kernels do
// that --tile=auto takes: those of the call, or of attention's kernel, are
// theirs.  Kernels that are then not merged have the gap of a launch.
void tile_seconds(Arena *a, const Launches *l, const Selected *selected,
                  double *seconds);

// ---- tile_frame.c ----

// Bytes of local memory of a thread: above 0, the kernel spills registers.
uint32_t tile_frame(const RtCode *cubin);

// ---- tile.c ----

// Compiles the tile kernels of a trainer for each architecture, as many at once
// as there are processors, and adds them to its code: of the ranked
// configurations the first ones that do not spill, as many as --tile-configs,
// or the one that spills least.  False, after a message, with *status.
bool tiles_embed(Arena *a, const Arguments *arguments, const TileTexts *tiles,
                 const int *arch, int num_archs, Text *code, int *status);

#endif
