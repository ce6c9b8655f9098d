// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The prelude of tile kernels, which are CUDA Tile C++: NVRTC and tileiras
// compile them for a GPU; tile/ gives cuda_tile.h a meaning on the host.
//
// A function of an element has the name that it has in prelude.h, and takes a
// tile.  Operators broadcast [M, 1] and [1, N]; functions need tiles of one
// shape, as emitted operations do, which broadcast_to broadcasts.
#ifndef SINTER_TILE_PRELUDE_H
#define SINTER_TILE_PRELUDE_H

#include "cuda_tile.h"
#if SINTER_ACT == 16
#include <cuda_fp16.h>
typedef __half act;
#else
#include <cuda_bf16.h>
typedef __nv_bfloat16 act;
#endif

namespace ct = cuda::tiles;

// A kernel whose blocks have so many warps.
#define TILE_KERNEL(warps)                                                     \
    extern "C" [[cutile::hint(0, num_worker_warps_per_cta =                    \
                                     warps)]] __tile_global__ void

// i of a number of steps that the compiler does not see, as the grid has one
// row: it unrolls a loop whole if it knows the number, and spills.
#define NO_UNROLL(i, count)                                                    \
    for (auto i : ct::irange(0, (count) * (int)ct::num_blocks().y))

// The integers 0 .. N-1 as a column and as a row.
template <int N> __tile__ auto iota_column() {
    return ct::reshape<ct::shape<N, 1>>(
        ct::iota<ct::tile<int, ct::shape<N>>>());
}
template <int N> __tile__ auto iota_row() {
    return ct::reshape<ct::shape<1, N>>(
        ct::iota<ct::tile<int, ct::shape<N>>>());
}

// Tile (i, j, k) of a tensor [X, Y, Z] at p, whose tiles are [A, B, C].
// Elements outside of the tensor are 0, and are not stored.
template <int X, int Y, int Z, int A, int B, int C, class T>
__tile__ auto tiles_of(T *p) {
    return ct::partition_view{
        ct::tensor_span{p, ct::extents<unsigned, X, Y, Z>{}},
        ct::shape<A, B, C>{}};
}
template <int X, int Y, int Z, int A, int B, int C, class T>
__tile__ auto load_tile(T *p, int i, int j, int k) {
    const auto tiles = tiles_of<X, Y, Z, A, B, C>(p);
    if constexpr (X % A == 0 && Y % B == 0 && Z % C == 0)
        return tiles.load(i, j, k);
    else
        return tiles.load_masked(i, j, k);
}
template <int X, int Y, int Z, int A, int B, int C, class T, class Tile>
__tile__ void store_tile(T *p, Tile x, int i, int j, int k) {
    auto tiles = tiles_of<X, Y, Z, A, B, C>(p);
    const auto whole = ct::reshape<ct::shape<A, B, C>>(x);
    if constexpr (X % A == 0 && Y % B == 0 && Z % C == 0)
        tiles.store(whole, i, j, k);
    else
        tiles.store_masked(whole, i, j, k);
}

// The elements at offsets of p, or 0 where not ok; the number at p; and those
// of so many bits, the first of a byte in its lowest ones, as integers.
template <class E, class At, class Ok>
__tile__ auto load_at(const E *p, At at, Ok ok) {
    return ct::load_masked(p + at, ok, E(0.0f));
}
template <class T> __tile__ auto load_number(T *p) {
    return ct::reshape<ct::shape<1, 1>>(
        tiles_of<1, 1, 1, 1, 1, 1>(p).load(0, 0, 0));
}
template <int Bits, class At, class Ok>
__tile__ auto load_bits(const unsigned char *p, At at, Ok ok) {
    constexpr int of_byte = 8 / Bits;
    const auto byte = ct::element_cast<int>(
        ct::load_masked(p + at / of_byte, ok, (unsigned char)0));
    return (byte >> ((at & (of_byte - 1)) * Bits)) & ((1 << Bits) - 1);
}

// Tile j of C columns of a matrix of N columns at p: of its rows those whose
// numbers are in `row`, a column, and 0 where `inside` is false.
template <int N, int C, class T, class Rows, class Mask>
__tile__ auto load_rows(const T *p, Rows row, Mask inside, int j) {
    const auto column = iota_row<C>() + j * C;
    return ct::load_masked(p + (row * N + column), inside && (column < N),
                           T(0.0f));
}
template <int N, int C, class T, class Tile, class Rows, class Mask>
__tile__ void store_rows(T *p, Tile x, Rows row, Mask inside, int j) {
    const auto column = iota_row<C>() + j * C;
    ct::store_masked(p + (row * N + column), x, inside && (column < N));
}

// The same for pixels [H, W] of images, of which memory has every SH-th row and
// SW-th column: the others are 0.
template <int H, int W, int SH, int SW, int N, int C, class T, class Rows,
          class Mask>
__tile__ auto load_dilated(const T *p, Rows pixel, Mask inside, int j) {
    const auto y = pixel / W % H, x = pixel % W;
    const auto row =
        (pixel / (H * W) * ((H + SH - 1) / SH) + y / SH) * ((W + SW - 1) / SW) +
        x / SW;
    return load_rows<N, C>(p, row, inside && (y % SH == 0) && (x % SW == 0), j);
}

// A tile as a matrix of so many rows and columns; a value for each of them.
template <int M, int N, class Tile> __tile__ auto matrix(Tile x) {
    return ct::reshape<ct::shape<M, N>>(x);
}
template <int M, int N, class Tile> __tile__ auto broadcast_to(Tile x) {
    return ct::broadcast<ct::shape<M, N>>(x);
}

// A tile of one number.
template <int M, int N> __tile__ auto full(float x) {
    return ct::full<ct::tile<float, ct::shape<M, N>>>(x);
}
template <int M, int N> __tile__ auto broadcast_to(float x) {
    return full<M, N>(x);
}

template <class Tile> __tile__ auto to_float(Tile x) {
    return ct::element_cast<float>(x);
}
template <class Tile> __tile__ auto to_act(Tile x) {
    return ct::element_cast<act>(x);
}
template <class Tile> __tile__ auto to_byte(Tile x) {
    return ct::element_cast<unsigned char>(x);
}

// condition ? a : b.  A number takes the type of the other value; two are f32.
template <class C, class S>
__tile__ auto where(ct::tile<C, S> condition, float a, float b) {
    using Tile = ct::tile<float, S>;
    return ct::select(condition, ct::full<Tile>(a), ct::full<Tile>(b));
}
template <class C, class E, class S>
__tile__ auto where(C condition, ct::tile<E, S> a, ct::tile<E, S> b) {
    return ct::select(condition, a, b);
}
template <class C, class E, class S, class Number>
__tile__ auto where(C condition, ct::tile<E, S> a, Number b) {
    return ct::select(condition, a, ct::full<ct::tile<E, S>>((E)b));
}
template <class C, class E, class S, class Number>
__tile__ auto where(C condition, Number a, ct::tile<E, S> b) {
    return ct::select(condition, ct::full<ct::tile<E, S>>((E)a), b);
}

// Elements of so many bits, the first of a byte in its lowest ones.
template <int M, int N, int Bits, class Tile> __tile__ auto pack(Tile x) {
    constexpr int of_byte = 8 / Bits;
    const auto place = ct::reshape<ct::shape<1, 1, of_byte>>(
        ct::iota<ct::tile<int, ct::shape<of_byte>>>() * Bits);
    const auto parts = ct::reshape<ct::shape<M, N / of_byte, of_byte>>(
                           ct::element_cast<int>(x))
                       << place;
    return ct::element_cast<unsigned char>(ct::sum<2>(parts));
}

// The offsets of the elements of tile (i, j) in a matrix of N columns; and
// whether one of M rows has them.
template <int N, int BM, int BN> __tile__ auto offsets_of(int i, int j) {
    return (iota_column<BM>() + i * BM) * N + (iota_row<BN>() + j * BN);
}
template <int M, int N, int BM, int BN> __tile__ auto within(int i, int j) {
    return (iota_column<BM>() + i * BM < M) && (iota_row<BN>() + j * BN < N);
}

// x, with 0 in those rows of the i-th tile that a matrix of M rows lacks.
template <int M, int BM, int BN, class Tile>
__tile__ auto rows_within(Tile x, int i) {
    if constexpr (M % BM == 0)
        return x;
    else
        return where(broadcast_to<BM, BN>(iota_column<BM>() + i * BM < M), x,
                     0.0f);
}
template <int BM, int BN, class Tile, class Rows>
__tile__ auto pixels_within(Tile x, Rows is_pixel) {
    return where(broadcast_to<BM, BN>(is_pixel), x, 0.0f);
}
template <int BM, int BN, class Tile> __tile__ auto column_sums(Tile x) {
    return ct::reshape<ct::shape<1, BN>>(ct::sum<0>(x));
}
// The sums of squared distances from the mean of a column's rows.
template <int M, int BM, int BN, class Tile, class Sums>
__tile__ auto column_squares(Tile x, Sums sums, int i) {
    const float rows = M - i * BM < BM ? M % BM : BM;
    const auto apart = rows_within<M, BM, BN>(
        x - broadcast_to<BM, BN>(sums * (1.0f / rows)), i);
    return column_sums<BM, BN>(apart * apart);
}

// The sums of tile nb of N columns, from P partial sums of each of them, BR at
// a time; and from these totals and the sums of squares the variances of M rows
// in tiles of BM.
template <int SLOTS, int P, int N, int BR, int BN>
__tile__ auto sums_of_columns(const float *p, int slot, int nb) {
    auto sums = full<1, BN>(0.0f);
    NO_UNROLL(i, (P + BR - 1) / BR) {
        sums = sums + column_sums<BR, BN>(matrix<BR, BN>(
                          load_tile<SLOTS, P, N, 1, BR, BN>(p, slot, i, nb)));
    }
    return sums;
}
template <int SLOTS, int P, int N, int M, int BM, int BR, int BN, class Tile>
__tile__ auto variance_of_columns(const float *p, Tile totals, int slot,
                                  int squares, int nb) {
    const auto means = totals * (1.0f / M);
    auto sums = full<1, BN>(0.0f);
    NO_UNROLL(i, (P + BR - 1) / BR) {
        const auto left = to_float(M - (iota_column<BR>() + i * BR) * BM);
        const auto some = where(left < 0.0f, 0.0f, left);
        const auto rows = where(some < (float)BM, some, (float)BM);
        const auto own =
            matrix<BR, BN>(load_tile<SLOTS, P, N, 1, BR, BN>(p, slot, i, nb));
        const auto divisors = where(rows < 1.0f, 1.0f, rows);
        const auto apart =
            own / broadcast_to<BR, BN>(divisors) - broadcast_to<BR, BN>(means);
        const auto inside = matrix<BR, BN>(
            load_tile<SLOTS, P, N, 1, BR, BN>(p, squares, i, nb));
        sums =
            sums + column_sums<BR, BN>(
                       broadcast_to<BR, BN>(rows) * (apart * apart) + inside);
    }
    return sums * (1.0f / M);
}

// The largest elements along an axis; NaN is larger than any number.
template <int Axis, class Tile> __tile__ auto largest(Tile x) {
    return ct::reduce_max(x, ct::integral_constant<Axis>(),
                          ct::propagate_nan_t());
}

// The largest elements of windows [R, S] side by side, of images with W columns
// of pixels, each row of which has N of the tile's elements; those of each
// pixel's window; and the places of the largest, the first of several.
template <int W, int R, int S, int M, int N, class Tile>
__tile__ auto max_pool(Tile x) {
    static_assert(M % (R * W) == 0);
    const auto rows =
        largest<1>(ct::reshape<ct::shape<M / (R * W), R, W * N>>(x));
    const auto windows =
        largest<1>(ct::reshape<ct::shape<M / (R * S), S, N>>(rows));
    return matrix<M / (R * S), N>(windows);
}
template <int W, int R, int S, int M, int N, class Tile>
__tile__ auto unpooled(Tile x) {
    const auto rows = ct::reshape<ct::shape<M / (R * W), 1, W * N>>(
        ct::broadcast<ct::shape<M / (R * S), S, N>>(
            ct::reshape<ct::shape<M / (R * S), 1, N>>(x)));
    return matrix<M, N>(ct::broadcast<ct::shape<M / (R * W), R, W * N>>(rows));
}
template <int W, int R, int S, int M, int N, class Tile>
__tile__ auto pool_index(Tile x) {
    const auto pixel = iota_column<M>();
    const auto place = to_float(pixel / W % R * S + pixel % S);
    const auto most = unpooled<W, R, S, M, N>(max_pool<W, R, S, M, N>(x));
    const auto own = where(x == most || x != x,
                           broadcast_to<M, N>(0.0f - place), -1.0f * R * S);
    return 0.0f - max_pool<W, R, S, M, N>(own);
}

template <class Tile> __tile__ auto expf(Tile x) {
    return ct::exp(x);
}
template <class Tile> __tile__ auto logf(Tile x) {
    return ct::log(x);
}
template <class Tile> __tile__ auto sqrtf(Tile x) {
    return ct::sqrt(x);
}
template <class Tile> __tile__ auto rsqrtf(Tile x) {
    return ct::rsqrt(x);
}
template <class Tile> __tile__ auto cosf(Tile x) {
    return ct::cos(x);
}
template <class Tile> __tile__ auto sinf(Tile x) {
    return ct::sin(x);
}
template <class Tile> __tile__ auto tanhf(Tile x) {
    return ct::tanh(x);
}
template <class Tile> __tile__ auto floorf(Tile x) {
    return ct::floor(x);
}
template <class Tile> __tile__ auto sigmoid(Tile x) {
    return 1.0f / (1.0f + ct::exp(-x));
}
template <class Tile> __tile__ auto normal_pdf(Tile x) {
    return 0.3989423f * ct::exp(-0.5f * x * x);
}
template <class Tile> __tile__ auto normal_cdf(Tile x) {
    const auto t = 1.0f / (0.34f * ct::abs(x) + 1.0f);
    auto tail = 0.11329754f * t - 0.50659825f;
    tail = tail * t + 0.66878087f;
    tail = tail * t - 0.083193998f;
    tail = tail * t + 0.39554495f;
    tail = tail * t + 0.32444287f;
    tail = tail * t + 0.34104015f;
    tail = tail * (t * normal_pdf(x));
    return where(x < 0.0f, tail, 1.0f - tail);
}

// ---- attention ----

// Less than any score of a row that has one.
#define LOWEST -3.4028235e38f

// Rows [at * Rows, ...) of head h of sample n, as a matrix with Columns for the
// channels, of a tensor [X, T, H, D] at p.  Elements outside of it are 0.
template <int X, int T, int H, int D, int Rows, int Columns, class E>
__tile__ auto heads_of(E *p) {
    return ct::partition_view{
        ct::tensor_span{p, ct::extents<unsigned, X, T, H, D>{}},
        ct::shape<1, Rows, 1, Columns>{}};
}
template <int X, int T, int H, int D, int Rows, int Columns, class E>
__tile__ auto load_head(E *p, int n, int at, int h) {
    const auto heads = heads_of<X, T, H, D, Rows, Columns>(p);
    if constexpr (T % Rows == 0 && D % Columns == 0)
        return matrix<Rows, Columns>(heads.load(n, at, h, 0));
    else
        return matrix<Rows, Columns>(heads.load_masked(n, at, h, 0));
}
template <int X, int T, int H, int D, int Rows, int Columns, class E,
          class Tile>
__tile__ void store_head(E *p, Tile x, int n, int at, int h) {
    auto heads = heads_of<X, T, H, D, Rows, Columns>(p);
    const auto whole = ct::reshape<ct::shape<1, Rows, 1, Columns>>(x);
    if constexpr (T % Rows == 0 && D % Columns == 0)
        heads.store(whole, n, at, h, 0);
    else
        heads.store_masked(whole, n, at, h, 0);
}

// Four matrices, row beside row or column beside column.
template <int Axis, int M, int N>
using Interleaved = ct::shape<Axis == 0 ? 4 * M : M, Axis == 0 ? N : 4 * N>;
template <int Axis, int M, int N, class Tile>
__tile__ auto interleave(Tile a, Tile b, Tile c, Tile d) {
    using Thick = ct::shape<M, Axis == 0 ? 1 : N, Axis == 0 ? N : 1>;
    constexpr int beside = Axis + 1;
    return ct::reshape<Interleaved<Axis, M, N>>(ct::cat<beside>(
        ct::cat<beside>(ct::reshape<Thick>(a), ct::reshape<Thick>(b)),
        ct::cat<beside>(ct::reshape<Thick>(c), ct::reshape<Thick>(d))));
}

// The random numbers of dropout, as in prelude.h: from each of so many numbers
// on, of a block of Philox4x32-10, four neighbours along an axis, 0 where the
// upper 24 bits are below `least` and else `factor`.
template <int Axis, int M, int N, class Number>
__tile__ auto draw_kept(Number seed, int stream, Number epoch,
                        ct::tile<int, ct::shape<M, N>> first, int least,
                        float factor) {
    using Tile = ct::tile<unsigned, ct::shape<M, N>>;
    const auto multiplier0 = ct::full<Tile>(0xD2511F53u);
    const auto multiplier1 = ct::full<Tile>(0xCD9E8D57u);
    auto k0 = ct::element_cast<unsigned>(seed);
    unsigned k1 = (unsigned)stream;
    Tile w0 = ct::element_cast<unsigned>(first) >> 2;
    Tile w1 = broadcast_to<M, N>(ct::element_cast<unsigned>(epoch));
    Tile w2 = ct::full<Tile>(0u), w3 = w2;
    for (int round = 0; round < 10; round++) {
        const Tile high0 = ct::mulhi(w0, multiplier0), low0 = w0 * multiplier0;
        const Tile high1 = ct::mulhi(w2, multiplier1), low1 = w2 * multiplier1;
        w0 = high1 ^ w1 ^ k0;
        w1 = low1;
        w2 = high0 ^ w3 ^ k1;
        w3 = low0;
        k0 = k0 + 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const auto words = interleave<Axis, M, N>(w0, w1, w2, w3);
    using Kept = ct::tile<float, Interleaved<Axis, M, N>>;
    return where((words >> 8) < (unsigned)least, 0.0f, ct::full<Kept>(factor));
}

#endif
