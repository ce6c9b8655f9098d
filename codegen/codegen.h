// Codegen: a planned program becomes the source of its trainer.
#ifndef CODEGEN_CODEGEN_H
#define CODEGEN_CODEGEN_H

#include "codegen/cost.h"
#include "passes/plan/plan.h"

// A source file or a setting.
typedef struct {
    const char *name, *text;
} NamedText;

// Facts about the program that its plans lack.
typedef struct {
    const char *version;  // of sinter
    const char *base;     // file name without extension, for the #include
    uint64_t fingerprint; // of model and recipe
    bool lines;           // GPU code keeps a table of the kernels' lines
    bool embeds;          // the trainer carries GPU code, in base.bin
    bool graphs;          // and its graphs, in base.ir
    bool host_tiles;      // tile kernels are those of the plan for the host
    // The model file, its imports and the settings that override it.  A run's
    // folder has copies.
    const NamedText *source, *set;
    int num_sources, num_sets;
    const struct TileModels *tiles; // the GPUs of its tile kernels; NULL: one
                                    // that is not described
} CodegenOptions;

// ---- kernel.c ----

// The nodes in a kernel's names, such as v12: each once, in order of first
// appearance.  Launches that share a text correspond by position.
typedef struct {
    long *number;
    int count;
} Numbers;

// A pointer argument of a kernel.
typedef struct {
    NodeId node;      // NO_NODE: the arena itself
    NodeId slice;     // of node, which the kernel reads; NO_NODE: all of it
    int plus;         // offset in bytes
    const char *type; // its element type: "const act"
    const char *name;
} Parameter;

// The byte offset of an argument in the arena as g plans it.
int64_t parameter_address(const Graph *g, const Parameter *p);

// A launch: a kernel, or a library call if text is NULL.  Its group belongs to
// the host's plan.
typedef struct Kernel {
    const Group *group;
    const char *name;    // "k03_batch_norm__layer1", "c02_conv__layer1"
    const char *text;    // the kernel and its tables
    int grid[NUM_PLANS]; // blocks
    int num_args;
    Parameter *arg;
    const char *heading;       // comment above the kernel
    struct Tree *tree;         // see kernel/tree.h; NULL for a call
    KernelCost cost;           // on a GPU
    double row_instructions;   // of a thread of one block, which has all rows
    Numbers numbers;           // empty until deduplicate.c compares the kernel
    struct Kernel *first;      // the first launch with its text; NULL before
    struct FamilyKernel *member; // of the first: see kernel/parametrize.h
    size_t comment;            // of the first: bytes of its leading comment
    size_t code;               // ... and of its tables: offset of the rest
    size_t entry; // offset of the launchable entry; the text between holds
                  // shared helpers
    size_t body;  // offset of the kernel's own statements
    struct MergedKernel *merged; // of the first: merges that end with it
    bool is_split;               // it has a function that merged launches call
} Kernel;

// The launches of a graph in order.  host and gpu plan the same graph for
// the two devices.  *number counts the names.
Kernel *codegen_kernels(const GraphPlan *host, const GraphPlan *gpu, Arena *a,
                        int *number);

// Appends the kernel IR of a launch; it must be a kernel.  See kernel/tree.h.
void codegen_kernel_ir(Text *t, const GraphPlan *host, const GraphPlan *gpu,
                       int launch, const char *name);

// ---- kernel/passes.c ----

// Name and purpose of the pass on kernel IR of that number; NULL past the
// last.
const char *codegen_pass(int i, const char **purpose);

// Reads kernels as kernel IR, runs a comma-separated list of passes on them and
// appends them to t.  Returns NULL, or why a kernel or the list is invalid.
const char *codegen_optimize(Arena *a, Text *t, const char *kernels,
                             const char *list);

// ---- deduplicate.c, merged_launches.c ----

// A candidate merged launch.
typedef struct MergedKernel {
    MergedLaunch launch;
    const Kernel *kernel;    // its first
    const char *name, *text; // text is NULL if an earlier one is equal
    size_t entry;            // offset of the launchable entry
    int num_args;
    const char **type; // pointee types of its arguments: each kernel's in turn,
                       // then the barrier's
    bool *read_only;   // of its arguments: no phase writes their memory
    int blocks;        // on the GPU
    struct MergedKernel *next; // next that ends with the same kernel
} MergedKernel;

// The launches of a step.
typedef struct {
    const GraphPlan *plan; // for the GPU
    Kernel *kernel;
    int count;
    MergedKernel *merged; // one for each merged launch of the plan
} Launches;

// The launches of each step of a plan.  host and gpu plan the same graphs.
Launches *codegen_launches(const Plan *host, const Plan *gpu, Arena *a);

// Whether others call the same function on the host, with other
// specialization constants.
bool kernel_in_family(const Kernel *k);

// ---- tile.c, tile_config.c ----

// A configuration of a tile kernel: how blocks and their loops divide its work.
// Attention has queries as rows, keys as columns, and a head's channels as
// depth.
typedef struct {
    int rows, columns;  // of the result's tile that a block computes: BM, BN
    int depth;          // elements of the reduced axis in a step of its loop
    int warps;          // of a block
    int parts;          // split-K: blocks that share the reduced axis
    int swizzle;        // rows of tiles that consecutive blocks visit column by
                        // column, for the L2 cache; 1: row by row
    int grid, sum_grid; // blocks; of NAME_sums, 0: there is none
    int64_t workspace;  // bytes
    // The work of all blocks: flops on whole tiles, and elements of each
    // operand that they load; with the tiles of a matrix in each direction, and
    // the matrices of a product, or taps that read the same operands.
    double flops, elements[TILE_OPERANDS];
    int64_t down, across, matrices, taps;
    KernelCost cost;  // instructions but for products, as of blocks of 256
    const char *text; // whole file
} TileConfig;

// The most configurations that a GPU's ranking has: some compile without spills
// where others do not.
enum { TILE_CANDIDATES = 8 };

// Configurations for a GPU, the fastest first by its estimate.
typedef struct {
    int count;
    int config[TILE_CANDIDATES];
    double seconds[TILE_CANDIDATES];
} TileRanking;

// A tile kernel.  Its arguments are the addresses of the call's two operands
// and result, those that its prologues and its pool use, those of the
// epilogue's kernel, then a workspace if it leaves partial sums.  Kernel
// NAME_sums, of the same text and arguments, then adds these in order.  The
// arguments of attention are those of the kernel that it replaces, then
// `number`.
typedef struct TileKernel {
    const TileFusion *fusion;
    const NodeId *read; // tensors of the prologues
    int num_reads;
    const char *name; // of the function
    const char *body; // without names, by which kernels are equal
    TileConfig *config;
    int num_configs;
    TileRanking *ranking;            // for each GPU
    int number;                      // attention's stream of random numbers
    const struct TileKernel *second; // launched next, or NULL: the gradients of
                                     // attention have two kernels
} TileKernel;

// A GPU for which configurations are ranked.
typedef struct TileModel {
    int capability; // 90
    int processors;
    const struct Device *device;
    // Seconds of a configuration, with those of its prologues and epilogue.
    double (*seconds)(const Launches *l, const TileKernel *k,
                      const TileConfig *c, const struct Device *d);
} TileModel;

typedef struct TileModels {
    const TileModel *model;
    int count; // 0: a GPU of capability 9.0 that is not described
} TileModels;

// The tile kernels of a step, one for each of its tile fusions.
TileKernel *codegen_tile_kernels(const Launches *l, const TileModels *models,
                                 Arena *a);

// Instructions of a kernel for each of so many elements, by its cost.
double tile_instructions(const Kernel *k, const Type *elements);
// A configuration with a prologue more, of so many for an operand's element.
TileConfig tile_with_prologue(TileConfig c, int operand, double instructions);

// Tile kernels that differ, in an arena.
typedef struct {
    Arena *arena;
    TileKernel *kernel;
    int count;
} TileTexts;

// The index of an equal kernel, or count.
int tile_equal(const TileKernel *list, int count, const TileKernel *k);
// The number of the code of a kernel's first configuration: those of the others
// have the next numbers.
int tile_code(const TileTexts *t, int kernel);
// "128x64x64, 8 warps, 4 parts, swizzle 8": the last two if there are several.
const char *tile_config_text(const TileConfig *c, Arena *a);

// ---- tile_host.c ----

// C++ of tile kernels with this type of activations for the host, which defines
// sinter_tiles (RtHostTile): of each kernel its first configuration.
void codegen_host_tiles(const TileTexts *tiles, DType act, Text *t);

// ---- embedded_graphs.c, program.c ----

// The graphs of the training steps, as a trainer carries them.
void codegen_graphs(const Plan *plan, Text *t);

// Writes the C file and the CUDA file of a trainer, and collects the tile
// kernels that the plan for the GPU takes, or that for the host.  All plans are
// of the same graphs.
void codegen_program(const Program *p, const Plan *const plan[NUM_PLANS],
                     const CodegenOptions *o, Text *c, Text *cu,
                     TileTexts *tiles);

#endif
