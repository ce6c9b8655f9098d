// The state of the cost model: see cost.c.
#ifndef CODEGEN_KERNEL_COST_H
#define CODEGEN_KERNEL_COST_H

#include "codegen/kernel/tree.h"

enum {
    THREADS = 256,
    WARP = 32,
    WARPS = THREADS / WARP,
    REGISTERS = 65536, // of a multiprocessor
    MAX_LOOPS = 32
};

// The value of an expression.  It is equal for `run` threads in a row, and
// repeats every `period` threads.
typedef struct {
    double value;     // of thread 0; exact if constant
    double constancy; // threads side by side that have one value
    double period;    // threads after which values repeat
    double fraction;  // of warps in which a condition holds; < 0: unknown
    int level;        // the innermost loop in which it changes
    bool constant;    // the compiler knows it
    bool real;        // a float
    bool wide;        // 64 bits
    bool thread;      // a function of the thread's number alone
} Estimate;

// The live range of a variable, from its declaration to its last use.
typedef struct {
    double registers;
    int from, to; // statements
    int level;    // of the loop that declares it
} Range;

typedef struct {
    const Expr *name;
    Estimate estimate;
    int range; // its live range; -1: none
} Variable;

// A loop around the statement; 0 is the kernel.
typedef struct {
    double trips; // of a warp, in the whole kernel
    double last;  // of a thread of the last block; 0: before it is the last
    double code;
    int from;       // its first statement
    int in_flight;  // bytes that a thread loads in a trip
    bool functions; // it calls some, such as exp
    int rows;       // that a trip reads; 0: it is no loop over a block's rows
    bool stores; // through a pointer into the arena, which any load may alias:
                 // those of other kernels are parameters with RESTRICT
} Loop;

// An integer expression that is computed already.
typedef struct {
    const Expr *x;
    Estimate estimate;
} Known;

typedef struct {
    Arena *a;
    const Tree *tree;
    double blocks;
    int act_bytes;
    const Expr *entries; // the table whose entries the phase computes
    bool converts;       // activations have fewer bits than a float
    Loop loop[MAX_LOOPS];
    int depth;
    Variable *variable;
    int num_variables;
    Range *range;
    int num_ranges;
    Known *known;
    int num_known;
    double
        most_loaded; // bytes of a thread in the loop with the bytes in flight
    int now;         // number of the statement
    double temporaries; // of the statement
    double last_blocks; // that share the sums of all
    int row_registers;  // of the rows that a trip reads besides the first
    KernelCost cost;
} Walk;

// ---- cost_expr.c ----

// Counts the instructions of an expression, and returns its value.
Estimate estimate_of(Walk *w, const Expr *x);

// Whether x asks if this block is the last one.
bool is_last(const Expr *x);

// The value of a constant expression.
Estimate estimate_constant(double value);

// Adds instructions in the loop of that level.
void spend(Walk *w, Issue kind, double count, int level);

// The variable of that name, or NULL.
Variable *variable_find(const Walk *w, const Expr *name);

// Declares a variable.  It takes so many registers.
void variable_declare(Walk *w, const Expr *name, Estimate e, double registers);

#endif
