// PTX on the processor: what NVRTC makes of kernels is read and executed, one
// instruction of one thread after another.
//
// As much of PTX as NVRTC writes for our kernels; anything else ends the
// program with the line that has it.  Arithmetic is to the bit what NVIDIA's
// "Parallel Thread Execution ISA" says, but for the approximations (ex2, lg2,
// rsqrt, ...), which are rounded from double, or as the host has them: a GPU's
// may be 2 units off.
//
// A thread runs until it has to wait for others, so that what depends on the
// order of threads without saying so is seen: an order can be asked for.  What
// a GPU would refuse, could hang on or do by luck ends the program: an access
// that is not aligned, a shuffle that lanes of its mask do not reach together, a
// barrier that some threads of a block never reach, a block that waits for
// another which need not be there, a constant (ld.global.nc) that the launch has
// written.
#ifndef TESTS_PTX_PTX_H
#define TESTS_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct PtxModule PtxModule;

typedef struct {
    const char *name;
    int threads; // that a block has at most
    bool waits;  // for other blocks
    int num_parameters;
    const int *bytes; // of each parameter
    int instructions;
} PtxKernel;

// Reads a text, which is copied.  Its variables have addresses of this process.
PtxModule *ptx_read(const char *text);
void ptx_free(PtxModule *m);

// Kernel number i in the order of the text; NULL behind the last.
const PtxKernel *ptx_kernel(const PtxModule *m, int i);

// A variable in global or constant memory; NULL: there is none.
void *ptx_variable(const PtxModule *m, const char *name, size_t *bytes);

// Runs blocks of so many threads.  Seed 0: blocks and threads in ascending
// order, each thread as far as it can; else in an order drawn from it.
void ptx_run(const PtxKernel *k, void *const *argument, int grid, int threads,
             unsigned seed);

// The same for launches that depend on one another as griddepcontrol says.
typedef struct PtxLaunch PtxLaunch;

typedef struct {
    unsigned seed;
    bool delays;       // what blocks store; others see it where PTX makes them
    bool programmatic; // may start before the launch that it follows ends
    bool cooperative;  // all blocks are there from the start; else, of a kernel
                       // that waits, some, and the next when one has ended
} PtxOrder;

PtxLaunch *ptx_launch_new(const PtxKernel *k, void *const *argument, int grid,
                          int threads, PtxOrder order);

// Runs a launch to its end and frees it.  `next`, or NULL, is programmatic:
// some of its blocks start while this one runs, after every block of this one
// has executed griddepcontrol.launch_dependents or ended, and run up to
// griddepcontrol.wait.
void ptx_launch_run(PtxLaunch *l, PtxLaunch *next);

// ---- warp.c ----

// What an instruction was, as warps executed it.
typedef struct {
    uint64_t warps, lanes; // how often, and for how many threads in all
    // What its accesses took, and what the bytes need at least: sectors of 32
    // bytes of global memory; of shared memory turns, in which each bank gives
    // one word.
    uint64_t sectors, least_sectors, turns, least_turns;
} PtxCount;

// Runs blocks as ptx_run does, but a warp as a GPU would, and adds what it did
// to count[], which is of the kernel's instructions.
void ptx_run_counted(const PtxKernel *k, void *const *argument, int grid,
                     int threads, PtxCount *count);

// The line of the text that has instruction i, without its blanks.
const char *ptx_line(const PtxModule *m, const PtxKernel *k, int i,
                     int *length);

// Kinds of instructions: of special functions, which have a slow unit; of
// comparisons, maxima and selects; of shuffles and barriers; moves, which mostly
// vanish in machine code, and parameters.
typedef enum {
    PTX_FLOAT,
    PTX_SPECIAL,
    PTX_INTEGER,
    PTX_SELECT,
    PTX_CONVERT,
    PTX_MEMORY,
    PTX_EXCHANGE,
    PTX_BRANCH,
    PTX_MOVE,
    NUM_PTX_KINDS
} PtxKind;

// The kind of instruction i.
PtxKind ptx_kind(const PtxKernel *k, int i);

#endif
