// A module as it is executed: what the files of this folder share.
#ifndef TESTS_PTX_MODULE_H
#define TESTS_PTX_MODULE_H

#include "tests/ptx/ptx.h"

typedef enum {
    PRED,
    B8,
    U8,
    S8,
    B16,
    U16,
    S16,
    F16,
    BF16,
    B32,
    U32,
    S32,
    F32,
    F16X2,
    BF16X2,
    B64,
    U64,
    S64,
    F64,
    NUM_TYPES
} Type;

int type_bytes(Type t);
bool type_signed(Type t);

typedef enum {
    OP_ABS,
    OP_ADD,
    OP_AND,
    OP_ATOM,
    OP_BAR,
    OP_BFE,
    OP_BFI,
    OP_BRA,
    OP_CLZ,
    OP_COPYSIGN,
    OP_COS,
    OP_CVT,
    OP_CVTA,
    OP_DIV,
    OP_EX2,
    OP_EXIT,
    OP_FENCE,
    OP_FMA,
    OP_GRIDDEPCONTROL,
    OP_LD,
    OP_LG2,
    OP_LOP3,
    OP_MAD,
    OP_MAX,
    OP_MEMBAR,
    OP_MIN,
    OP_MOV,
    OP_MUL,
    OP_NEG,
    OP_NOT,
    OP_OR,
    OP_POPC,
    OP_PRMT,
    OP_RCP,
    OP_REM,
    OP_RET,
    OP_RSQRT,
    OP_SELP,
    OP_SETP,
    OP_SHF,
    OP_SHFL,
    OP_SHL,
    OP_SHR,
    OP_SIN,
    OP_SQRT,
    OP_ST,
    OP_SUB,
    OP_TANH,
    OP_XOR,
    NUM_OPS
} Op;

// Which half of a product; how a number becomes a whole one, or a narrower one.
typedef enum { LOW, HIGH, WIDE } Half;
typedef enum { NEAREST, TO_ZERO, DOWN, UP } Round;
typedef enum { GENERIC, GLOBAL, SHARED, LOCAL, CONST, PARAM } Space;
// The unordered ones are true where a number is none.
typedef enum {
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    EQU,
    NEU,
    LTU,
    LEU,
    GTU,
    GEU,
    NUM,
    NAN_
} Compare;
typedef enum { SHUFFLE_IDX, SHUFFLE_BFLY, SHUFFLE_UP, SHUFFLE_DOWN } Shuffle;

// A register, or a number's bits.
typedef struct {
    bool is_register;
    uint64_t value;
} Operand;

enum { NOWHERE = -1, MAX_TO = 4, MAX_FROM = 5, WARP = 32 };

typedef struct {
    Op op;
    Type type, of; // of the result, and of what is converted or compared
    Half half;
    Round round;
    Space space;
    Compare compare;
    Shuffle shuffle;
    bool saturates, flushes, is_whole, is_volatile, is_negated;
    bool releases, acquires; // for threads of other blocks
    bool counts;             // an add of 1, up to a limit
    bool is_of_block;        // or for its own only
    bool waits;              // for the launch before; else lets the next start
    bool is_constant; // what is loaded: nobody writes it during the launch
    bool passes_nan;
    bool shifts_left, clamps; // of two words; clamps: by 32 at most
    int guard; // register of a predicate, or NOWHERE
    int vector;
    int to[MAX_TO], num_to;
    Operand from[MAX_FROM];
    int num_from;
    int64_t offset; // of an address, whose base is from[0]
    int target;     // of a branch
    int line;
} Instruction;

// Registers that each thread begins with.
enum { R_TID, R_NTID, R_CTAID, R_NCTAID, R_LANE, R_LOCAL, R_ONE, NUM_SPECIAL };

typedef struct {
    PtxKernel is;
    int *offset; // of parameters
    int parameter_bytes;
    Instruction *code;
    int count, max_count;
    int num_registers;
    size_t shared_bytes, local_bytes;
    bool loads_constants;
} Kernel;

typedef struct {
    char *name;
    Space space;
    uint64_t address; // of this process, or from the start of the space
    size_t bytes;
    void *memory;
} Variable;

struct PtxModule {
    char *text;
    Kernel *kernel;
    int num_kernels;
    Variable *variable;
    int num_variables;
    size_t shared_bytes; // of variables that all kernels have
};

// Ends the program, with the line of the text.
_Noreturn void ptx_fail(int line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// ---- written.c ----

// Bytes of global memory.
typedef struct Written Written;

Written *written_new(void);
void written_free(Written *w);
void written_add(Written *w, uint64_t address, int bytes);
bool written_has(const Written *w, uint64_t address, int bytes);

// ---- visible.c ----

typedef struct Visible Visible; // memory of a launch, whose stores are delayed
typedef struct Stores Stores;   // those of a block that others do not see yet

Visible *visible_new(void);
void visible_free(Visible *v);
Stores *stores_new(Visible *v);
// All of a block's stores become visible, as its launch ends.
void stores_end(Stores *s);
void stores_barrier(Stores *s);
void stores_release(Stores *s, int thread);
// The releases so far, for a thread that acquires.
uint64_t visible_now(const Stores *s);
void visible_store(Stores *s, int thread, uint64_t address, const char *from,
                   int count);
// Loads as a thread that has last acquired after so many releases.
void visible_load(const Stores *s, uint64_t since, uint64_t address, char *to,
                  int count);

// ---- execute.c ----

typedef struct {
    uint64_t *r;
    int at;          // number of the next instruction
    uint64_t since;  // releases before its last acquire
    bool has_waited; // for the launch before
    enum { RUNS, AT_BARRIER, AT_SHUFFLE, LOOKED, AT_WAIT, ENDED } state;
} Thread;

// The launches before and behind one.
typedef struct {
    bool is_programmatic; // the launch before may still run
    bool waits;           // it does
    bool triggers;        // the launch behind has not been allowed to start
} Dependence;

// Where a thread's addresses lead.
typedef struct {
    char *shared, *parameters;
    Written
        *written; // by the launch; NULL: nothing that it loads depends on it
    Stores *stores; // NULL: others see stores at once
    const Dependence *dependence;
    bool *has_triggered; // the block
} Memory;

// Executes instructions until the thread waits, has read what other blocks may
// change, or ends.
void thread_run(const Kernel *k, const Memory *m, Thread *t);

// Executes the next instruction.
void thread_step(const Kernel *k, const Memory *m, Thread *t);

// Whether the next instruction loads or stores, and where.
bool thread_accesses(const Kernel *k, const Thread *t, uint64_t *address);

// ---- warp.c ----

// Executes instructions of a warp's threads that are neither waiting nor at
// their end, until none is left.
void warp_counted(const Kernel *k, const Memory *m, Thread *first, int lanes,
                  PtxCount *count);

#endif
