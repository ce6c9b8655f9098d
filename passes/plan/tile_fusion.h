// Tile fusions: contractions that one tile kernel can compute together with the
// kernels around it: its prologues compute its operands, its epilogue reads its
// result; and attention, as tile kernels in place of its kernel.
//
// A tile kernel computes a tile of the result in registers and applies the
// epilogue's operations to it there, and those of a prologue to the parts of an
// operand that it loads.  Like a library fusion, it follows from the groups and
// changes none of them: a device launches the tile kernel, or the library call
// and the kernels, and one memory plan fits both ways.  A prologue's result has
// its place in that plan, too, and is stored there unless all its readers are
// tile kernels that apply the prologue; live_range.c keeps the prologue's
// operands until the last of them.
#ifndef PASSES_PLAN_TILE_FUSION_H
#define PASSES_PLAN_TILE_FUSION_H

#include "passes/plan/fork.h"

enum { TILE_OPERANDS = 2 };

typedef struct {
    int call;     // which group calls the library; -1: epilogue is attention
    int epilogue; // which group is the epilogue; -1: none
    int pool;                    // which group pools the result; -1: none
    int prologue[TILE_OPERANDS]; // which group is the prologue; -1: none
    // Which group computes the operand by a window, a slice or the like; -1:
    // none.  As a prologue it would compute each element once for each tap.
    int windows[TILE_OPERANDS];
    bool stores;   // it also stores the call's result, which others read
    int64_t bytes; // not read or written when the epilogue is part of it
    bool fused;    // a part of it can be part of a library fusion
    int launches; // of tile kernels: 1, or 2 if the second adds partial sums or
                  // computes the gradients of keys and values
    bool taken;   // chosen after the plan, as prologue is: see tools/tile.c
} TileFusion;

// A kernel whose results contractions read, each of which can apply it.  It is
// not launched if they all do.  Other kernels may read its results, too, if the
// first reader is a product of matrices: its blocks of the first columns load
// each element of the operand once and store it.
typedef struct {
    int kernel;    // which group
    int stored_by; // which group calls the reader that stores them; -1: none
    int last;      // the last launch that reads it: a reader's call, or the
                   // reader's epilogue if that is the next launch
    int readers;   // operands that it computes
    int64_t bytes; // not read or written when it is not launched
} TilePrologue;

typedef struct {
    TileFusion *fusion; // in the order of their calls
    int count;
    TilePrologue *prologue; // in the order of their kernels
    int num_prologues;
} TileFusions;

// ---- tile_space.c ----

// The result or an operand of a contraction as `batch` matrices.
typedef struct {
    int64_t batch, rows, columns;
    const Type *image; // [N,H,W,C] of an operand, which may be computed from
                       // pooled images; or NULL
} TileSpace;

// How a tensor broadcasts to a space: whether it has all of the batch, the rows
// and the columns, or one of each; and of a pooled image, the rows and columns
// of pixels that share an element, else 1.
typedef struct {
    bool whole[3];
    int64_t window[2];
} TileExtents;

// That of a contraction's result; of an operand; and of a tensor
// [N,T,channels], as attention has.
TileSpace tile_space(const Graph *g, NodeId call);
TileSpace tile_operand_space(const Type *t);
TileSpace tile_positions(const Type *t);

bool tile_extents(const TileSpace *s, Type t, TileExtents *out);
// Whether it has an element for each of the space.
bool tile_is_whole(const TileSpace *s, Type t);

// Whether a tile kernel can compute a contraction.
bool tile_contraction(const Graph *g, NodeId n);

// Whether a group of a convolution's channels fills a tensor core's operands:
// 16 channels or more, of whole vectors.  Depthwise ones do not.
bool tile_groups_fit(const Graph *g, NodeId call);

// Whether offsets of its elements have 32 bits.
bool tile_is_indexed(Type t);

// Whether it has numbers or predicates, as tiles have.
bool tile_is_value(Type t);
// Whether node d is a function of the elements at the same place of tensors
// that broadcast to the space; and whether such a function can read n, from
// memory or as a number.
bool tile_computes(const Graph *g, const TileSpace *s, const Node *d);
bool tile_reads(const Graph *g, const TileSpace *s, NodeId n);
// Whether d packs predicates of the space, as many as whole bytes have; and
// whether it unpacks bits in memory that broadcast to it.
bool tile_packs(const Graph *g, const TileSpace *s, const Node *d);
bool tile_unpacks(const TileSpace *s, const Group *group, const Node *d);

// ---- tile_attention.c ----

// Whether a kernel is attention that tile kernels can compute.
bool tile_attends(const Graph *g, const Group *group);

// Column reductions of an epilogue: a block leaves partial sums of its rows,
// which a second kernel adds in the order of blocks.  A variance has the sum of
// its column and that of the squared distances from the block's mean; nodes
// that reduce the same tensor share the sum.
typedef struct {
    int sum, squares; // of a node: numbers of its partial sums
    int count;        // of all nodes
} TileSlots;

// n may be NO_NODE.
TileSlots tile_slots(const Graph *g, const Group *group, NodeId n);

// The most rows of a block.
enum { TILE_ROWS = 128 };

// ---- tile_pool.c ----

// The fewest rows of a tile whose result is pooled.
enum { TILE_LEAST_POOLED = 64 };

// A kernel that pools the result of a convolution in windows side by side, and
// computes values of the pooled elements.  An epilogue besides the first one:
// it needs nothing that the step computes but the result.
typedef struct {
    NodeId call;
    Type type; // of the pooled result
    TileSpace space;
    int64_t window[2];
} TilePool;

bool tile_pool(const Graph *g, const Group *group, NodeId call, TilePool *p);

// The group that is such a kernel for a call, by the uses of tensors alone; -1:
// none.
int tile_pool_of(const Graph *g, const Group *group, const Readers *reader,
                 NodeId call);

// ---- tile_prologue.c ----

// Bytes that a prologue reads for one of its results.
int64_t tile_prologue_reads(const Graph *g, const Group *group, NodeId output);

// The prologues that the uses of tensors allow, whatever their offsets, the
// better one of a kernel first.
TilePrologue *graph_tile_prologues(const Graph *g, const Group *group,
                                   int num_groups, Arena *a, int *count);

// The group that computes a convolution's operand of windows of other tensors,
// for such readers alone; -1: there is none.
int tile_windows(const Graph *g, const Group *group, const Readers *reader,
                 NodeId call, int operand);

// ---- tile_fusion.c ----

// The fusions of a graph whose activations have 16 bits, none of another.
TileFusions graph_tile_fusions(const Graph *g, const LibraryFusions *fusions,
                               const Forks *forks, Arena *a);

// The fusion that is taken and computes group k as its call or as one of its
// epilogues, or NULL.
const TileFusion *tile_taken(const TileFusions *f, int k);

// Whether a fusion that is taken does the work of kernel k.
bool tile_replaces(const TileFusions *f, int k);

// The prologue that kernel k is, or NULL.
const TilePrologue *tile_prologue_of(const TileFusions *f, int k);

// Whether all operands that a prologue computes are those of fusions that are
// taken: then its kernel is not launched.
bool tile_skips(const TileFusions *f, int prologue);

// Marks the groups that they replace: all, or only those without a part in a
// library fusion.
bool *tile_replaced(const TileFusions *f, bool fused, int num_groups, Arena *a);

// Bytes and launches saved by fusions that a device could take: all, or only
// those without a part in a library fusion.
Saving tile_saving(const TileFusions *f, bool fused);

#endif
