// Kernel IR: a kernel as a tree of statements over typed names.
//
// An emitter builds the tree of a group's kernel, and passes transform it.
// print.c writes it as C and CUDA C for the devices, or as a text that parse.c
// reads back.  A statement keeps the graph node that it computes.
//
// Vectors are arrays of lanes: a statement of a lane loop runs for each lane
// `k`.  Functions and macros of the prelude are intrinsics; intrinsics.def
// defines their meaning.
#ifndef CODEGEN_KERNEL_TREE_H
#define CODEGEN_KERNEL_TREE_H

#include "base/text.h"
#include "codegen/cost.h"
#include "codegen/kernel/string_map.h"
#include "ir/ir.h"

#include <stdarg.h>

// ---- expressions ----

typedef enum {
    X_NUMBER,   // an integer
    X_REAL,     // a float
    X_SIZE,     // an integer that may differ in a family: kernels that share
                // one text: an offset, a stride, a bound
    X_STREAM,   // the same for the number of a stream of random numbers
    X_CONSTANT, // a float that may differ within a family
    X_GPU_ONLY, // an integer that the host ignores
    X_ENTRY, // a number that differs between entries of a multi-tensor kernel:
             // its index among the entry's numbers
    X_NAME,  // a variable, a constant of the kernel or of the prelude
    X_OP,    // an operator of C: name is its spelling, "?" the conditional
    X_CALL,  // an intrinsic
    X_CAST,  // name is the type
    X_INDEX, // arg[0][arg[1]]
    X_FIELD, // arg[0].name
    X_LIST,  // {arg[0], arg[1], ...}
} ExprKind;

typedef struct Expr {
    ExprKind kind;
    const char *name; // a leading "OWN" stands for the kernel's name
    NodeId node;      // X_NAME: part of the name, "v" of node 12 is v12
    int again;        // X_NAME: v12_1 where v12 is taken; 0: v12
    int64_t integer;
    double real;
    int count;
    const struct Expr **arg;
} Expr;

// ---- statements ----

typedef enum {
    S_DECLARE, // type name[dim]... = value;
    S_SET,     // target = value; or target += value;
    S_CALL,    // value;
    S_FOR,     // for (type name = value; test; name += step) body
    S_REPEAT,  // a loop macro of the prelude, value, around body
    S_IF,      // if (value) body else other
    S_JUMP,    // word: "break" or "continue"
    S_ENUM,    // enumerators: constants of the kernel
    S_BLOCK,   // { body }
    S_SWITCH,  // switch (value) body
    S_CASE,    // case value: body, break
    S_STRUCT,  // the type of a table's rows, with constant arrays
    S_TABLE,   // constants in memory: word type name[] = row
} StmtKind;

typedef struct Stmt Stmt;

// A list of statements, as the body of a loop.
typedef struct {
    Stmt *first, *last;
} Stmts;

// An enumerator, or a field of S_STRUCT and its length.  spec: a specialization
// constant, which may differ within a family.
typedef struct {
    const char *name;
    const Expr *value;
    bool spec;
} Enumerator;

enum { MAX_DIMS = 2, MAX_ENUMERATORS = 6 };

// A number or a list in a table, and a comment.
typedef struct {
    const Expr *value;
    const char *comment;
} TableRow;

struct Stmt {
    StmtKind kind;
    NodeId node;      // computed by it, or NO_NODE
    const char *word; // prefix: "const", "SHARED", "UNROLL_3", "+="
    const char *type; // "float", "const act *"
    const Expr *name; // name declared, or the target of S_SET
    const Expr *dim[MAX_DIMS];
    const Expr *value, *test, *step;
    Enumerator enumerator[MAX_ENUMERATORS];
    int num_enumerators;
    Stmts body, other;
    TableRow *row; // of a table
    int num_rows;
    bool aligned;       // a table that is read in vectors
    const char *comment; // a comment beside it
    Stmt *next;
};

typedef struct Tree {
    Arena *arena; // owner of the tree
    const char *name;
    bool phased;       // the kernel has more than one phase
    int min_blocks;    // least resident blocks of a multiprocessor, the second
                       // argument of __launch_bounds__; at most 1: the compiler
                       // decides
    const char **type; // of its parameters: "const act *"
    const Expr **param; // their names
    int num_params;
    const char *function; // of the kernel whose function the host calls, and a
    const Expr *values;   // list of values for it; NULL: see
                          // parametrize.c
    Stmts tables, body;
} Tree;

// The kinds of numbers in kernel IR, as "size" in size(64); NULL for others.
extern const char *const number_kind[X_NAME];

// ---- build ----

Expr *x_new(Arena *a, Expr x);
const Expr *x_number(Arena *a, int64_t value);
const Expr *x_size(Arena *a, int64_t value);
const Expr *x_constant(Arena *a, double value);
const Expr *x_name(Arena *a, const char *name);
const Expr *x_of_node(Arena *a, const char *stem, NodeId n);
const Expr *x_kind(Arena *a, ExprKind kind, int64_t value);
const Expr *x_element(Arena *a, const Expr *array, const Expr *index);
// An empty list with room for so many operands.
Expr *x_list(Arena *a, int most);
void list_add(Expr *list, const Expr *operand);

// The address of an element: pointer + offset, without parentheses.
const Expr *x_address(Arena *a, const Expr *pointer, const Expr *offset);

bool expr_equal(const Expr *x, const Expr *y);

// Whether x is that operator with two operands.
bool is_operator(const Expr *x, const char *op);
bool is_number(const Expr *x, int64_t value);
// Whether x is the variable or constant of that name.
bool is_named(const Expr *x, const char *name);

void stmts_add(Stmts *b, Stmt *s);
void stmts_append(Stmts *b, const Stmts *more);

// Parses an expression.  Each $ stands for the next argument, an Expr *, and $0
// to $9 for operands.  A syntax error ends the program.
const Expr *expr(Arena *a, const char *format, ...);
const Expr *expr_of(Arena *a, const char *format, const Expr *const *operand);

// Appends statements for node n to b.  $ is as in expr; a name that ends in
// @ is n's, and ~ stands for the next argument, a Stmts *.
void code(Arena *a, Stmts *b, NodeId n, const char *format, ...);

// Parses statements of kernel IR.  On an error returns false, with the reason
// in *why.
bool stmts_read(Arena *a, Stmts *b, const char *text, const char **why);

// Parses the output of tree_print, and moves *text past it.
bool tree_read(Arena *a, Tree *tree, const char **text, const char **why);

// ---- inspect ----

// The entry of a name in a map: so many bytes, initially 0.
void *map_name(StringMap *m, const Expr *name, size_t bytes);

// Calls visit with each expression of b in the order of the text, including
// declared and assigned names.
typedef void ExprVisit(void *context, const Expr *x);
void stmts_visit(const Stmts *b, ExprVisit *visit, void *context);

// The same for x, which may be NULL, and its operands.
void expr_visit(const Expr *x, ExprVisit *visit, void *context);

// Number of names that b mentions, each counted as often as it occurs.
int stmts_names(const Stmts *b);

// Whether b mentions a name.
bool stmts_mentions(const Stmts *b, const Expr *name);

bool stmts_equal(const Stmts *b, const Stmts *c);

// A copy of b.  map replaces each expression without operands.
typedef const Expr *ExprMap(void *context, const Expr *x);
Stmts stmts_rewrite(Arena *a, const Stmts *b, ExprMap *map, void *context);

// Whether s is the loop over a thread block's rows, whose first row is `lo +
// ty`.
bool is_row_loop(const Stmt *s);

// The most rows that a thread reads at a time, and the word in front of a loop
// for each number of them; NULL for one.
enum { MAX_UNROLLING = 3 };
extern const char *const unroll_word[MAX_UNROLLING + 1];

// The rows at a time of a loop.
int unrolling_of(const Stmt *s);

// ---- intrinsics.def ----

typedef enum { PURE, LOAD, STORE, CONVERGENT, LOOP, RANGE } IntrinsicKind;

typedef struct {
    const char *name;
    int arguments;
    IntrinsicKind kind;
    double issue[NUM_ISSUES]; // instructions, of each lane
    int lanes;                // the argument that counts lanes; 0: one lane
    bool function;            // of mathematics: it takes longer than a load
    int rare;                 // instructions off the common path
    int temporaries;          // registers
    double waits;             // of the last block for memory, one after another
} Intrinsic;

// NULL if no intrinsic has that name.
const Intrinsic *intrinsic_find(const char *name);

// Whether x, which may be NULL, is a call of an intrinsic of that kind.
bool is_call(const Expr *x, IntrinsicKind kind);

// ---- passes ----

// NULL, or why the tree is invalid: see verify.c.
const char *tree_verify(Arena *a, const Tree *tree);

// Moves computations out of loops, and merges equal ones.
void stmts_hoist(Arena *a, Stmts *b);

// Fuses products and sums of floats in b to fma, except in statements of exact
// nodes, whose roundings decide a result; exact may be NULL.
void stmts_fma(Arena *a, Stmts *b, const bool *exact);

// The nodes of a graph whose sums are not fused.
bool *fma_exact(Arena *a, const Graph *g);

// Computes the factors of a thread block's columns once, in shared memory.
void stmts_promote(Arena *a, Stmts *b);

// Makes the loop over columns the inner one, in a kernel with many vectors of
// few columns.  Whether b is one.
bool stmts_interchange(Arena *a, Stmts *b);

// Removes unused indices, products and arrays.
void stmts_dce(Arena *a, Stmts *b);

// Inserts the wait for the kernel before ahead of the first access of global
// memory.
void tree_insert_wait(Arena *a, Tree *tree);

// NULL, or why a path accesses global memory before it waits: see
// grid_dependency.c.
const char *tree_verify_wait(Arena *a, const Tree *tree);

// The greatest common divisor; of 0 and b, b's magnitude.
int64_t gcd(int64_t a, int64_t b);

// The widest vectors, of at most `columns` elements, that are aligned in all
// accesses to VW lanes: VW must divide the result.
int64_t stmts_width(Arena *a, const Stmts *b, int64_t columns);

// ---- cost.c ----

// The cost of a launch of so many blocks.  act is the type in memory of
// activations.
KernelCost tree_cost(const Tree *tree, int blocks, DType act);

// The most registers of a thread with so many resident blocks.
int registers_within(int blocks);

enum { VECTOR_BYTES = 16 }; // of a load

// Bytes that a thread loads before it waits, with so many rows at a time.  If a
// row calls functions and has several loads, the compiler places half of the
// loads of each further row after functions of the first.
int loaded_at_once(const KernelCost *k, int rows);

// The registers of rows at a time that one row does not need: their loads and
// addresses and, where loads are late, those of functions of two rows at once.
int row_registers(const KernelCost *k, int rows);

// ---- print ----

// Appends b as C: own is the kernel's name.
void stmts_print(Text *t, const Stmts *b, const char *own);
// Appends b as CUDA Tile C++: its values are tiles (runtime/prelude/tile.h).
void stmts_print_tiles(Text *t, const Stmts *b);
// Appends a kernel as kernel IR, with the kinds of numbers and the node of each
// statement.
void tree_print(Text *t, const Tree *tree);
const char *expr_print(Arena *a, const Expr *x, const char *own);

// The precedence of an operator.
int operator_precedence(const char *op);

#endif
