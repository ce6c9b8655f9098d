// Host speed: peak rates of this machine's processors, measured in about 0.1 s:
// multiply-adds in registers, and a triad of arrays (McCalpin's STREAM).  As
// many threads as a trainer has measure at once, several times.  The best time
// counts, as other programs may use the machine meanwhile.
#define _GNU_SOURCE
#include "runtime/runtime.h"
#include "tools/device.h"
#include "tools/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    CHAINS = 8, // independent multiply-adds, which hide their latency
    LENGTH = 1 << 15,
    ARRAYS = 3,
    PIECE = 1 << 17, // floats of an array in a block, at most
    MAX_PIECES = 128,
    MAX_THREADS = 256,
};

// ---- arithmetic ----

typedef struct {
    int lanes; // floats of a vector
    float (*run)(void);
} Arithmetic;

// This file is compiled with products and sums contracted.
#define CHAINS_RUN(name, Vector)                                               \
    static float name(void) {                                                  \
        Vector zero = {0}, s = zero + 0.999f, t = zero + 1e-3f;                \
        Vector a = zero, b = zero + 1, c = zero + 2, d = zero + 3;             \
        Vector e = zero + 4, f = zero + 5, g = zero + 6, h = zero + 7;         \
        for (int i = 0; i < LENGTH; i++) {                                     \
            a = a * s + t, b = b * s + t, c = c * s + t, d = d * s + t;        \
            e = e * s + t, f = f * s + t, g = g * s + t, h = h * s + t;        \
        }                                                                      \
        a += b + c + d + e + f + g + h;                                        \
        return a[0];                                                           \
    }

typedef float Vector4 __attribute__((vector_size(16)));
CHAINS_RUN(chains_of_4, Vector4)
#ifdef __x86_64__
typedef float Vector8 __attribute__((vector_size(32)));
typedef float Vector16 __attribute__((vector_size(64)));
// clang-format off
__attribute__((target("avx2,fma"))) CHAINS_RUN(chains_of_8, Vector8)
__attribute__((target("avx512f"))) CHAINS_RUN(chains_of_16, Vector16)
// clang-format on
#endif

        static Arithmetic arithmetic_here(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return (Arithmetic){16, chains_of_16};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (Arithmetic){8, chains_of_8};
#endif
    return (Arithmetic){4, chains_of_4};
}

// ---- threads ----

typedef struct {
    pthread_t thread;
    Arithmetic arithmetic;
    int pieces;
    size_t piece; // floats
    float *array[ARRAYS];
    float sum; // keeps the compiler from removing it
    double chain[MAX_PIECES], triad[MAX_PIECES]; // seconds of each piece
} Worker;

static void triad(const Worker *w, int piece) {
    size_t first = (size_t)piece * w->piece;
    float *to = w->array[0] + first;
    const float *x = w->array[1] + first, *y = w->array[2] + first;
    for (size_t i = 0; i < w->piece; i++)
        to[i] = x[i] + w->sum * y[i];
}

static void *work(void *arg) {
    Worker *w = arg;
    size_t bytes = (size_t)w->pieces * w->piece * sizeof(float);
    for (int i = 0; i < w->pieces; i++) {
        double began = rt_seconds();
        w->sum += w->arithmetic.run();
        w->chain[i] = rt_seconds() - began;
    }
    for (int i = 0; i < ARRAYS; i++)
        memset(w->array[i], 0, bytes);
    for (int i = 0; i < w->pieces; i++) {
        double began = rt_seconds();
        triad(w, i);
        w->triad[i] = rt_seconds() - began;
    }
    return NULL;
}

static int by_size(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *value, int count) {
    qsort(value, (size_t)count, sizeof *value, by_size);
    return value[count / 2];
}

// The work of one thread.
typedef struct {
    int pieces;
    size_t piece; // floats of each array in one
} Share;

// All threads together take 192 MiB, or a quarter of the memory that is free.
static Share share_of(int threads) {
    enum { MEMORY = 192 << 20, LEAST = 1 << 10 };
    size_t room = rt_memory_available() / 4;
    room = room < MEMORY ? room : MEMORY;
    size_t floats = room / sizeof(float) / ARRAYS / (size_t)threads;
    size_t pieces = floats / PIECE;
    if (pieces == 0)
        return (Share){1, floats > LEAST ? floats : LEAST};
    return (Share){pieces < MAX_PIECES ? (int)pieces : MAX_PIECES, PIECE};
}

// Measures with one more thread, if there is memory for it.
static bool worker_begin(Worker *w, float *block, const Share *s) {
    w->arithmetic = arithmetic_here();
    w->pieces = s->pieces;
    w->piece = s->piece;
    for (int i = 0; i < ARRAYS; i++)
        w->array[i] = block + (size_t)i * (size_t)s->pieces * s->piece;
    return pthread_create(&w->thread, NULL, work, w) == 0;
}

static void worker_end(Worker *w, HostSpeed *s) {
    pthread_join(w->thread, NULL);
    s->flops += 2.0 * CHAINS * LENGTH * w->arithmetic.lanes /
                median(w->chain, w->pieces);
    s->bandwidth += (double)ARRAYS * (double)w->piece * sizeof(float) /
                    median(w->triad, w->pieces);
    s->threads++;
}

// Memory in huge pages where there are any, as a trainer's arena: it is
// touched in a fifth of the time.
static float *block_take(size_t bytes) {
    enum { HUGE_PAGE = 2 << 20 };
    bytes = (bytes + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    float *block = aligned_alloc(HUGE_PAGE, bytes);
    if (block != NULL)
        madvise(block, bytes, MADV_HUGEPAGE);
    return block;
}

HostSpeed host_speed(void) {
    int threads = processors(), begun = 0;
    HostSpeed s = {.lanes = arithmetic_here().lanes};
    threads = threads < MAX_THREADS ? threads : MAX_THREADS;
    Share share = share_of(threads);
    size_t count = ARRAYS * (size_t)share.pieces * share.piece;
    Worker *worker = calloc((size_t)threads, sizeof *worker);
    float *block = block_take((size_t)threads * count * sizeof(float));
    while (worker != NULL && block != NULL && begun < threads &&
           worker_begin(&worker[begun], block + (size_t)begun * count, &share))
        begun++;
    for (int i = 0; i < begun; i++)
        worker_end(&worker[i], &s);
    free(block);
    free(worker);
    return s;
}
