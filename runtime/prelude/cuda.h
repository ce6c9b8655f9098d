// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The prelude for CUDA. It needs no header, so NVRTC compiles a kernel without
// an include path: halves are converted by inline PTX.
#ifndef SINTER_CUDA_H
#define SINTER_CUDA_H

#define DEVICE static __device__ __forceinline__
// The body of a kernel in a merged launch; it may also be compiled separately.
#define BODY DEVICE __attribute__((unused)) void
// KERNEL(threads) or KERNEL(threads, blocks).  ptxas gives a thread at most as
// many registers as let `blocks` blocks reside on a multiprocessor: with 256
// threads 255 for one block, the default, and 128 for two.  Without a number of
// blocks it gives at most 64, and spills a few.
#define KERNEL(...) KERNEL_OF(__VA_ARGS__, 1, 0)
#define KERNEL_OF(threads, blocks, ...)                                        \
    extern "C" __global__ void __launch_bounds__(threads, blocks)
// All blocks of a launch with phases must be resident: two always fit.
#define PHASED(threads)                                                        \
    extern "C" __global__ void __launch_bounds__(threads, 2)
// Merged launches, too; they use the blocks that are resident.
#define SINTER_MERGED
#define MERGED KERNEL
#define RESTRICT __restrict__
#define SHARED __shared__ __align__(16)
// Kernels load vectors of up to 16 bytes from shared memory and tables.
// Constant memory has 64 KB for all kernels, so large tables are in global
// memory.
#define TABLE static __constant__ __align__(16) const
#define LARGE_TABLE static __device__ __align__(16) const
// A byte for each statistic, which the runtime sets.
#define DECLARE_FLAGS(name, count)                                             \
    extern "C" {                                                               \
    __constant__ unsigned char name[count];                                    \
    }
#define HOST_GPU(host, device) (device)
#define ASSUME(fact)
// i, which is not negative: where NVRTC extends the sign of an offset, it
// splits some stores of 16 bytes, but not if the sign bit is known to be 0.
DEVICE int nonnegative(int i) {
    return i & 0x7fffffff;
}
#define THREADS(n) (n)
#define LANES(c)                                                               \
    ((c) % 8 == 0 ? 8 : (c) % 4 == 0 ? 4 : (c) % 2 == 0 ? 2 : (c) <= 16 ? (c) : 1)
// Multi-tensor chunks are mostly f32, so 16 bytes per thread make a warp's
// access whole sectors.
#define MULTI_TENSOR_LANES 4
#define LANES_DO(k, n) UNROLLED(k, n)
#define UNROLLED(k, n) _Pragma("unroll") for (int k = 0; k < (n); k++)
#define BLOCKS_DO(b, n) UNROLLED(b, n)
// A loop whose turns do not share registers.
#define NO_UNROLL(i, n) _Pragma("unroll 1") for (int i = 0; i < (n); i++)
// The first rounds of Philox are for the optimizer: half of their factors are 0
// or do not depend on the element.  The others are one asm statement that it
// cannot look into, in a loop: NVRTC takes a third less time for a kernel that
// draws for every lane, and blocks are computed one after another in the same
// registers.  A round goes from four registers to four others.
enum { OPEN_ROUNDS = 2 };
#define PHILOX_ROUND(c0, c1, c2, c3, n0, n1, n2, n3)                           \
    "mul.wide.u32 p, " c0 ", 0xD2511F53; mul.wide.u32 q, " c2 ", 0xCD9E8D57;"  \
    "mov.b64 {" n1 ", h}, q; lop3.b32 " n0 ", h, " c1 ", %4, 0x96;"            \
    "mov.b64 {" n3 ", h}, p; lop3.b32 " n2 ", h, " c3 ", %5, 0x96;"            \
    "add.s32 %4, %4, 0x9E3779B9; add.s32 %5, %5, 0xBB67AE85;"
#define PHILOX_ROUNDS                                                          \
    PHILOX_ROUND("%0", "%1", "%2", "%3", "n0", "n1", "n2", "n3")               \
    PHILOX_ROUND("n0", "n1", "n2", "n3", "%0", "%1", "%2", "%3")
typedef unsigned Word;
#define LAST_ROUNDS(c0, c1, c2, c3, k0, k1)                                    \
    _Pragma("unroll 1") for (int half = 0; half < 2; half++) asm(              \
        "{.reg .b64 p, q; .reg .b32 h, n0, n1, n2, n3;" PHILOX_ROUNDS          \
            PHILOX_ROUNDS "}"                                                  \
        : "+r"(c0), "+r"(c1), "+r"(c2), "+r"(c3), "+r"(k0), "+r"(k1))
// Unrolls a loop two or three times, so that the loads of all turns can come
// before the first is computed.
#define UNROLL_2 _Pragma("unroll 2")
#define UNROLL_3 _Pragma("unroll 3")
// A loop over the parts of the columns that are this last block's.
#define SHARES_DO(share, n, shares)                                            \
    _Pragma("unroll 1") for (int share = (shares)[0]; share < (n);             \
                             share += (shares)[1])
#define INF __int_as_float(0x7f800000)
#define INT_LEAST (-2147483647 - 1)

#if SINTER_ACT == 32
typedef float act;
#else
struct __align__(2) act {
    unsigned short bits;
};
#endif

// ---- halves ----

#if SINTER_ACT == 16
DEVICE float widen_one(unsigned short half) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(half));
    return f;
}
DEVICE void widen(float *low, float *high, unsigned pair) {
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l;"
        " cvt.f32.f16 %1, h;}"
        : "=f"(*low), "=f"(*high) : "r"(pair));
}
DEVICE unsigned narrow(float low, float high) {
    unsigned pair;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
#else
    asm("{.reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2;"
        " mov.b32 %0, {l, h};}"
        : "=r"(pair) : "f"(low), "f"(high));
#endif
    return pair;
}
#elif SINTER_ACT == 1
DEVICE float widen_one(unsigned short half) {
    return __uint_as_float((unsigned)half << 16);
}
DEVICE void widen(float *low, float *high, unsigned pair) {
    *low = __uint_as_float(pair << 16);
    *high = __uint_as_float(pair & 0xffff0000u);
}
// To nearest, ties to even; NaN becomes 0x7fff.
#if __CUDA_ARCH__ >= 800
DEVICE unsigned narrow(float low, float high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
#else
DEVICE unsigned narrow_one(float x) {
    const unsigned u = __float_as_uint(x);
    return x != x ? 0x7fffu : (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
DEVICE unsigned narrow(float low, float high) {
    return narrow_one(high) << 16 | narrow_one(low);
}
#endif
#endif

// ---- memory: one element, and vectors of n lanes ----

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

DEVICE void load_f32(float *v, const float *p, int n) {
    if (n % 4 == 0) {
        LANES_DO(k, n / 4) {
            const float4 u = ((const float4 *)p)[k];
            v[4 * k] = u.x, v[4 * k + 1] = u.y;
            v[4 * k + 2] = u.z, v[4 * k + 3] = u.w;
        }
    } else if (n % 2 == 0) {
        LANES_DO(k, n / 2) {
            const float2 u = ((const float2 *)p)[k];
            v[2 * k] = u.x, v[2 * k + 1] = u.y;
        }
    } else {
        LANES_DO(k, n) v[k] = p[k];
    }
}
DEVICE void store_f32(float *p, const float *v, int n) {
    if (n % 4 == 0) {
        LANES_DO(k, n / 4)
        ((float4 *)p)[k] =
            make_float4(v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
    } else if (n % 2 == 0) {
        LANES_DO(k, n / 2)
        ((float2 *)p)[k] = make_float2(v[2 * k], v[2 * k + 1]);
    } else {
        LANES_DO(k, n) p[k] = v[k];
    }
}
// As store_f32 for one of several vectors of a window; there the compiler would
// store four bytes at a time.  The memory clobber is necessary: a later phase
// of a merged launch reads the stores.
#define SINTER_PLACES
DEVICE void place_f32(float *p, const float *v, int n) {
    if (n % 4 == 0) {
        LANES_DO(k, n / 4)
        asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};"
                     :
                     : "l"(__cvta_generic_to_global(p + 4 * k)), "f"(v[4 * k]),
                       "f"(v[4 * k + 1]), "f"(v[4 * k + 2]), "f"(v[4 * k + 3])
                     : "memory");
    } else {
        store_f32(p, v, n);
    }
}
DEVICE void load_i32(int *v, const int *p, int n) {
    if (n % 4 == 0) {
        LANES_DO(k, n / 4) {
            const int4 u = ((const int4 *)p)[k];
            v[4 * k] = u.x, v[4 * k + 1] = u.y;
            v[4 * k + 2] = u.z, v[4 * k + 3] = u.w;
        }
    } else if (n % 2 == 0) {
        LANES_DO(k, n / 2) {
            const int2 u = ((const int2 *)p)[k];
            v[2 * k] = u.x, v[2 * k + 1] = u.y;
        }
    } else {
        LANES_DO(k, n) v[k] = p[k];
    }
}
DEVICE void store_i32(int *p, const int *v, int n) {
    if (n % 4 == 0) {
        LANES_DO(k, n / 4)
        ((int4 *)p)[k] =
            make_int4(v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
    } else if (n % 2 == 0) {
        LANES_DO(k, n / 2)
        ((int2 *)p)[k] = make_int2(v[2 * k], v[2 * k + 1]);
    } else {
        LANES_DO(k, n) p[k] = v[k];
    }
}
DEVICE void load_u8(int *v, const unsigned char *p, int n) {
    if (n == 8) {
        const uint2 u = *(const uint2 *)p;
        LANES_DO(k, 4) {
            v[k] = (int)(u.x >> 8 * k & 255u);
            v[4 + k] = (int)(u.y >> 8 * k & 255u);
        }
    } else {
        LANES_DO(k, n) v[k] = p[k];
    }
}
DEVICE void store_u8(unsigned char *p, const int *v, int n) {
    if (n == 8) {
        uint2 u = make_uint2(0, 0);
        LANES_DO(k, 4) {
            u.x |= ((unsigned)v[k] & 255u) << 8 * k;
            u.y |= ((unsigned)v[4 + k] & 255u) << 8 * k;
        }
        *(uint2 *)p = u;
    } else {
        LANES_DO(k, n) p[k] = (unsigned char)v[k];
    }
}

// Elements of few bits from element `at` of p on, which starts at a byte.
DEVICE int get_bits(const unsigned char *p, size_t at, int bits) {
    return p[at * bits / 8] >> at * bits % 8 & ((1 << bits) - 1);
}
DEVICE void load_bits(int *v, const unsigned char *p, size_t at, int n,
                      int bits) {
    p += at * bits / 8;
    if (n == 8) {
        const unsigned u = bits == 1   ? *p
                           : bits == 2 ? *(const unsigned short *)p
                                       : *(const unsigned *)p;
        LANES_DO(k, 8) v[k] = (int)(u >> k * bits & ((1u << bits) - 1));
    } else {
        LANES_DO(k, n) v[k] = get_bits(p, k, bits);
    }
}
DEVICE void store_bits(unsigned char *p, size_t at, const int *v, int n,
                       int bits) {
    p += at * bits / 8;
    if (n == 8) {
        unsigned u = 0;
        LANES_DO(k, 8) u |= (unsigned)v[k] << k * bits;
        if (bits == 1)
            *p = (unsigned char)u;
        else if (bits == 2)
            *(unsigned short *)p = (unsigned short)u;
        else
            *(unsigned *)p = u;
    } else {
        LANES_DO(b, n * bits / 8) {
            unsigned u = 0;
            LANES_DO(k, 8 / bits)
            u |= (unsigned)v[b * (8 / bits) + k] << k * bits;
            p[b] = (unsigned char)u;
        }
    }
}

#if SINTER_ACT == 32
#define get_act get_f32
#define put_act put_f32
#define load_act load_f32
#define store_act store_f32
#define place_act place_f32
#else
DEVICE float get_act(const act *p) {
    return widen_one(p->bits);
}
DEVICE void put_act(act *p, float v) {
    p->bits = (unsigned short)narrow(v, 0.0f);
}
DEVICE void load_act(float *v, const act *p, int n) {
    if (n % 8 == 0) {
        LANES_DO(k, n / 8) {
            const uint4 u = ((const uint4 *)p)[k];
            widen(&v[8 * k], &v[8 * k + 1], u.x);
            widen(&v[8 * k + 2], &v[8 * k + 3], u.y);
            widen(&v[8 * k + 4], &v[8 * k + 5], u.z);
            widen(&v[8 * k + 6], &v[8 * k + 7], u.w);
        }
    } else if (n % 4 == 0) {
        LANES_DO(k, n / 4) {
            const uint2 u = ((const uint2 *)p)[k];
            widen(&v[4 * k], &v[4 * k + 1], u.x);
            widen(&v[4 * k + 2], &v[4 * k + 3], u.y);
        }
    } else if (n % 2 == 0) {
        LANES_DO(k, n / 2)
        widen(&v[2 * k], &v[2 * k + 1], ((const unsigned *)p)[k]);
    } else {
        LANES_DO(k, n) v[k] = get_act(p + k);
    }
}
DEVICE void store_act(act *p, const float *v, int n) {
    if (n % 8 == 0) {
        LANES_DO(k, n / 8) {
            uint4 u;
            u.x = narrow(v[8 * k], v[8 * k + 1]);
            u.y = narrow(v[8 * k + 2], v[8 * k + 3]);
            u.z = narrow(v[8 * k + 4], v[8 * k + 5]);
            u.w = narrow(v[8 * k + 6], v[8 * k + 7]);
            ((uint4 *)p)[k] = u;
        }
    } else if (n % 4 == 0) {
        LANES_DO(k, n / 4)
        ((uint2 *)p)[k] = make_uint2(narrow(v[4 * k], v[4 * k + 1]),
                                     narrow(v[4 * k + 2], v[4 * k + 3]));
    } else if (n % 2 == 0) {
        LANES_DO(k, n / 2)
        ((unsigned *)p)[k] = narrow(v[2 * k], v[2 * k + 1]);
    } else {
        LANES_DO(k, n) put_act(p + k, v[k]);
    }
}
DEVICE void place_act(act *p, const float *v, int n) {
    if (n == 8)
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                     :
                     : "l"(__cvta_generic_to_global(p)),
                       "r"(narrow(v[0], v[1])), "r"(narrow(v[2], v[3])),
                       "r"(narrow(v[4], v[5])), "r"(narrow(v[6], v[7]))
                     : "memory");
    else if (n == 4)
        asm volatile("st.global.v2.u32 [%0], {%1, %2};"
                     :
                     : "l"(__cvta_generic_to_global(p)),
                       "r"(narrow(v[0], v[1])), "r"(narrow(v[2], v[3]))
                     : "memory");
    else
        store_act(p, v, n);
}
#endif

// Rounds towards 0.  NaN becomes 0; values out of range are clamped.
DEVICE int int_of(float x) {
    return __float2int_rz(x);
}

DEVICE float fma_of(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
}

DEVICE unsigned bits_of(float x) {
    return __float_as_uint(x);
}
DEVICE float float_of(unsigned bits) {
    return __uint_as_float(bits);
}

// 1 / x to one ulp.
DEVICE float inverse(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// e^x for an x up to 0; 0 below 2^-126.  The rounded product alone is as many
// units of the last place off as |x|, of a result that is as small.
DEVICE float exp_weight(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(1.442695f * x));
    return y;
}

// A power of 2, whose exponent includes the logarithm of the factor; 0 below
// 2^-126.
DEVICE float normal_pdf(float x) {
    const float root = 0.8493218f * x;
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;"
        : "=f"(y) : "f"(__fmaf_rn(-root, root, -1.3257481f)));
    return y;
}

// The larger of two; of zeros the positive one; NaN is larger than any.
DEVICE float maximum(float a, float b) {
#if __CUDA_ARCH__ >= 800
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
#else
    return (b > a) | (b != b) ? b : a;
#endif
}

#define SHUFFLE(v, source) __shfl_sync(0xffffffffu, v, source)
#define BARRIER() __syncthreads()

// Adds to a counter of several blocks; `before` is its former value.  With
// "acq_rel", writes that come before it are visible to threads that come after
// a later add; with "release", to those that acquire the counter otherwise.
// "relaxed" orders nothing.  Before 7.0 each of them orders all.
#if __CUDA_ARCH__ >= 700
#define COUNTER_ADD(order, before, counter, by)                                \
    asm volatile("atom." order ".gpu.global.add.s32 %0, [%1], %2;"             \
                 : "=r"(before)                                                \
                 : "l"(__cvta_generic_to_global(counter)), "r"(by)             \
                 : "memory")
#define FENCE() asm volatile("fence.acq_rel.gpu;" ::: "memory")
#else
#define COUNTER_ADD(order, before, counter, by)                                \
    __threadfence();                                                           \
    before = atomicAdd(counter, by);                                           \
    __threadfence()
#define FENCE() __threadfence()
#endif

DEVICE int counter_add(int *counter, int by) {
    int before;
    COUNTER_ADD("acq_rel", before, counter, by);
    return before;
}

// A counter has two counts, in its lower and its upper half: one in the upper.
#define COUNTED (1 << 16)

DEVICE int counter_begin(int *counter) {
    int before;
    COUNTER_ADD("relaxed", before, counter, 1);
    return before;
}

DEVICE int counter_leave(int *counter) {
    int before;
    COUNTER_ADD("release", before, counter, COUNTED);
    return before;
}

// Orders nothing.
DEVICE int counter_read(const int *counter) {
    return *(const volatile int *)counter;
}

#include "runtime/prelude/block.h"

// ---- programmatic dependent launch ----

// The blocks of a kernel may start while the kernel before it on the stream
// runs, once each block of that one has executed LAUNCH_DEPENDENTS.
// GRID_DEPENDENCY_WAIT returns when it has ended and its writes are visible; it
// returns at once where the kernel was launched in the usual way.
#if __CUDA_ARCH__ >= 900
#define GRID_DEPENDENCY_WAIT() asm volatile("griddepcontrol.wait;" ::: "memory")
#define LAUNCH_DEPENDENTS()                                                    \
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#else
#define GRID_DEPENDENCY_WAIT() ((void)0)
#define LAUNCH_DEPENDENTS() ((void)0)
#endif

// ---- phases ----

// Waits for all blocks of a cooperative launch; their writes are then visible.
// Block 0 adds so much that the upper bit of the count flips when all have
// arrived and the other bits are 0 again: the next barrier begins with that.
//
// The add releases this block's writes, as in last_block.  The loop reads the
// counter after the last add, by a load that orders nothing; the fence behind
// it makes the loop an acquire, once and not with each load.
DEVICE void grid_barrier(int *counter) {
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned half = 0x80000000u;
        unsigned before;
        COUNTER_ADD("release", before, counter,
                    blockIdx.x == 0 ? (int)(half - (gridDim.x - 1)) : 1);
        while (((before ^ *(volatile unsigned *)counter) & half) == 0) {
        }
        FENCE();
    }
    __syncthreads();
}

#define PHASE(number)
#define GRID_BARRIER(counter) grid_barrier(counter)

#endif
