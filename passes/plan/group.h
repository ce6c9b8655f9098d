// A group of a graph after fuse: a run of nodes that is one kernel or one
// library call, with its iteration space, reads and writes.
#ifndef PASSES_PLAN_GROUP_H
#define PASSES_PLAN_GROUP_H

#include "ir/ir.h"

// The plans of a trainer.  HOST_PLAN and GPU_PLAN index its arrays.
enum { HOST_PLAN, GPU_PLAN, NUM_PLANS };

typedef enum {
#define KERNEL_KIND(KIND, ...) GROUP_##KIND,
#include "passes/plan/kernel_kinds.def"
#undef KERNEL_KIND
    GROUP_CALL, // one library call
} GroupKind;

// A row of kernel_kinds.def; GROUP_CALL has one too.
typedef struct {
    const char *name;
    unsigned operations;
    enum { BY_VECTOR, BY_ROW, BY_TILE, BY_CHUNK } blocks;
    Reason result, operand;
} GroupInfo;

extern const GroupInfo group_info[];

// The kind that an operation with these traits selects, GROUP_GRID by default.
GroupKind group_kind(unsigned traits);

// Axes of a reduction: a row reduction gives a value for each row of the last
// axis, a column reduction one for each column, a full reduction one of all
// elements.  The words are XLA's.
typedef enum {
    ROW_REDUCTION,
    COLUMN_REDUCTION,
    FULL_REDUCTION,
    OTHER_REDUCTION
} ReductionKind;

// How the blocks of a launch divide an iteration space.  A block has some of
// the rows of a tile of columns.  If it reduces, its partial results are added
// to those of the other blocks with its tile by the last one of these, or by
// the last ones, each of which adds some of the columns.
typedef struct {
    int tiles;  // of columns, equally wide
    int chunks; // of rows
    int last_blocks; // at most so many add them; one, if there are tiles
} Division;

typedef struct {
    int group;
    GroupKind kind;
    NodeId first, last; // the run of its nodes, inclusive
    const Type *iteration_space; // GRID, ROWS, SCATTER
    NodeId workspace;   // its workspace leaf, or NO_NODE
    int counter;        // the index of its first counter, or -1
    int num_counters;
    int num_inputs, num_outputs;
    const NodeId *input;  // stored nodes of other groups and leaves it reads
    const NodeId *output; // its nodes that are stored
    int phases;            // 1, or those of a multi-tensor group
    const int *node_phase; // of a multi-tensor group: see multi_tensor.c
    int num_reads;
    const NodeId *read; // inputs, once for each phase that reads them; not
                        // those that are assigned only
    // ---- of a final graph, from graph_plan ----
    bool backward;   // all that it stores belongs to the backward pass
    int64_t columns; // over which it iterates
    int64_t bytes;   // of memory that it reads and writes
    const struct AccessRegion *region; // of each input, in order of node
    int grid[NUM_PLANS]; // blocks; of a multi-tensor group the most
    Division division;   // of the iteration space, on the device
} Group;

// The kind of a reduction node.
ReductionKind reduction_kind(const Graph *g, NodeId n);

// Whether the windows of a pool, or of a pool's gradient, are disjoint and have
// no padding.
bool windows_disjoint(const Node *pool);

// The gradient of a pool with disjoint windows that n is, also through casts:
// each window is memory of its own to write to. NO_NODE if it is none.
NodeId disjoint_pool_grad(const Graph *g, NodeId n);

// Whether n does nothing but add columns of zeros after its operand's rows.
bool pads_columns(const Graph *g, NodeId n);

// For each node, whether it keeps its value in memory: a leaf that is not
// immediate, or a node of a group that something outside the group uses.
bool *graph_stored(const Graph *g, Arena *a);

// ---- slice.c ----

// Number of elements of slice n's operand before its first.
int64_t slice_start(const Graph *g, NodeId n);

// Whether n is a slice with one index of one axis, and with the whole last one.
bool slice_takes_index(const Graph *g, NodeId n);

// ---- verify.c ----

// NULL, or the workspace or the counters that are wrong, for a graph that
// graph_verify accepts.
const char *groups_verify(const Graph *g, Arena *a);

// ---- group.c ----

// The groups in order of their nodes.  Leaves, views and outputs have none.
Group *graph_groups(const Graph *g, Arena *a, int *count);

// Fills in kind and workspace from the operations of first .. last, and the
// iteration space if one of them reduces.  Else it is that of the first output,
// which depends on other groups.
void group_describe(const Graph *g, Group *group);

// For each node the index of its group among these, or -1.
int *group_owners(const Graph *g, const Group *group, int count, Arena *a);

// The groups that read each node, as lists in their order: an entry is -1 at
// the end.
typedef struct {
    int *first; // of a node: its first entry
    int *next;  // of an entry: the one after it
    int *group; // of an entry: the index of the group
} Readers;

Readers group_readers(const Graph *g, const Group *group, int count, Arena *a);

// The first node of a group that is of a kind, as CALLS; there is one.
NodeId group_first(const Graph *g, const Group *group, unsigned traits);

static inline bool group_has(const Group *group, NodeId n) {
    return n >= group->first && n <= group->last;
}

// A value that one group leaves in memory for another, and the one reason for
// it; REASON_none is a mistake of fuse.
typedef struct {
    int from, to; // indices of groups
    NodeId node;
    Reason why;
} Edge;

// All edges, in the order of the groups that read.
Edge *graph_edges(const Graph *g, Arena *a, const Group *group, int count,
                  int *num_edges);

// ---- workspace.c: memory for partial results of blocks ----

// Partial results of a reduction in each block: 2 for var.
int reduce_slots(const Graph *g, NodeId n);

// Whether n is a column or full reduction, which is ready only when all blocks
// are done.
bool sums_blocks(const Graph *g, NodeId n);

// The workspace of a kernel.  Fuse has the nodes of a kernel before they are a
// group, so it adds them one by one, in their order.
typedef struct {
    const Graph *graph; // which knows the device
    GroupKind kind;
    const Type *space; // not of a multi-tensor group
    int64_t slots;     // partial results of each block, or of all chunks
    bool any;          // there is one
    bool scalar;       // an update's result is one number
    bool mixed;        // a reduction is not one of all columns
} Workspace;

Workspace workspace_new(const Graph *g, GroupKind kind, const Type *space);

// Adds the partial results of node n; result: it is stored or assigned.
void workspace_add(Workspace *s, const Graph *g, NodeId n, bool result);

Type workspace_type(const Workspace *s);

// For each node of a group, the offset of its partial results: in the row of a
// block, or over chunks.
const int64_t *workspace_offsets(const Graph *g, const Group *group, Arena *a);

// Block counters count the blocks of a launch that have ended their work, so
// that the last one can finish that of all.  They are i32, in a state with this
// name and the graph's.  A group needs one; a launch in phases two, since its
// barriers count blocks too; a reduction one for each tile of columns, or two
// if several last blocks share its work.  The last counter is that of merged
// launches.
#define COUNTERS "run.counters."
int workspace_counters(const Workspace *s);

// The state of the counters, or NO_NODE.
NodeId graph_counters(const Graph *g);

// ---- multi_tensor.c: UPDATE, MULTI_REDUCE and STACK ----

bool group_is_multi_tensor(GroupKind kind);

// They cut each tensor into chunks.  Each block takes successive ones, and
// sums are of a chunk, so that a result does not depend on the number of
// blocks.
enum { CHUNK_ELEMENTS = 4096 };
int64_t chunk_count(int64_t elements);

// Chunks of all tensors that reduction n is about.
int64_t reduction_chunks(const Graph *g, NodeId n);

// For each operand of reduction n, the number of chunks before its own.
const int64_t *chunks_before(const Graph *g, NodeId n, Arena *a);

// Finds the phases of such a group, and the tensors that each reads.
void group_phases(const Graph *g, Arena *a, Group *group);

// Whether everything that a group stores is part of the backward pass.
bool group_backward(const Graph *g, const Group *group);

// Whether a group assigns terms of a shard, and nothing else.
bool group_stores_terms(const Graph *g, const Group *group);

// Rows of a space: all dimensions but the last.
int64_t space_rows(const Type *space);
int64_t space_columns(const Type *space);

// Columns over which the group's kernel iterates: of a kernel of rows more than
// the space has where its tensors have them in memory, see
// padded_columns.c.
int64_t group_columns(const Graph *g, const Group *group);

// ---- grid.c: blocks ----

// Threads of a block on a GPU, in every kernel.
enum { BLOCK_THREADS = 256 };

// The most blocks of a launch on the host, where they do not depend on the
// number of threads, so that results do not either.
enum { HOST_GRID = 64 };

// The most blocks of a launch on the device but of rows without a workspace:
// four on a multiprocessor.
int device_grid(const Graph *g);

// Blocks for a space, on the host or the device, whose columns are not divided.
int space_grid(const Graph *g, const Type *space, bool host);

// Threads of a block on the device along so many vectors of columns: a power of
// two.
int threads_along(int64_t vectors);

// How the device's blocks divide a space, for a kernel with that workspace.
Division space_division(const Graph *g, const Workspace *s);

// Columns that one of several last blocks adds at a time, of so many partial
// results: a power of two.
int64_t shared_columns(int64_t chunks);

// blocks, but at least 1 and at most limit.
int grid_within(int64_t blocks, int limit);

// Finds group->grid.
void group_grid(const Graph *g, Group *group);

#endif
