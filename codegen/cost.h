// Cost: the work of a kernel on a GPU, estimated from its tree.
#ifndef CODEGEN_COST_H
#define CODEGEN_COST_H

#include <stdbool.h>

// Kinds of instructions of a GPU.
typedef enum {
    ISSUE_FLOAT,   // add, multiply, compare, select
    ISSUE_SPECIAL, // the special function unit
    ISSUE_INTEGER, // and moves
    ISSUE_CONVERT,
    ISSUE_GLOBAL, // loads and stores, also of constant memory
    ISSUE_SHARED, // shared memory and shuffles
    ISSUE_CONTROL,
    NUM_ISSUES
} Issue;

typedef struct {
    double issue[NUM_ISSUES]; // executed instructions of an average warp
    double code;              // instructions of the machine code
    int registers;            // of a thread
    int shared;               // bytes of shared memory of a block
    int loaded;               // bytes that a thread loads for a row; 0: no rows
    bool functions;           // a row calls some, such as exp
    int in_flight;            // bytes that a thread loads before it needs them
    double waits;             // of the last block for memory, one after another
} KernelCost;

#endif
