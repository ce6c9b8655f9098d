// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The prelude in faithful mode: every CUDA thread of a block exists, with
// barriers and exchanges between the threads of a warp.  For tests: the
// functions are in tests/simt.
#ifndef SINTER_SIMT_H
#define SINTER_SIMT_H

#include <stdio.h>
#include <stdlib.h>

// The running thread.
typedef struct SimtThread {
    int thread, block, grid;
} SimtThread;

extern SimtThread *simt_self;

void simt_run(void (*thread)(char *arena, const size_t *arg), char *arena,
              const size_t *arg, int first, int last, int grid, int block);
void simt_barrier(const char *file, int line);
void simt_shared_add(char *start, char *stop);
void simt_shared_forget(const char *start);
unsigned simt_shuffle(unsigned value, int lane, const char *file, int line);
int simt_atomic_add(int *p, int v);

// Merged launches, too.
#define SINTER_MERGED
#define MERGED KERNEL
#define MERGED_KERNEL HOST_KERNEL
#define MERGED_HOST(name) name##_host

#define KERNEL(...) static __attribute__((noinline, unused)) void
#define PHASED KERNEL
#define SHARED static __attribute__((section("simt_shared")))
#define THREADS(n) (n)
#define LANES(c)                                                               \
    ((c) % 8 == 0 ? 8 : (c) % 4 == 0 ? 4 : (c) % 2 == 0 ? 2 : (c) <= 16 ? (c) : 1)
#define MULTI_TENSOR_LANES 4
#define LANES_DO(k, n) UNROLLED(k, n)
#define UNROLLED(k, n) for (int k = 0; k < (n); k++)
#define NO_UNROLL(k, n) UNROLLED(k, n)
#define BLOCKS_DO(b, n) UNROLLED(b, n)
#define UNROLL_2
#define UNROLL_3
#define SHARES_DO(share, n, shares)                                            \
    for (int share = (shares)[0]; share < (n); share += (shares)[1])

typedef struct {
    int x;
} SinterIndex;
#define threadIdx ((SinterIndex){simt_self->thread})
#define blockIdx ((SinterIndex){simt_self->block})
#define gridDim ((SinterIndex){simt_self->grid})

#define BARRIER() simt_barrier(__FILE__, __LINE__)
#define counter_add(p, v) simt_atomic_add(p, v)
#define COUNTED (1 << 16)
#define counter_begin(p) simt_atomic_add(p, 1)
#define counter_leave(p) simt_atomic_add(p, COUNTED)
#define counter_read(p) simt_atomic_add(p, 0)
#define FENCE() ((void)0)

SINTER_INLINE float __int_as_float(int i) {
    float v;
    memcpy(&v, &i, sizeof v);
    return v;
}

SINTER_INLINE int __float_as_int(float v) {
    int i;
    memcpy(&i, &v, sizeof i);
    return i;
}

SINTER_INLINE float simt_exchange(float v, int lane, int line) {
    unsigned u;
    memcpy(&u, &v, sizeof u);
    u = simt_shuffle(u, lane, "kernel", line);
    memcpy(&v, &u, sizeof v);
    return v;
}
#define SHUFFLE(v, source) simt_exchange(v, source, __LINE__)

// As on a GPU of sm_80 or later, zeros too.
SINTER_INLINE float maximum(float a, float b) {
    return b > a || b != b || (b == a && signbit(a)) ? b : a;
}

// A GPU refuses a vector at an address that is not a multiple of its size.
#define ALIGNED(p, bytes)                                                      \
    do {                                                                       \
        const int simt_size = (bytes) % 16 == 0  ? 16                          \
                              : (bytes) % 8 == 0 ? 8                           \
                              : (bytes) % 4 == 0 ? 4                           \
                                                 : 1;                          \
        if ((size_t)(p) % (size_t)simt_size != 0) {                            \
            fprintf(stderr, "misaligned access of %d bytes, line %d\n",        \
                    (int)(bytes), __LINE__);                                   \
            abort();                                                           \
        }                                                                      \
    } while (0)

// The program's shared memory, which is filled with NaN before each block.
extern char __start_simt_shared[]
    __attribute__((weak, visibility("hidden")));
extern char __stop_simt_shared[] __attribute__((weak, visibility("hidden")));
__attribute__((constructor)) static void simt_shared_comes(void) {
    if (__start_simt_shared)
        simt_shared_add(__start_simt_shared, __stop_simt_shared);
}
__attribute__((destructor)) static void simt_shared_goes(void) {
    simt_shared_forget(__start_simt_shared);
}

#define HOST_KERNEL(name, ...)                                                 \
    static void name##_thread(char *arena, const size_t *arg) {                \
        (void)arena, (void)arg;                                                \
        name(__VA_ARGS__);                                                     \
    }                                                                          \
    SINTER_ENTRY void name##_host(char *arena, const size_t *arg, int first,   \
                            int last, int grid, int phase) {                   \
        sinter_phase = phase;                                                  \
        simt_run(name##_thread, arena, arg, first, last, grid, 256);           \
    }
#define HOST_FAMILY(name, ...)
#define HOST_LIKE(name, head, values, ...) HOST_KERNEL(name, __VA_ARGS__)

#endif
