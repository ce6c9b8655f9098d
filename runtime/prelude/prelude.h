// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The prelude: the meaning of the kernels' text.  The text is the same
// everywhere; this selects its definitions.
//
//   CUDA          compiled by NVRTC or nvcc
//   SINTER_SIMT   C, every CUDA thread exists: for tests
//   otherwise     C, one thread for each block, lanes become vectors
//
// A lane is an element of the vector that a thread computes at once.  CUDA's
// lane, the place of a thread in its warp, is called warp_lane.
//
// SINTER_ACT is the type of activations: 32 for f32, 16 for f16, 1 for bf16.
#ifndef SINTER_PRELUDE_H
#define SINTER_PRELUDE_H

#ifndef SINTER_ACT
#define SINTER_ACT 32
#endif

// SINTER_KERNEL is the number of one kernel to compile.
#ifdef SINTER_KERNEL
#define IS_NEEDED(number) ((number) == SINTER_KERNEL)
#else
#define IS_NEEDED(number) 1
#endif

// Lanes that a block adds at once; it has memory for so many.
enum { REDUCE_LANES = 4 };

#ifdef __CUDACC__
#include "runtime/prelude/cuda.h"
#else
#include "runtime/prelude/host.h"
#endif

// The host compiles one of the kernels that differ in specialization constants
// only, which are its parameters.
#ifndef SPEC_INT
#define SPEC_INT(i, own) (own)
#define SPEC_FLOAT(i, own) (own)
#endif

// Elsewhere one of several vectors of a window is stored as any other.
#ifndef SINTER_PLACES
#define place_act store_act
#define place_f32 store_f32
#endif

// A kernel does the work of block `block` of `blocks`: parameters of a body in
// a merged launch, or this line.
#define DECLARE_BLOCK                                                          \
    const int block = blockIdx.x, blocks = gridDim.x;                          \
    (void)block, (void)blocks

// In a merged launch a block does the work of several of a kernel's n blocks,
// one after another, as there may be fewer blocks than the plan has.
#define FOR_BLOCKS(n)                                                          \
    for (int block = blockIdx.x; block < (n); block += gridDim.x, BARRIER())

// The rows lo .. hi-1 of this block: contiguous runs, as even as possible.  In
// 32 bits if that suffices: a division of 64 bits is a call on a GPU, and calls
// spill.
#define BLOCK_RANGE(lo, hi, rows) PART_OF(int, lo, hi, rows, block, blocks)
#define BLOCK_RANGE_OF(type, lo, hi, rows)                                     \
    PART_OF(type, lo, hi, rows, block, blocks)
#define PART_OF(type, lo, hi, rows, part, parts)                               \
    const type lo##_each = (rows) / parts;                                     \
    const int lo##_rest = (int)((rows) % parts);                               \
    const type lo = part * lo##_each + (part < lo##_rest ? part : lo##_rest);  \
    const type hi = lo + lo##_each + (part < lo##_rest);                       \
    ASSUME(lo >= 0)

// The rows of this block, of the blocks with its tile of columns.
#define TILE_CHUNK(lo, hi, rows) PART_OF(int, lo, hi, rows, chunk, chunks)

// Threads side by side along the columns: a power of two, so that it divides
// the block.
#define THREADS_ALONG_AT(cg, nt, n) ((cg) > (n) / 2 && (n) <= (nt)) ? (n)
#define THREADS_ALONG(cg, nt)                                                  \
    (THREADS_ALONG_AT(cg, nt, 256)                                             \
     : THREADS_ALONG_AT(cg, nt, 128)                                           \
     : THREADS_ALONG_AT(cg, nt, 64)                                            \
     : THREADS_ALONG_AT(cg, nt, 32)                                            \
     : THREADS_ALONG_AT(cg, nt, 16)                                            \
     : THREADS_ALONG_AT(cg, nt, 8)                                             \
     : THREADS_ALONG_AT(cg, nt, 4)                                             \
     : THREADS_ALONG_AT(cg, nt, 2) : 1)

// The same without sums over threads, where any number is possible: as many as
// there are columns, if more threads have work then.
#define THREADS_ALONG_ROW(cg, nt)                                              \
    ((cg) <= (nt) / 2 && (nt) / ((cg) + !(cg)) * THREADS_ALONG(cg, nt) > (nt)  \
         ? (cg)                                                                \
         : THREADS_ALONG(cg, nt))

// The place in shared memory of lane k of vector j, of the thread in place x of
// tx.  Threads side by side read four lanes at a time from successive places.
DEVICE int factor_offset(int j, int k, int x, int tx, int lanes) {
    const int at_once = lanes % 4 == 0 ? 4 : 1;
    return ((j * (lanes / at_once) + k / at_once) * tx + x) * at_once +
           k % at_once;
}

// Threads that share a row of c elements, vw at a time each and so many times;
// more often if a warp is too few.
#define ROW_THREADS_OF(c, vw, nt, times)                                       \
    ((c) > 1024 ? (nt)                                                         \
                : THREADS_ALONG(((c) / (vw) + (times)-1) / (times),            \
                                (nt) < 32 ? (nt) : 32))
// Threads that are in step: a warp, or a row's if these are more.
#define SYNC_THREADS_OF(nt, row) ((row) > 32 || (nt) < 32 ? (nt) : 32)
// The first of their rows.
#define SYNC_ROW(step, row) (threadIdx.x / (step) * ((step) / (row)))

// 16 lanes or more become the first four of `side`: vectors of 16 are combined,
// then its halves.
#define TO_FOUR(side, v, n, op)                                                \
    LANES_DO(k, 16) side[k] = v[k];                                            \
    for (int from = 16; from < (n); from += 16)                                \
        LANES_DO(k, 16) side[k] = op(side[k], v[from + k]);                    \
    LANES_DO(k, 8) side[k] = op(side[k], side[8 + k]);                         \
    UNROLLED(k, 4) side[k] = op(side[k], side[4 + k])
#define SUM_OF(a, b) ((a) + (b))

// Over the lanes of one thread: from the first on, except for the host's many.
DEVICE float lanes_sum(const float *v, int n) {
    float side[16], sum = 0.0f;
    if (n % 16 == 0) {
        TO_FOUR(side, v, n, SUM_OF);
        v = side, n = 4;
    }
    UNROLLED(k, n) sum += v[k];
    return sum;
}

DEVICE float lanes_max(const float *v, int n) {
    float side[16], most = -INF;
    if (n % 16 == 0) {
        TO_FOUR(side, v, n, maximum);
        v = side, n = 4;
    }
    UNROLLED(k, n) most = maximum(most, v[k]);
    return most;
}

// Whether x comes before y in the search for the largest; NaN is larger than
// any number.
DEVICE int beats(float x, float y) {
    return (x > y) | ((x != x) & (y == y));
}

// The smallest index of a lane with the largest value.
DEVICE int lanes_argmax(const float *v, const int *at, int n) {
    const float most = lanes_max(v, n);
    int first = -1;
    UNROLLED(k, n)
    first = !beats(most, v[k]) && (first < 0 || at[k] < first) ? at[k] : first;
    return first;
}

// An index clamped to 0 .. n-1, or mirrored without repeating the edge.
DEVICE int clamp_index(int i, int n) {
    return i < 0 ? 0 : i < n ? i : n - 1;
}

DEVICE int reflect(int i, int n) {
    i = i < 0 ? -i : i;
    return clamp_index(i < n ? i : 2 * (n - 1) - i, n);
}

// Integer division; by 0 it is 0.
DEVICE int quotient(int a, int b) {
    return b == 0 ? 0 : b == -1 ? (int)(0u - (unsigned)a) : a / b;
}

DEVICE int remainder_of(int a, int b) {
    return b == 0 || b == -1 ? 0 : a % b;
}

// The weight of pixel i of `size` in place o of a resized row; a place is
// `step` pixels.
DEVICE float blend_share(int o, int i, float step, int size) {
    float at = (float)o * step + (0.5f * step - 0.5f);
    at = at < 0.0f ? 0.0f : at;
    const int low = (int)at, high = low + 1 < size ? low + 1 : low;
    const float share = at - (float)low;
    return (low == i ? 1.0f - share : 0.0f) + (high == i ? share : 0.0f);
}

DEVICE int is_finite(float x) {
    return x - x == 0.0f;
}

// The logarithm, at most 0.94 units of the last place off: x is 2^e (1 + f)
// with an |f| up to 1/3, where f - f^2/2 + f^3 p(f) with a minimax polynomial p
// is 4.7e-9 wrong, relative to its value.  Numbers below 2^-126 are multiplied
// by 2^23 first.  For NaN, INF and negative numbers, x * INF + INF is the
// result.
DEVICE float log_of(float x) {
    const int tiny = x < 1.17549435e-38f;
    const unsigned bits = bits_of(tiny ? 8388608.0f * x : x);
    const unsigned e = (bits - 0x3f2aaaabu) & 0xff800000u;
    const float f = float_of(bits - e) - 1.0f;
    float sum = -0.12880033f;
    sum = fma_of(sum, f, 0.13984594f);
    sum = fma_of(sum, f, -0.1218748f);
    sum = fma_of(sum, f, 0.14005734f);
    sum = fma_of(sum, f, -0.16680196f);
    sum = fma_of(sum, f, 0.20010427f);
    sum = fma_of(sum, f, -0.24999806f);
    sum = fma_of(sum, f, 0.33333215f);
    sum = fma_of(sum, f, -0.5f);
    sum = fma_of(sum, f * f, f);
    const int exponent = (int)(tiny ? e - (23u << 23) : e); // times 2^23
    sum = fma_of((float)exponent, 8.2629582e-8f, sum);
    sum = bits >= 0x7f800000u ? fma_of(x, INF, INF) : sum;
    return x == 0.0f ? -INF : sum;
}
#define logf(x) log_of(x)

DEVICE float sigmoid(float x) {
    return inverse(1.0f + expf(-x));
}

// The cumulative normal distribution.  The tail beyond |x| is the density,
// which a kernel with both computes once, times a factor that decreases as 1 /
// |x|: a polynomial in t.  The tail is at most 3e-8 wrong; relative to its
// value 7e-8 up to an |x| of 1, 3.3e-7 to 3, 1.4e-6 to 5, 4e-5 to 13.
DEVICE float normal_cdf(float x) {
    const float t = inverse(fma_of(0.34f, fabsf(x), 1.0f));
    float tail = 0.11329754f;
    tail = fma_of(tail, t, -0.50659825f);
    tail = fma_of(tail, t, 0.66878087f);
    tail = fma_of(tail, t, -0.083193998f);
    tail = fma_of(tail, t, 0.39554495f);
    tail = fma_of(tail, t, 0.32444287f);
    tail = fma_of(tail, t, 0.34104015f);
    tail = tail * (t * normal_pdf(x));
    return x < 0.0f ? tail : 1.0f - tail;
}

// The variance of statistics in a program with SINTER_STATISTICS: a kernel's
// result, or computed from a library's sums of values and of squares, times 1 /
// their count.
#ifdef SINTER_STATISTICS
#ifdef DECLARE_FLAGS
// Set before a step runs: 1 if a library call computes the statistics.
DECLARE_FLAGS(sinter_squares, SINTER_STATISTICS)
DEVICE float var_finalize(float stored, float sum, float per_count,
                          int number) {
    const float mean = sum * per_count;
    const float spread = stored * per_count - mean * mean;
    return !sinter_squares[number] ? stored : spread < 0.0f ? 0.0f : spread;
}
#else
DEVICE float var_finalize(float stored, float sum, float per_count,
                          int number) {
    (void)sum, (void)per_count, (void)number;
    return stored;
}
#endif
#endif

// Words of a block of Philox4x32-10 (Salmon et al., SC11): key (seed, stream),
// counter (block, epoch, 0, 0).
typedef struct {
    Word w0, w1, w2, w3;
} Words;

DEVICE Words philox(int seed, int stream, int epoch, unsigned block) {
    unsigned k0 = (unsigned)seed, k1 = (unsigned)stream;
    Words c = {block, (unsigned)epoch, 0, 0};
    UNROLLED(round, OPEN_ROUNDS) {
        const unsigned long long p0 = 0xD2511F53ull * c.w0;
        const unsigned long long p1 = 0xCD9E8D57ull * c.w2;
        c.w0 = (Word)(p1 >> 32) ^ c.w1 ^ k0;
        c.w1 = (Word)(p1 & 0xffffffffu);
        c.w2 = (Word)(p0 >> 32) ^ c.w3 ^ k1;
        c.w3 = (Word)(p0 & 0xffffffffu);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    LAST_ROUNDS(c.w0, c.w1, c.w2, c.w3, k0, k1);
    return c;
}

// The upper 24 bits of word at % 4.
DEVICE int upper_of(Words c, int at) {
    const Word even = at & 2 ? c.w2 : c.w0, odd = at & 2 ? c.w3 : c.w1;
    return (int)((at & 1 ? odd : even) >> 8);
}

// 24 bits as a number in 0 .. 1, in steps of 2^-24.
DEVICE float fraction(int upper) {
    return (float)upper * (1.0f / 16777216.0f);
}

// Number `index` of a stream with one block for each number.
DEVICE float uniform(int seed, int stream, int epoch, int index) {
    return fraction(upper_of(philox(seed, stream, epoch, (unsigned)index), 0));
}

// Number `index` of a stream with one block for four numbers.
DEVICE float draw_one(int seed, int stream, int epoch, int index) {
    return fraction(
        upper_of(philox(seed, stream, epoch, (unsigned)index / 4), index));
}

// The bits of numbers index .. index+n-1 of it; n divides index.  Unless 4
// divides n, the blocks at both ends contribute some words only.
DEVICE void draw_lanes(int *v, int n, int seed, int stream, int epoch,
                       int index) {
    const unsigned block = (unsigned)index / 4;
    const int most = n % 2 == 0 ? 2 : 3, first = index & most;
    if (n % 4 == 0) {
        BLOCKS_DO(b, n / 4) {
            const Words c = philox(seed, stream, epoch, block + (unsigned)b);
            v[4 * b] = upper_of(c, 0);
            v[4 * b + 1] = upper_of(c, 1);
            v[4 * b + 2] = upper_of(c, 2);
            v[4 * b + 3] = upper_of(c, 3);
        }
        return;
    }
    UNROLLED(b, (n + most + 3) / 4) {
        const Words c = philox(seed, stream, epoch, block + (unsigned)b);
        UNROLLED(k, n) {
            if ((first + k) / 4 == b)
                v[k] = upper_of(c, first + k);
        }
    }
}

// The member that chunk `at` belongs to, of members that begin at these chunks.
DEVICE int chunk_owner(const int *first, int count, int at) {
    int low = 0;
    for (; count > 1; count -= count / 2)
        low += first[low + count / 2] <= at ? count / 2 : 0;
    return low;
}

DEVICE float median(float a, float b, float c) {
    const float low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

// The variance of n samples from the sums of their distances from a pivot, and
// of the squares of these.
DEVICE float variance_of_sums(float sum, float squares, float n) {
    const float v = fma_of(-sum, sum / n, squares) / n;
    return v < 0.0f ? 0.0f : v;
}

#endif
