// The schedule of a tile kernel: how blocks and loops cover a contraction, and
// prologues and epilogue as kernel IR over tiles.  tile.c makes the schedule
// from the graph, tile_prologue.c and tile_epilogue.c the rest, tile_config.c
// chooses sizes, and tile_print.c prints all of it as CUDA Tile C++.
#ifndef CODEGEN_TILE_H
#define CODEGEN_TILE_H

#include "base/round_up.h"
#include "codegen/emit.h"

// The tile of the result that a block computes, BM x BN, the elements of the
// reduced axis in each step of its loop, BK, and its warps.  Powers of two.
typedef struct {
    int rows, columns, depth, warps;
} TileSizes;

// How rows of the first operand are read: as a matrix, or gathered (implicit
// GEMM).  A tap is a filter position.
typedef enum {
    MATRIX_ROWS,  // as tiles of a matrix
    WINDOW_TAPS,  // gathered, with a loop over taps and blocks of channels
    WINDOW_FLAT,  // gathered, with taps and channels as one axis, for few of
                  // them
    WINDOW_GRAD,  // dgrad: as WINDOW_TAPS, from the result's gradient with
                  // flipped filters
    STRIDED_GRAD, // strided dgrad: a matrix for each residue of a pixel's row
                  // and column modulo the strides, whose pixels have the same
                  // taps
    WEIGHT_GRAD,  // wgrad: the second operand is gathered; the reduced axis is
                  // pixels, and a matrix of the result a tap
} TileLoad;

// Windows of images [N,H,W,C]; pad: top and left.
typedef struct {
    int64_t n, h, w, c, r, s, oh, ow;
    int64_t stride[2], dilation[2], pad[2];
} TileWindow;

// A kernel that a tile kernel computes: of an operand, as a prologue, or of the
// pool of its result.
typedef struct {
    const Kernel *kernel; // NULL: there is none; an operand is in memory
    Type type;            // of the kernel's result
    bool *used;           // which parameters of the kernel it reads
    bool reads_rows, reads_pooled; // it reads tensors of its rows, pooled ones
    bool by_row;          // it reads tensors of its rows and one column
    Stmts statements;
    Stmts stores; // of the kernel's results, by blocks of the first columns
    const Expr *value;   // of the operand's elements
    double instructions; // of the kernel, for each of them
} TileFusedKernel;

typedef struct {
    const char *name;
    TileSizes size;
    TileSpace space; // of the result
    TileSpace cover; // the matrices that blocks cover: those of the result, or
                     // those of residues, whose rows are pixels
    TileLoad load;
    int64_t groups;    // of channels; a block has one
    bool splits;       // split-K: blocks may share the reduced axis
    int64_t parts;     // of the reduced axis; with several, one kernel stores
                       // their sums, and another adds these in order
    int64_t part;      // elements of one: whole steps
    int swizzle;       // see TileConfig
    int64_t depth;     // of the reduced axis; with taps: channels of a group
    bool ta, tb;       // a matrix is stored transposed
    TileWindow window; // of the others
    DType act;
    TileFusedKernel operand[TILE_OPERANDS];
    TilePool pool_windows; // of its result
    TileFusedKernel pool_kernel; // whose parameters it has
    const Kernel *epilogue; // whose parameters it has; NULL: none
    Stmts statements;       // of the epilogue, from `acc` to the stores
    double instructions;    // of the epilogue's and the pool's kernel, for each
                            // element of the result
    int slots;              // partial sums of a column; 0: it reduces nothing
    Stmts sums;             // of the kernel that adds them
    int values;             // variables that statements declare
    const char *heading;    // comment
} TileSchedule;

// ---- tile_print.c ----

void tile_print(Text *t, const TileSchedule *s);

// Tiles of the result, of which each has a block, or one for each part.
int64_t tile_count(const TileSchedule *s);
// Blocks of the kernel that adds partial sums, or 0; and bytes of these.
int64_t tile_sum_blocks(const TileSchedule *s);
int64_t tile_workspace(const TileSchedule *s);

// ---- tile_config.c ----

// The least power of two that is at least n, between two others.
int power_for(int64_t n, int least, int most);

// Sets the sizes of a schedule.
void tile_apply(TileSchedule *s, const TileConfig *c);

// Finds the configurations of kernel k of schedule s, without texts, and ranks
// them for each GPU.
void tile_configure(TileKernel *k, const TileSchedule *s, const Launches *l,
                    const TileModels *models, Arena *a);

// Configuration number i of attention for a GPU of a compute capability: the
// positions of the tiles over which a block iterates, and its warps.
enum { TILE_ATTENTION_SIZES = 4 };
TileSizes tile_attention_sizes(int capability, int i);

// Writes the candidates for a GPU, the best first; without rows there are no
// more.
typedef void TileCandidates(void *context, const TileModel *m,
                            TileConfig to[TILE_CANDIDATES]);

// Ranks the candidates for each GPU in their order; equal ones become one
// configuration of k.
void tile_rank(TileKernel *k, const Launches *l, const TileModels *models,
               TileCandidates *candidates, void *context, Arena *a);

// ---- tile_value.c ----

// Values that the column reductions of one tensor share: a block's rows of it,
// their sums, and the sums over all blocks.
typedef struct {
    const Expr *rows, *sum, *total;
} TileColumns;

// Emits the values of a kernel as tiles.  The extents of one are those of its
// tensor in a tile of rows and columns: of each of the two, whole or 1.
typedef struct TileValues {
    Emit emit; // for the expressions of operations
    Arena *a;
    const Graph *g;
    TileSchedule *s;
    const Kernel *kernel;     // whose operations they are
    const char *parameter;    // of the kernel: the name before its number
    const char *stem;         // of variables: the name before their number
    int *declared;            // variables with that stem
    TileFusedKernel *fused;   // that they compute; NULL: an epilogue's
    struct TileValues *image; // of pooled values: those of the whole result
    const Expr *pixel[3];  // row and column of the pooled pixel that it reads,
                           // and whether there is one; NULL: the one that has
                           // the operand's pixel
    NodeId call;           // whose result they begin with, or NO_NODE
    const char *extent[2]; // names of whole extents
    void (*extents)(const struct TileValues *v, NodeId n, bool whole[2]);
    const Expr *(*load)(struct TileValues *v, NodeId n);
    // The value of an operation that is not pointwise; it returns NULL for
    // another.  NULL: there is none.
    const Expr *(*compute)(struct TileValues *v, NodeId n);
    Stmts *to;          // which statements are added to
    const Expr **value; // of each node that has one
    TileColumns *columns; // of each slot of a sum; NULL: none is reduced
} TileValues;

// Without what differs between prologues, epilogues and attention.  s is NULL
// for attention, whose operands have variables of their own.
TileValues tile_values(TileSchedule *s, const Launches *l, const Kernel *k,
                       const Group *group, Arena *a);

const Expr *tile_value(TileValues *v, NodeId n);
const Expr *tile_declare(TileValues *v, NodeId n, const Expr *x);
const Expr *tile_declare_as(TileValues *v, NodeId n, const char *name,
                            const Expr *x);
// The elements of n, which x has loaded, as f32.
const Expr *tile_declare_loaded(TileValues *v, NodeId n, const Expr *x);
void tile_statement(TileValues *v, Stmt added);

const Expr *tile_name(const TileValues *v, const char *stem, int number);
const Expr *tile_call(const TileValues *v, const char *name, int count,
                      const Expr *const *arg);
const Expr *tile_call_with(const TileValues *v, const char *name,
                           const Expr *x);
// The parameter of the kernel with the address of n.
const Expr *tile_parameter(TileValues *v, NodeId n);
// The elements of unpack n, which are at so many elements from its operand's
// first.
const Expr *tile_bits(TileValues *v, NodeId n, const Expr *offset,
                      const Expr *mask);
// Whether n has the rows and the columns of one matrix of a space, or one value
// for all of them.
void tile_extents_in(const TileValues *v, const TileSpace *s, NodeId n,
                     bool whole[2]);
// Extents as template arguments: "BM, 1".
const char *tile_text(const TileValues *v, const bool whole[2]);

// ---- tile_prologue.c ----

// Computes an operand, 0 or 1, as kernel number `kernel` of the step computes
// its result n.
void tile_prologue(TileSchedule *s, const Launches *l, int kernel, int operand,
                   NodeId n, Arena *a);

// ---- tile_reduction.c ----

// Leaves a block's partial sums of column reduction n, and adds those of all
// blocks in another kernel.
void tile_reduction(TileValues *v, NodeId n);

// ---- tile_epilogue.c ----

void tile_epilogue(TileSchedule *s, const Launches *l, const TileFusion *f,
                   Arena *a);

// ---- tile_attention.c ----

// The tile kernel of a fusion that is attention or its gradient.
TileKernel tile_attention(const Launches *l, const TileFusion *f,
                          const TileModels *models, Arena *a);

#endif
