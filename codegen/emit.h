// Emit: declarations that the emitters and their helpers share.
#ifndef CODEGEN_EMIT_H
#define CODEGEN_EMIT_H

#include "codegen/codegen.h"
#include "codegen/kernel/tree.h"
#include "passes/plan/group.h"

// ---- kernel.c ----

// Like codegen_kernels, but builds trees only.  visit gets each kernel once it
// is built.
typedef void KernelVisit(void *context, Kernel *k);
Kernel *kernels_build(const GraphPlan *host, const GraphPlan *gpu, Arena *a,
                      int *number, KernelVisit *visit, void *context);

// Prints k's tree to its text, in the arena, and frees the tree.
void kernel_print(Arena *a, Kernel *k);

// Frees the tree of k.
void kernel_free(Kernel *k);

// Splits k's text into a function and a kernel, for a merged launch.
void kernel_split(Arena *a, Kernel *k);

// An index expression: one index for each axis.  With lanes, the last index is
// that of the first of `lanes` neighbours.
typedef struct {
    int rank;
    int64_t dim[MAX_RANK];
    const Expr *index[MAX_RANK];
    const Expr *lanes; // VW, a number, or NULL for a single element
    bool is_identity;  // the iteration's element: row i, this column
    bool flat;         // one index over all elements, of any shape
} Index;

// Statements of one scope: `before` in order, then `lanes` in a loop over k,
// then `after`.  IN_END is the branch that ends a multi-tensor kernel.
typedef enum { IN_KERNEL, IN_ENTRY, IN_LOOP, IN_END } ScopeKind;

typedef struct Scope {
    struct Scope *outer;
    ScopeKind kind;
    const Expr *width; // lanes of its loop; NULL: no loop
    Stmts before, lanes, after;
} Scope;

// How a value is held: in a variable or as an expression, in an array with an
// element for each lane, or in a variable of one scope's lane loop.
typedef enum { HELD_ONCE, HELD_ARRAY, HELD_LANE } HeldAs;

typedef struct {
    NodeId node;
    Index at;
    Scope *scope;
    HeldAs form;
    const Expr *name; // the variable, expression or array
} Value;

// The first of a shard's terms, from which on a step in lockstep has memory for
// each shard (runtime/lockstep.c); NO_NODE: the graph runs otherwise.
NodeId shard_terms(const Graph *g);

// The state of one kernel's emission.
typedef struct {
    const Graph *g;      // as planned for the host
    const Graph *gpu;    // as planned for the GPU, or g again
    Arena *a;
    const Group *group;
    const bool *stored;
    Value *value;
    int num_values;
    int *names;    // how many names each node has
    NodeId *named; // nodes with a name
    int num_named;
    int *local; // numbering that replaces node numbers, or NULL
    int num_local;
    NodeId *local_node; // indexed by local number
    NodeId *owner;      // of the group's scalars: the entry, or NO_NODE
    NodeId entry;       // the entry being written, or NO_NODE
    bool *scalarized;   // of the group's nodes: computed one element at a time
    int num_indices;    // number of index variables
    int64_t step;       // divisible by lanes: C, or less if an access is not
                        // aligned to the columns: see vector_width.c
    bool narrow;        // a GPU's vectors have half the usual lanes, so that
                        // registers hold more of them: see occupancy.c
    const int *sweep;   // ROWS: for each node of the group, the sweeps over a
                        // row that precede its value
    const bool *cached; // ROWS: nodes of the group that a sweep caches for
    const int *cached_in; // later ones, and the number of that sweep
    int num_cached;
    const int64_t *workspace;      // workspace offsets of the group's nodes
    const int64_t **chunk_offsets; // workspace offsets of multi-tensor
                                   // reductions, filled on demand
    int grid[NUM_PLANS]; // blocks: an emitter may take fewer than the group's
    int min_blocks; // see Tree; above 1 if the registers of so many blocks hold
                    // a thread's vectors
    Stmts tables;   // constants the kernel reads
    NodeId *tabled; // nodes of the graph with a table
    int num_tabled;
    int tabled_numbers;    // tables in constant memory
    const Expr **number;   // with local: numbers that differ between entries
    int num_numbers;
    const Expr *k, *vw, *zero, *one; // names and numbers that every kernel uses
} Emit;

// Appends statements that compute node n: see code() of tree.h.
#define CODE(e, stmts, n, ...) code((e)->a, stmts, n, __VA_ARGS__)
#define EXPR(e, ...) expr((e)->a, __VA_ARGS__)

// ---- pointwise.c ----

// Pointwise node n as a function of its operands.
const Expr *pointwise_expr(Emit *e, NodeId n, const Expr *const *operand);

// "float" or "int": the type of a variable.
const char *held_type(DType d);

// "act", "float", "int", "unsigned char": the type in memory.
const char *memory_type(DType d);

// Suffix of load and store functions: "act", "f32", "i32", "u8".
const char *access_suffix(DType d);

// A literal of the type.
const Expr *literal(Arena *a, DType d, double value);

// ---- index.c ----

// The index expression of an operand under broadcasting: the element of type t
// that an element at p needs.
Index index_broadcast(Index p, Type operand);

// Whether some index before the last is not 0.
bool has_rows(Index p);

// The offset of an element, in elements.
const Expr *index_offset(Emit *e, Index p);

// Declares an int in s, named by a stem and a number.  Returns its name.
const Expr *index_new(Emit *e, Scope *s, const char *stem, const Expr *value);

// The next name of a stem and a number; the caller declares it.
const Expr *index_name(Emit *e, const char *stem);

bool index_equal(const Index *p, const Index *q);

// The index expression of node n's operand for element p of n.  *inside is the
// condition that the operand has the element (NULL: always).  For indexing
// nodes and views.  Statements that compute indices go to s.
Index index_moved(Emit *e, Scope *s, NodeId n, Index p, const Expr **inside);

// ---- value.c ----

// Adds a table to the kernel's tables.
Stmt *table_add(Emit *e, Stmt table);

// names holds a zero for each node of the graph, before and after.
void emit_init(Emit *e, const Graph *g, const Graph *gpu, Arena *a,
               const Group *group, const bool *stored, int *names);
Scope *scope_new(Emit *e, Scope *outer, ScopeKind kind, const Expr *width);

// The statements of s in order: before, the lane loop, after.
const Stmts *scope_close(Emit *e, Scope *s);

// An expression for the value of node n at p.  It is valid in the lane loop of
// s or, for a value without lanes, in its statements.
const Expr *value_at(Emit *e, Scope *s, NodeId n, Index p);

// Declares n's value at p as x and returns a reference to it: a variable of the
// lane loop, an array if inner scopes use it, or a plain variable.
const Expr *value_set(Emit *e, Scope *s, NodeId n, Index p, const Expr *x);

// Binds node n at p to `name` from now on.
void value_define(Emit *e, Scope *s, NodeId n, Index p, HeldAs form,
                  const Expr *name);

// "v12", or "v12_1" if v12 is taken.
const Expr *value_name(Emit *e, const char *prefix, NodeId n);

// Declares an array in s for the lanes of node n at p.
const Expr *array_new(Emit *e, Scope *s, NodeId n, Index p);

// Lane k of an array.
const Expr *lane_of(Emit *e, const Expr *array);

// Forgets all names.
void names_clear(Emit *e);

// The pointer parameter of a stored node.
const Expr *pointer_name(Emit *e, NodeId n);

// A number that may differ between entries with one text: the number itself, or
// its index among the entry's numbers.
const Expr *number_of(Emit *e, const Expr *x);
const Expr *integer_of(Emit *e, int64_t value);

// Moves the statements of s into a block of their own.  The statements that
// they require of s come first.
Scope *scope_open(Emit *e, Scope *s, const Expr *lanes);

// Whether n has one element.
bool is_scalar(const Emit *e, NodeId n);

// Whether the type has one element along the lanes at p.
bool is_uniform(Type t, Index p);

// Binds node n at p to an array of s, which the caller fills.  Returns its
// lane k.
const Expr *array_define(Emit *e, Scope *s, NodeId n, Index p,
                         const Expr *name);

// Whether a node of the group has a property.
bool group_any(const Emit *e, bool has(const Emit *e, NodeId n));

// ---- sliced.c ----

// The slice by which alone a kernel of the group reads tensor `base`, and which
// it reads by a pointer of its own; or NO_NODE.
NodeId slice_pointed(const Graph *g, const Group *group, NodeId base);

// The byte offset of such a slice in the arena.
int64_t slice_address(const Graph *g, NodeId n);

// The index expression of slice n's element p from the slice's first element
// on, in the strides of its operand.
Index slice_index(const Emit *e, NodeId n, Index p);

// ---- random.c ----

// Like value_at, for a random number.
const Expr *draw_value(Emit *e, Scope *s, NodeId n, Index p);

// Whether x, the lane of a random number, is below a constant.  NULL if x is
// another value or `share` no constant.
const Expr *draw_below(Emit *e, const Expr *x, const Expr *share);

// ---- window.c ----

// Like value_at, for a node that reads a window of its operand.
const Expr *window_value(Emit *e, Scope *s, NodeId n, Index p);

// Whether n's loops skip some indices of a window.
bool window_skips(const Emit *e, NodeId n);

// Stores output n, the gradient of a pool, for all elements of the window at p.
void emit_window_grads(Emit *e, Scope *s, NodeId n, Index p);

// ---- sums over blocks: grid_reduction.c ----

// The workspace offset of reduction n's partial sums: see workspace.c.
long long workspace_offset(const Emit *e, NodeId n);

// Declares the accumulators of the group's sums over blocks, for lanes or for
// one element, and the statements that add a value.
void sums_declare(Emit *e, Stmts *b, bool over_all, const Expr *lanes);
void sums_add(Emit *e, Scope *s, NodeId n, Index p, const Expr *value);

// Whether n is a column reduction; and whether one as a variance.
bool is_column_reduction(const Emit *e, NodeId n);
bool has_pivot(const Emit *e, NodeId n);

// Where each block leaves the pivot of variance n for the last one: the offset
// in its part of the workspace, or NULL if it does not need it.
const Expr *pivot_index(const Emit *e, NodeId n);

// Adds the accumulators of the group's sums over a block's threads, and stores
// the results in the block's part of the workspace.  `columns` is the call for
// column reductions: %s, $ and %s are the verb, the place and the accumulator.
// NULL leaves them out, and !totals full reductions.
void sums_store(const Emit *e, Stmts *b, const char *columns, bool totals);

// Counts a block whose sums several last blocks will add.
void sums_begin(Emit *e, Stmts *b);

// Writes the end of a kernel: the last blocks add all partial sums.
void sums_finish(Emit *e, Stmts *b);

// ---- occupancy.c ----

enum { IN_FLIGHT = 32 << 10 }; // bytes of loads of a multiprocessor

// Chooses the resident blocks of a kernel of kind grid or rows, and lets the
// row loop of a grid kernel read two or three rows at a time, where registers
// allow.  Returns the bytes in flight; if it does not choose, IN_FLIGHT, or 0
// of narrow vectors.
int choose_occupancy(Emit *e, Tree *tree);

// ---- update.c, multi_tensor_slice.c ----

// The value of a reduction in a multi-tensor kernel.  An earlier phase left its
// partial sums in the workspace.
const Expr *partials_value(Emit *e, Scope *s, NodeId n, Index p);

// The value of a slice of a tensor in memory, in a multi-tensor kernel.
const Expr *slice_value(Emit *e, Scope *s, NodeId n, Index p);

// ---- rows.c, register_cache.c ----

// Whether n reduces over a row's columns, not over blocks.
bool reduces_row(const Emit *e, NodeId n);

// The columns of a row that a warp covers with so many vectors for each thread.
int64_t warp_columns(const Emit *e, int vectors);

// Chooses the nodes that sweeps cache in registers, in a kernel with so many
// reducing sweeps.
void cache_find(Emit *e, int sweeps);

// Caches this sweep's values for later sweeps, after all that it computes.
void cache_write(Emit *e, Scope *row, Scope *sweep, Index p, int number);

// ---- the emitters: each writes the body of one kind of kernel ----
#define KERNEL_KIND(KIND, kind, operations, blocks, result, operand, emit)     \
    void emit_##emit(Emit *e, Stmts *b);
#include "passes/plan/kernel_kinds.def"
#undef KERNEL_KIND

// Whether d pads few channels to 8.  Lanes of their own do such a pad.
bool pad_widens(const Emit *e, const Node *d);

// The vector width.
const Expr *lanes_of(const Emit *e, Type space);

// Stores output n from scope s; `value` is its value at p.
void emit_store(Emit *e, Scope *s, NodeId n, Index p, const Expr *value);

// The same where lanes may branch, such as for an index in a window: a vector
// store stays one.
void emit_place(Emit *e, Scope *s, NodeId n, Index p, const Expr *value);

// The type of row counters: int, unless there are too many rows.
const char *row_type(Type space);
// The type of column counters, which advance by a block or more.
const char *column_type(Type space);

// Declares ROWS, C and the constants of `more`, in braces.  spec: on the host
// only the number of vectors follows from C.
void emit_space(Emit *e, Stmts *b, Type space, bool spec, const char *more);

// Whether a block has a tile of the columns: `first` and on, TILE_COLUMNS of
// them.
bool has_tiles(const Emit *e);

// Declares the block's rows, lo .. hi-1, and with tiles its first column.
void emit_block_range(Emit *e, Stmts *b, Type space);

// The iteration space in groups of columns, and the threads side by side: TILE
// or THREADS_ALONG_ROW.
void emit_tiles(Emit *e, Stmts *b, Type space, const char *tile);

// Declares the row indices that body mentions; i is the row number.
void emit_row_indices(Emit *e, Stmts *b, Type space, const Stmts *body);

// The index expression of the row and column indices themselves.
Index space_index(Emit *e, Type space, const Expr *column, const Expr *lanes);

// ---- kernel_name.c ----
const char *kernel_name(const Graph *g, Arena *a, const Group *group,
                        int number);

// A file's or tensor's name for a comment: letters, digits, dots, dashes and
// slashes stay, and _ replaces other characters.
const char *file_text(Arena *a, const char *file);

// Any text as a C string.
void quoted_add(Text *t, const char *s);

// ---- source_lines.c ----

// The group's lines in the model, up to a limit for each file:
// "resnet9.net:12,14" where "," is the separator.
const char *group_lines(const Graph *g, Arena *a, const Group *group,
                        const char *between, int most);

// ---- launch_tables.c ----

// Tables with the purpose of each launch of a step, and its bytes.
void launches_write(Text *t, const char *name,
                    const GraphPlan *const plan[NUM_PLANS], const Launches *l);

// ---- merged_launches.c ----

// Writes the kernels of a step's merged launches.
void launches_merge(Launches *l, Arena *a);

// Rows of the table RtMergedLaunch for a step as planned for the GPU.
void merged_emit(Text *t, const Launches *l, int step);

// ---- program.c ----

// The runtime's name of an element type; act has the type that it stands for.
const char *rt_type_text(DType d, DType act);

// ---- library_fusions.c ----

// Rows of the tables RtNorm and RtFusion, for the library fusions of one step
// of the plan for CUDA.
typedef struct {
    Text norms, fusions;
    int num_norms, num_fusions;
} FusionTables;

void fusions_emit(FusionTables *t, const Launches *l, int step);

#endif
