// The faithful mode: kernels run with every CUDA thread there is, on one CPU.
//
// Each thread of a block is a fiber with a stack of its own; blocks run one
// after another.  Barriers and shuffles are real, so a kernel that needs one
// and lacks it computes something else under another schedule, reads NaN from
// shared memory, or is caught by the race checker (races.c) when it was
// compiled with -fsanitize=thread.
#ifndef TESTS_SIMT_SIMT_H
#define TESTS_SIMT_SIMT_H

#include <stdbool.h>
#include <stddef.h>

// ---- simt.c: for kernels ----

enum { SIMT_WARP = 32, SIMT_MAX_BLOCK = 1024 };

// The thread that is running.
struct SimtThread {
    int thread, block, grid;
};
extern struct SimtThread *simt_self;

// Each program or library with kernels says where its section simt_shared is
// when it is loaded, and when it goes: SIMT_SHARED_SECTION does both.
void simt_shared_add(char *start, char *stop);
void simt_shared_forget(const char *start);

#define SIMT_SHARED_SECTION                                                    \
    extern char __start_simt_shared[]                                          \
        __attribute__((weak, visibility("hidden")));                           \
    extern char __stop_simt_shared[]                                           \
        __attribute__((weak, visibility("hidden")));                           \
    __attribute__((constructor)) static void simt_shared_comes(void) {         \
        if (__start_simt_shared)                                               \
            simt_shared_add(__start_simt_shared, __stop_simt_shared);          \
    }                                                                          \
    __attribute__((destructor)) static void simt_shared_goes(void) {           \
        simt_shared_forget(__start_simt_shared);                               \
    }

// Runs blocks first .. last-1 of a grid, each with `block` threads.  Variables
// in section simt_shared are filled with NaN before every block.
void simt_run(void (*thread)(char *arena, const size_t *arg), char *arena,
              const size_t *arg, int first, int last, int grid, int block);

// Returns when every thread of the block is here.
void simt_barrier(const char *file, int line);

// The value that the lane of this warp with number `lane` passes; every lane
// of the warp takes part.
unsigned simt_shuffle(unsigned value, int lane, const char *file, int line);

// Adds and returns the old value.  A block that has done one sees the writes of
// earlier blocks before theirs.
int simt_atomic_add(int *p, int v);

// ---- simt.c: for tests ----

typedef enum { SIMT_ASCENDING, SIMT_DESCENDING, SIMT_RANDOM } SimtSchedule;

// In which order blocks, and threads between two barriers, run.
void simt_schedule(SimtSchedule schedule, unsigned seed);

// ---- faults.c ----

// A fault ends the program by abort, unless a test records it.
void simt_faults_keep(bool keep);
int simt_faults(void);
const char *simt_fault(int i);
void simt_faults_clear(void);

// Adds a fault and its place; the format lists the threads.
void simt_fault_add(const char *what, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// ---- races.c: the race checker ----

// Declares memory that kernels may touch.  Once something is declared, an
// access anywhere else is a fault, and so is a read of a byte that nothing has
// written unless the region is initialised.
void simt_region(const void *start, size_t bytes, const char *name,
                 bool initialised);
void simt_regions_clear(void);

#endif
