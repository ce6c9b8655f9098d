// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The prelude for the host, as C. Fast mode: a block has one thread and is a
// run of rows; barriers vanish, lanes become vectors of the processor.  With
// SINTER_SIMT every thread of a block exists: see simt.h.
#ifndef SINTER_HOST_H
#define SINTER_HOST_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#define SINTER_INLINE static inline __attribute__((always_inline, unused))
#define DEVICE SINTER_INLINE
#define BODY DEVICE void
#ifdef SINTER_UNITS
#define SINTER_ENTRY // another translation unit calls its kernels
#else
#define SINTER_ENTRY static
#endif
#define RESTRICT __restrict__
#define TABLE static const __attribute__((aligned(16)))
#define LARGE_TABLE TABLE
#define HOST_GPU(host, device) (host)
// A fact for the compiler, such as that a divided index is not negative.
#define ASSUME(fact)                                                           \
    if (!(fact))                                                               \
    __builtin_unreachable()
#define INF __builtin_inff()
// A word of Philox.  For products of 32-bit words gcc 12 unpacks them and packs
// the results; AVX-512 has an instruction for products of 64-bit words.
#if defined __x86_64__ && (defined __AVX512DQ__ || defined SINTER_PORTABLE)
typedef unsigned long long Word;
#else
typedef unsigned Word;
#endif
// All rounds of Philox are C; a GPU has the last ones in its own words.
enum { OPEN_ROUNDS = 10 };
#define LAST_ROUNDS(c0, c1, c2, c3, k0, k1) ((void)0)
#define INT_LEAST (-2147483647 - 1)

#if SINTER_ACT == 32
typedef float act;
#else
// Opaque, as on CUDA: accidental arithmetic on it does not compile.
typedef struct {
    unsigned short bits;
} act;
#endif

// In a leaf function, gcc 12 does not align the stack if it sees no vector
// stored there, and it does not see vectors that are stored by an address in a
// register.  So the function aligns its stack itself.
#if defined __GNUC__ && defined __x86_64__
#define REALIGNED __attribute__((force_align_arg_pointer))
#else
#define REALIGNED
#endif

// Versions of a kernel for each kind of vectors; the program chooses when it
// starts.  Sanitizers are not ready by then.
#if defined SINTER_PORTABLE && defined __x86_64__ && defined __GNUC__ &&       \
    !defined __clang__ && !defined __SANITIZE_ADDRESS__ &&                     \
    !defined __SANITIZE_THREAD__
#define VERSIONS                                                               \
    __attribute__((                                                            \
        target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VERSIONS
#endif

// The runtime runs one phase of all blocks, then the next.
static _Thread_local int sinter_phase __attribute__((unused));
#define PHASE(number) if (sinter_phase == (number))
#define GRID_BARRIER(counter) ((void)(counter))
#define GRID_DEPENDENCY_WAIT() ((void)0)
#define LAUNCH_DEPENDENTS() ((void)0)

#ifdef SINTER_SIMT
#include "runtime/prelude/simt.h"
#else
// The host launches kernels one by one.
#define MERGED_KERNEL(name, ...)
#define MERGED_HOST(name) NULL
#define KERNEL(...) VERSIONS REALIGNED __attribute__((unused)) static void
#define PHASED KERNEL
#define SHARED
#define THREADS(n) 1
#define LANES(c)                                                               \
    ((c) % 64 == 0   ? 64                                                      \
     : (c) % 32 == 0 ? 32                                                      \
     : (c) % 16 == 0 ? 16                                                      \
     : (c) % 8 == 0  ? 8                                                       \
     : (c) <= 16     ? (c)                                                     \
     : (c) % 4 == 0  ? 4                                                       \
     : (c) % 2 == 0  ? 2                                                       \
                     : 1)
#define MULTI_TENSOR_LANES 64
// Without the pragma gcc unrolls short loops before it vectorizes them, and has
// a branch for each select.  That is best for the three channels of a pixel,
// which would go through memory as a vector and a rest.
#define SIMD(...) _Pragma(#__VA_ARGS__)
#define LANES_DO(k, n) SIMD(omp simd if ((n) > 3)) for (int k = 0; k < (n); k++)
#define UNROLLED(k, n) for (int k = 0; k < (n); k++)
#define NO_UNROLL(k, n) UNROLLED(k, n)
// Random numbers: vectors from four on.
#define BLOCKS_DO(b, n)                                                        \
    SIMD(omp simd if ((n) > 3)) for (int b = 0; b < (n); b++)
#define UNROLL_2
#define UNROLL_3
#define SHARES_DO(share, n, shares)                                            \
    for (int share = (shares)[0]; share < (n); share += (shares)[1])

typedef struct {
    int x;
} SinterIndex;
static const SinterIndex threadIdx = {0};
static _Thread_local SinterIndex blockIdx, gridDim;
#ifdef SINTER_SPEC_CONSTANTS
typedef union {
    int integer;
    float real;
} SinterSpecConstant;
static _Thread_local const SinterSpecConstant *sinter_spec_constants;
#define SPEC_INT(i, own) sinter_spec_constants[i].integer
#define SPEC_FLOAT(i, own) sinter_spec_constants[i].real
#endif
#define ALIGNED(p, bytes) ((void)0)

// A macro, since gcc 12 does not vectorize some loops over lanes with a
// function.
#define maximum(a, b) ((!((b) <= (a)) & ((a) == (a))) ? (b) : (a))
#endif

// CUDA's function; there it needs no subroutine, unlike a division and a root.
DEVICE float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}

DEVICE int nonnegative(int i) {
    return i;
}

// CUDA's conversion; a processor has one result for NaN and for values out of
// range.
DEVICE int int_of(float x) {
    return x != x         ? 0
           : x >= 0x1p31f ? 2147483647
           : x < -0x1p31f ? INT_LEAST
                          : (int)x;
}

// A macro for the same reason as maximum.
#define fma_of(a, b, c) fmaf(a, b, c)
#define inverse(x) (1.0f / (x))

DEVICE unsigned bits_of(float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
DEVICE float float_of(unsigned bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The x of e^x as n ln 2 + r with a whole n.  The last bits of *low are n +
// bias: those of a sum with 1.5 * 2^23.  ln 2 has two parts; n times the first
// is exact (Cody and Waite, "Software Manual for the Elementary Functions",
// 1980).
DEVICE float exp_reduced(float x, int bias, unsigned *low) {
    const float shift = 12582912.0f + (float)bias;
    const float sum = fma_of(x, 1.442695f, shift), n = sum - shift;
    *low = bits_of(sum);
    return fma_of(n, -1.4286068e-6f, fma_of(n, -0.69314575f, x));
}

// e^r for an |r| up to ln 2 / 2: 1 + r + r^2 p(r) with a minimax polynomial p.
// It is 3.2e-9 wrong, before rounding.
DEVICE float exp_near_0(float r) {
    float sum = 0.0013818939f;
    sum = fma_of(sum, r, 0.008368704f);
    sum = fma_of(sum, r, 0.04166829f);
    sum = fma_of(sum, r, 0.16666521f);
    sum = fma_of(sum, r, 0.49999994f);
    return fma_of(fma_of(sum, r, 1.0f), r, 1.0f);
}

// 2^n for the n + 127 in the low 8 bits of `biased`.
DEVICE float power_of_2(unsigned biased) {
    return float_of(biased << 23);
}

// exp and tanh have no branches and call no function, so that loops over lanes
// become vectors.

// At most 0.90 units of the last place off.  2^n has two factors, as n goes
// from -150 to 128.
DEVICE float exp_of(float x) {
    unsigned low;
    const float r = exp_reduced(89.0f < x ? 89.0f : x, 2 * 127, &low);
    const unsigned half = low >> 1;
    const float y = exp_near_0(r) * power_of_2(half) * power_of_2(low - half);
    return x < -104.0f ? 0.0f : y;
}

// e^x for an x up to 0, at most 0.90 units of the last place off, and 0 below
// 2^-126.  For other x the result is any, and unused.
DEVICE float exp_weight(float x) {
    unsigned low;
    const float y = exp_near_0(exp_reduced(x, 127, &low)) * power_of_2(low);
    return x < -87.33654f ? 0.0f : y;
}

// At most 1.41 units of the last place off: x + x^3 p(x^2) with a minimax
// polynomial p up to an |x| of 0.6, where it is 2.8e-9 wrong, relative to its
// value; beyond, 1 - 2 / (e^2|x| + 1).
DEVICE float tanh_of(float x) {
    unsigned low;
    const float size = fabsf(x), square = x * x;
    float near = -0.0058979667f;
    near = fma_of(near, square, 0.020798625f);
    near = fma_of(near, square, -0.053784717f);
    near = fma_of(near, square, 0.13331936f);
    near = fma_of(near, square, -0.333333f);
    near = fma_of(near, square * size, size);
    const float twice = size > 10.0f ? 20.0f : 2.0f * size;
    const float y = exp_near_0(exp_reduced(twice, 127, &low));
    const float far = 1.0f - 2.0f / fma_of(y, power_of_2(low), 1.0f);
    return copysignf(size < 0.6f ? near : far, x);
}
#define expf(x) exp_of(x)
#define tanhf(x) tanh_of(x)

DEVICE float normal_pdf(float x) {
    return 0.3989423f * expf(-0.5f * x * x);
}

// ---- memory ----

// The widest vector of the processor, at any address.  A plain loop of copies
// becomes a memcpy, whose pieces stall the following loads.
#if defined __AVX512F__ || defined SINTER_PORTABLE
typedef float SinterVector
    __attribute__((vector_size(64), aligned(4), may_alias));
#else
typedef float SinterVector
    __attribute__((vector_size(32), aligned(4), may_alias));
#endif
enum { SINTER_VECTOR = sizeof(SinterVector) / sizeof(float) };
enum { SINTER_AHEAD = 2048 }; // bytes

DEVICE float get_f32(const float *p) {
    return *p;
}
DEVICE void put_f32(float *p, float v) {
    *p = v;
}
DEVICE int get_i32(const int *p) {
    return *p;
}
DEVICE void put_i32(int *p, int v) {
    *p = v;
}
DEVICE int get_u8(const unsigned char *p) {
    return *p;
}
DEVICE void put_u8(unsigned char *p, int v) {
    *p = (unsigned char)v;
}

// Prefetches: the hardware's prefetch ends at a page, and one core then mostly
// waits for memory.
DEVICE void load_f32(float *v, const float *p, int n) {
    int k = 0;
    ALIGNED(p, 4 * n);
    for (; k + SINTER_VECTOR <= n; k += SINTER_VECTOR) {
        __builtin_prefetch((const char *)(p + k) + SINTER_AHEAD);
        *(SinterVector *)(v + k) = *(const SinterVector *)(p + k);
    }
    for (; k < n; k++)
        v[k] = p[k];
}
DEVICE void store_f32(float *p, const float *v, int n) {
    int k = 0;
    ALIGNED(p, 4 * n);
    for (; k + SINTER_VECTOR <= n; k += SINTER_VECTOR)
        *(SinterVector *)(p + k) = *(const SinterVector *)(v + k);
    for (; k < n; k++)
        p[k] = v[k];
}
DEVICE void load_i32(int *v, const int *p, int n) {
    ALIGNED(p, 4 * n);
    for (int k = 0; k < n; k++)
        v[k] = p[k];
}
DEVICE void store_i32(int *p, const int *v, int n) {
    ALIGNED(p, 4 * n);
    for (int k = 0; k < n; k++)
        p[k] = v[k];
}
DEVICE void load_u8(int *v, const unsigned char *p, int n) {
    ALIGNED(p, n);
    for (int k = 0; k < n; k++)
        v[k] = p[k];
}
DEVICE void store_u8(unsigned char *p, const int *v, int n) {
    ALIGNED(p, n);
    for (int k = 0; k < n; k++)
        p[k] = (unsigned char)v[k];
}

// Elements of few bits from element `at` of p on, which starts at a byte.
DEVICE int get_bits(const unsigned char *p, size_t at, int bits) {
    return p[at * (size_t)bits / 8] >> (int)(at * (size_t)bits % 8) &
           ((1 << bits) - 1);
}
// From words: the elements of a word are a vector that is shifted.
DEVICE void load_bits(int *v, const unsigned char *p, size_t at, int n,
                      int bits) {
    const int each = 8 / bits, mask = (1 << bits) - 1;
    int k = 0;
    p += at * (size_t)bits / 8;
    ALIGNED(p, n / each);
    for (; k + 4 * each <= n; k += 4 * each, p += 4) {
        const unsigned word = (unsigned)p[0] | (unsigned)p[1] << 8 |
                              (unsigned)p[2] << 16 | (unsigned)p[3] << 24;
        LANES_DO(j, 4 * each)
        v[k + j] = (int)(word >> j * bits) & mask;
    }
    for (; k < n; k += each, p++) {
        const int byte = *p;
        LANES_DO(j, each)
        v[k + j] = byte >> j * bits & mask;
    }
}
DEVICE void store_bits(unsigned char *p, size_t at, const int *v, int n,
                       int bits) {
    const int each = 8 / bits;
    p += at * (size_t)bits / 8;
    ALIGNED(p, n / each);
    for (int b = 0; b < n / each; b++) {
        int byte = 0;
        for (int k = 0; k < each; k++)
            byte |= v[b * each + k] << k * bits;
        p[b] = (unsigned char)byte;
    }
}

#if SINTER_ACT == 32
#define get_act get_f32
#define put_act put_f32
#define load_act load_f32
#define store_act store_f32
#else
#if SINTER_ACT == 16 && defined __FLT16_MAX__
DEVICE float get_act(const act *p) {
    _Float16 h;
    memcpy(&h, p, sizeof h);
    return (float)h;
}
DEVICE void put_act(act *p, float v) {
    const _Float16 h = (_Float16)v;
    memcpy(p, &h, sizeof h);
}
#elif SINTER_ACT == 16
// The same bits for compilers without the type.
DEVICE float get_act(const act *p) {
    const unsigned sign = (unsigned)(p->bits & 0x8000u) << 16;
    const unsigned exponent = p->bits >> 10 & 31u, mantissa = p->bits & 1023u;
    const float small = (float)mantissa * 0x1p-24f;
    unsigned u = (exponent == 31 ? 255u : exponent + 112u) << 23 | mantissa
                                                                       << 13;
    float f;
    if (exponent == 0)
        memcpy(&u, &small, sizeof u);
    u |= sign;
    memcpy(&f, &u, sizeof f);
    return f;
}
// To nearest, ties to even.
DEVICE void put_act(act *p, float v) {
    const float small = fabsf(v) + 0.5f; // its last bit is the smallest half
    unsigned u, low;
    memcpy(&u, &v, sizeof u);
    memcpy(&low, &small, sizeof low);
    const unsigned sign = u >> 16 & 0x8000u;
    u &= 0x7fffffffu;
    const unsigned bits =
        u > 0x7f800000u    ? 0x7e00u
        : u >= 0x477ff000u ? 0x7c00u
        : u < 0x38800000u  ? low - 0x3f000000u
                           : (u + 0xfffu + (u >> 13 & 1u) - 0x38000000u) >> 13;
    p->bits = (unsigned short)(sign | bits);
}
#else
DEVICE float get_act(const act *p) {
    const unsigned u = (unsigned)p->bits << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
// To nearest, ties to even; NaN stays NaN.
DEVICE void put_act(act *p, float v) {
    unsigned u;
    memcpy(&u, &v, sizeof u);
    p->bits = v != v ? 0x7fff
                     : (unsigned short)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
#endif
DEVICE void load_act(float *v, const act *p, int n) {
    ALIGNED(p, 2 * n);
    for (int k = 0; k < n; k++)
        v[k] = get_act(p + k);
}
DEVICE void store_act(act *p, const float *v, int n) {
    ALIGNED(p, 2 * n);
    for (int k = 0; k < n; k++)
        put_act(p + k, v[k]);
}
#endif

// ---- operations of a block with one thread ----

#ifdef SINTER_SIMT
#include "runtime/prelude/block.h"
#else
#define BARRIER() ((void)0)
#define row_sum(v, threads, shared) ((void)(shared), (v))
#define row_max(v, threads, shared) ((void)(shared), (v))
#define row_argmax(v, index, threads, shared) ((void)(shared), (index))

DEVICE void columns_sum(float *out, const float *v, int n, int columns,
                        float *shared, int tx, int threads) {
    (void)columns, (void)shared, (void)tx, (void)threads;
    store_f32(out, v, n);
}
#define columns_max columns_sum

#define total_sum(out, v, n, shared, threads)                                  \
    ((void)(shared), *(out) = lanes_sum(v, n))
#define total_max(out, v, n, shared, threads)                                  \
    ((void)(shared), *(out) = lanes_max(v, n))

// Adds or compares partial results in the order of their blocks.
DEVICE void grid_sum(float *v, int n, int at_a_time, int c, int end, int next,
                     const float *partials, int step, int count, int tx,
                     float *shared, int threads) {
    (void)at_a_time, (void)end, (void)tx, (void)shared, (void)threads;
    for (int j = 0; j < n; j++) {
        float all = 0.0f;
        for (int i = 0; i < count; i++)
            all = all + partials[(size_t)i * step + c + j * next];
        v[j] = all;
    }
}

DEVICE void grid_max(float *v, int n, int at_a_time, int c, int end, int next,
                     const float *partials, int step, int count, int tx,
                     float *shared, int threads) {
    (void)at_a_time, (void)end, (void)tx, (void)shared, (void)threads;
    for (int j = 0; j < n; j++) {
        float all = -INF;
        for (int i = 0; i < count; i++)
            all = maximum(all, partials[(size_t)i * step + c + j * next]);
        v[j] = all;
    }
}

// The sum of n numbers in their order.
DEVICE float partials_sum(const float *partials, int n, float *shared,
                          int threads) {
    float sum = 0.0f;
    (void)shared, (void)threads;
    for (int i = 0; i < n; i++)
        sum += partials[i];
    return sum;
}

DEVICE int list_rows(int *listed, const int *named, int per, int from, int lo,
                     int hi, int threads) {
    (void)threads;
    int count = 0;
    UNROLLED(m, per) {
        listed[2 * count] = from + m;
        listed[2 * count + 1] = named[m];
        count += named[m] >= lo && named[m] < hi;
    }
    return count;
}

// Whether this block is the last of the launch to arrive; resets the block
// counter `counter` to 0.
DEVICE int last_block(int *counter, int blocks) {
    const int last =
        __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL) == blocks - 1;
    if (last)
        *counter = 0;
    return last;
}

// One last block has all shares.
#define block_begins(counter) ((void)(counter))
#define last_blocks(counter, blocks, most, shares)                             \
    ((shares)[0] = 0, (shares)[1] = 1, last_block(counter, blocks))
#define last_blocks_end(counter, shares) ((void)(counter), (void)(shares))

// Blocks first .. last-1 of a grid.
#define HOST_BLOCKS(function, name, ...)                                       \
    REALIGNED void function(char *arena, const size_t *arg, int first,         \
                            int last, int grid, int phase) {                   \
        gridDim.x = grid;                                                      \
        sinter_phase = phase;                                                  \
        for (int block = first; block < last; block++) {                       \
            blockIdx.x = block;                                                \
            name(__VA_ARGS__);                                                 \
        }                                                                      \
    }

// The entry point that the runtime calls.
#define HOST_KERNEL(name, ...)                                                 \
    SINTER_ENTRY HOST_BLOCKS(name##_host, name, __VA_ARGS__)

// A function of several kernels, and the entry point of one of them.
#define HOST_FAMILY(name, ...)                                                 \
    static HOST_BLOCKS(name##_family, name, __VA_ARGS__)
#define SPEC_VALUES(...)                                                       \
    { __VA_ARGS__ }
#define HOST_LIKE(name, head, values, ...)                                     \
    SINTER_ENTRY REALIGNED void name##_host(char *arena, const size_t *arg,    \
                                            int first, int last, int grid,     \
                                            int phase) {                       \
        static const SinterSpecConstant own[] = values;                        \
        sinter_spec_constants = own;                                           \
        head##_family(arena, arg, first, last, grid, phase);                   \
    }
#endif

// Such an entry point in another translation unit.
#define HOST_ENTRY(name)                                                       \
    void name##_host(char *arena, const size_t *arg, int first, int last,      \
                     int grid, int phase)

// Argument i of a kernel as a pointer.
#define ARG(type, i) ((type)(arena + arg[i]))

#endif
