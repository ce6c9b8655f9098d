// Emit: what the files of codegen/ that write one kernel share.
#ifndef CODEGEN_EMIT_H
#define CODEGEN_EMIT_H

#include "codegen/codegen.h"
#include "codegen/kernel/keys.h"
#include "codegen/kernel/tree.h"
#include "passes/plan/group.h"

// ---- kernel.c ----

// As codegen_kernels, with trees and without texts.  visit sees each kernel when
// it is built.
typedef void KernelVisit(void *context, Kernel *k);
Kernel *kernels_build(const GraphPlan *host, const GraphPlan *device, Arena *a,
                      int *number, KernelVisit *visit, void *context);

// Gives k the text of its tree, in the arena.
void kernel_print(Arena *a, Kernel *k);

// Frees the tree of k.
void kernel_free(Kernel *k);

// Divides the text of k, which is part of a merged launch.
void kernel_split(Arena *a, Kernel *k);

// A place in a tensor: an index for each axis.  With lanes, the last index is
// that of the first of `lanes` neighbours.
typedef struct {
    int rank;
    int64_t dim[MAX_RANK];
    const Expr *index[MAX_RANK];
    const Expr *lanes; // VW, a number, or NULL for a single element
    bool whole;        // the element of the space itself: row i, this column
    bool flat;         // one index over all elements, whatever the shape
} Index;

// Statements that are executed together: first `before` in order, then `lanes`
// in a loop over k, then `after`.
typedef struct Scope {
    struct Scope *outer;
    enum { IN_KERNEL, IN_MEMBER, IN_COLUMN, IN_ROW, IN_PASS, IN_WINDOW } kind;
    const Expr *width; // lanes of its loop, NULL: there is none
    Block before, lanes, after;
} Scope;

// How a value is held: a variable, an array with an element for each lane, or
// a variable of the lane loop of one scope.
typedef enum { HELD_ONCE, HELD_ARRAY, HELD_LANE } HeldAs;

typedef struct {
    NodeId node;
    Index place;
    Scope *scope;
    HeldAs form;
    const Expr *name; // the variable or array
} Value;

// An index variable, and the scope whose statements declare it.
typedef struct {
    const Expr *name;
    const Scope *scope;
} IndexVar;

// One kernel being written.
typedef struct {
    const Graph *g;      // as planned for the host
    const Graph *device; // as planned for the other device, or g again
    Arena *a;
    const Group *group;
    const bool *stored;
    Value *value;
    int num_values;
    int *names;    // how many names a node has been given
    NodeId *named; // those that have been
    int num_named;
    int *local; // numbering that replaces node numbers, or NULL
    int num_local;
    NodeId *local_node; // in the order of their numbers
    NodeId *owner;      // of the group's scalars: the member, or NO_NODE
    NodeId member;      // the one that is being written, or NO_NODE
    bool *awkward;      // of the group's nodes: computed one element at a time
    int num_indices;    // index variables so far
    IndexVar *index;       // those that move_* and windows declare
    int num_declared;
    int64_t step;       // that lanes divide: C, or less where some access
                        // is not in step with the columns
    int64_t columns;    // ROWS: that the kernel walks over, C or more
    const int *level;   // ROWS: of the group's nodes, row reductions that
                        // come one after the other before each value
    const bool *kept;   // ROWS: of the group's nodes, those whose elements a
    const int *kept_in; // pass leaves for later ones, and which does
    int num_kept;
    const int64_t *place;         // in the workspace, of the group's nodes
    const int64_t **parts_before; // of its reductions over parts, once asked
    int resident;   // blocks that a multiprocessor is to have room for: more
                    // than one where their registers hold what a thread has
    Block tables;   // constants the kernel reads
    NodeId *tabled; // those of the graph that are there
    int num_tabled;
    int tabled_numbers;    // of those in constant memory
    const Expr **constant; // with local: numbers that may differ
    int num_constants;
    const Expr *k, *vw, *zero, *one; // names and numbers of every kernel
} Emit;

// Appends statements that compute node n: see code() of tree.h.
#define CODE(e, block, n, ...) code((e)->a, block, n, __VA_ARGS__)
#define EXPR(e, ...) expr((e)->a, __VA_ARGS__)

// ---- expr.c ----

// Pointwise node n of its operands.
const Expr *pointwise_expr(Emit *e, NodeId n, const Expr *const *operand);

// "float" or "int": how values of the type are held in a kernel.
const char *held_type(DType d);

// "act", "float", "int", "unsigned char": how they are held in memory.
const char *memory_type(DType d);

// The suffix of load and store functions: "act", "f32", "i32", "u8".
const char *access_suffix(DType d);

// A number of the type.
const Expr *literal(Arena *a, DType d, double value);

// ---- index.c ----

// The place of the element of an operand of this type that an element at p
// needs, by broadcasting.
Index index_broadcast(Index p, Type operand);

// Whether some index before the last is not 0.
bool has_rows(Index p);

// Elements from the tensor's start to the place.
const Expr *index_offset(Emit *e, Index p);

// Declares an int in s, named by a stem and a number, and returns its name.
const Expr *index_new(Emit *e, Scope *s, const char *stem, const Expr *value);

// The next name of a stem and a number, which the caller declares.
const Expr *index_name(Emit *e, const char *stem);

bool index_equal(const Index *p, const Index *q);

// Where node n's operand is read for element p of n; *inside is a condition
// for it to be there at all (NULL: always).  For what indexes, and for views.
// Statements that compute indices go to s.
Index index_moved(Emit *e, Scope *s, NodeId n, Index p, const Expr **inside);

// ---- value.c ----

// names holds a zero for each node of the graph, before and after.
void emit_init(Emit *e, const Graph *g, const Graph *device, Arena *a,
               const Group *group, const bool *stored, int *names);
Scope *scope_new(Emit *e, Scope *outer, int kind, const Expr *width);

// The statements of s in order: before, the lane loop, after.
const Block *scope_close(Emit *e, Scope *s);

// An expression for the value of node n at p, to be used in the lane loop of s
// or, for a value without lanes, in its statements.
const Expr *value_at(Emit *e, Scope *s, NodeId n, Index p);

// Makes x the value of n at p and returns how it is referred to: a variable of
// the lane loop, an array if inner scopes will use it, or a plain variable.
const Expr *value_set(Emit *e, Scope *s, NodeId n, Index p, const Expr *x);

// Whether statements of s are part of outer's, or its own.
bool scope_within(const Scope *s, const Scope *outer);

// Makes `name` the value of node n at p from now on.
void value_define(Emit *e, Scope *s, NodeId n, Index p, HeldAs form,
                  const Expr *name);

// "v12", or "v12_1" when that is taken.
const Expr *value_name(Emit *e, const char *prefix, NodeId n);

// Declares the array in s that lanes of node n at p are kept in.
const Expr *array_new(Emit *e, Scope *s, NodeId n, Index p);

// Lane k of an array.
const Expr *lane_of(Emit *e, const Expr *array);

// Bytes that 8 lanes of n take on the device, and 8 lanes of a sum.
int64_t vector_bytes(const Emit *e, NodeId n);
enum { SUM_BYTES = 32 };

// Forgets which names are taken.
void names_clear(Emit *e);

// The pointer parameter for a stored node.
const Expr *pointer_name(Emit *e, NodeId n);

// A number that may differ between members of one text: as it is, or its place
// among those of the member.
const Expr *number_of(Emit *e, const Expr *x);

// Statements of a block in s of their own, so that what it asks of s comes
// before all of it.
Scope *block_open(Emit *e, Scope *s, const Expr *lanes);

// Whether the type has at p but one element in the direction of the lanes.
bool is_uniform(Type t, Index p);

// ---- draw.c ----

// As value_at for a random number.
const Expr *draw_value(Emit *e, Scope *s, NodeId n, Index p);

// ---- window.c ----

// As value_at for a node that needs a window of its operand.
const Expr *window_value(Emit *e, Scope *s, NodeId n, Index p);

// Whether the loops of n leave out places of a window.
bool window_skips(const Graph *g, NodeId n);

// Stores the elements of output n, a pool's gradient, in the window at p.
void emit_unfolded(Emit *e, Scope *s, NodeId n, Index p);

// ---- sums over blocks: finish.c ----

// Where what reduction n leaves begins in the workspace: see workspace.c.
long long sums_place(const Emit *e, NodeId n);

// Declares the accumulators of the group's sums over blocks, for lanes or one
// element, and says how a value enters them.
void sums_declare(Emit *e, Block *b, bool over_all, const Expr *lanes);
void sums_add(Emit *e, Scope *s, NodeId n, Index p, const Expr *value);

// How many sums n is over the threads of a block.
int sums_of(const Emit *e, NodeId n);

// Adds up n, which is over everything, for the block's part of the workspace.
void sums_total(const Emit *e, Block *b, NodeId n);

// Writes the end of a kernel: the last block adds up what all have left.
void sums_finish(Emit *e, Block *b);

// ---- update.c, piece.c ----

// The value of a reduction in a kernel over parts, from what a phase before has
// left in the workspace.
const Expr *parts_value(Emit *e, Scope *s, NodeId n, Index p);

// The value of a slice of a tensor in memory, in such a kernel.
const Expr *piece_value(Emit *e, Scope *s, NodeId n, Index p);

// ---- rows.c, keep.c ----

// Whether n is over the columns of a row, and not over blocks.
bool reduces_row(const Emit *e, NodeId n);

// Finds what passes keep in a kernel of so many that reduce.
void keep_find(Emit *e, int passes);

// Writes how this pass keeps it, behind all that it computes, for those after
// it to find.
void keep_write(Emit *e, Scope *row, Scope *pass, Index p, int number);

// ---- the skeletons: each writes the body of one kind of kernel ----
void emit_grid(Emit *e, Block *b);
void emit_rows(Emit *e, Block *b);
void emit_scatter(Emit *e, Block *b);
void emit_update(Emit *e, Block *b, int *grid);

// Whether d pads few channels to 8, which is done by lanes of their own.
bool pad_widens(const Emit *e, const Node *d);

// The largest number of neighbouring columns that all nodes of the group read
// as neighbours at a multiple of it, and the width of a vector that follows.
int64_t lanes_step(const Emit *e, Type space);
const Expr *lanes_of(const Emit *e, Type space);

// Stores output n, whose value at p is in `value`, from scope s.
void emit_store(Emit *e, Scope *s, NodeId n, Index p, const Expr *value);

// The same where lanes may branch, as for one of several places in a window:
// a store of a vector that stays one.
void emit_place(Emit *e, Scope *s, NodeId n, Index p, const Expr *value);

// What rows of the space are counted in: an int, unless there are too many.
const char *row_type(Type space);
// And columns, by a block or more at a time.
const char *column_type(Type space);

// Declares ROWS, C and the constants of `more`, in braces.  Sized: on the host
// nothing follows from C but how many vectors there are.
void emit_space(Emit *e, Block *b, Type space, bool sized, const char *more);

// Declares the rows lo .. hi-1 of the block.
void emit_chunk(Emit *e, Block *b, Type space);

// The space with groups of columns, and the threads that stand side by side.
void emit_tiles(Emit *e, Block *b, Type space);

// Declares the row indices that body mentions; i is the number of the row.
void emit_row_indices(Emit *e, Block *b, Type space, const Block *body);

// The place of the element of the space that row and column indices name.
Index space_index(Emit *e, Type space, const Expr *column, const Expr *lanes);

// ---- name.c ----
const char *kernel_name(const Graph *g, Arena *a, const Group *group,
                        int number);

// The name of a file or of a tensor for a comment: letters, digits, dots,
// dashes and slashes of it, and _ for anything else.
const char *file_text(Arena *a, const char *file);

// Any text as a string of C.
void quoted_add(Text *t, const char *s);

// ---- lines.c ----

// The model's lines that a group comes from, at most so many of each file:
// "resnet9.net:12,14" where "," is between them.
const char *group_lines(const Graph *g, Arena *a, const Group *group,
                        const char *between, int most);

// ---- launch.c ----

// Tables of what a step's launches are for, and of the bytes of each.
void launches_write(Text *t, const char *name, const GraphPlan *host,
                    const Launches *l);

// ---- family.c ----

// Kernels that do the same on the host or differ in sizes alone.
typedef struct {
    Arena *scratch;
    Keys keys;
    struct Sized **first; // of each family
    int count;
} Families;

Families families_new(Arena *scratch, int most);

// Takes a kernel, and prints it in arena a unless its family begins with it.
void family_take(Families *f, Kernel *k, Arena *a);

// Prints the first of each family, with the sizes that it is given.
void families_print(Families *f, Arena *a);

// ---- merged_launches.c ----

// Writes the kernels of the merged launches of a step.
void launches_merge(Launches *l, Arena *a);

// Rows of the table RtJoin for a step that is planned for the device.
void merged_emit(Text *t, const Launches *l, int step);

// ---- program.c ----

// The name of an element type of the runtime; act has what it stands for.
const char *rt_type_text(DType d, DType act);

// ---- stored.c ----

// Rows of the table RtStored for a step as one device has it.
void stored_emit(Text *t, Arena *a, const Graph *g, const Launches *l,
                 int step);

// ---- library_fusions.c ----

// Rows of the tables RtNorm and RtFusion, for the library fusions of one step
// of the plan for CUDA.
typedef struct {
    Text norms, fusions;
    int num_norms, num_fusions;
} FusionTables;

void fusions_emit(FusionTables *t, const Launches *l, int step);

#endif
