// Faults that the host's meaning of cuda::tiles refuses: some when a kernel is
// compiled, as NVRTC does, and some when it runs, where a GPU would go on.
//
//   faults NUMBER    runs kernel NUMBER; 0 is right
#define SINTER_ACT 16
#include "runtime/prelude/tile.h"

#include <bit>

namespace ct = cuda::tiles;

template <class E, size_t... N> using Tile = ct::tile<E, ct::shape<N...>>;

template <class A, class B>
concept Adds = requires(A a, B b) {
    a + b;
};
template <class To, class From>
concept Becomes = requires(From x) {
    To(x);
};
template <class E, size_t... N>
concept IsTile = ct::TileShape<ct::shape<N...>>;

static_assert(Adds<Tile<float, 4, 1>, Tile<float, 1, 8>>);
static_assert(Adds<Tile<float, 8>, int>);
static_assert(!Adds<Tile<float, 4, 8>, Tile<float, 2, 8>>, "no broadcast");
static_assert(!Adds<Tile<int, 8>, float>, "narrows");
static_assert(Becomes<Tile<float, 8>, Tile<act, 8>>);
static_assert(!Becomes<Tile<act, 8>, Tile<float, 8>>, "narrows");
static_assert(IsTile<float, 16, 32> && !IsTile<float, 24>, "a power of two");

static float memory[4096];

// Blocks of 16 by 16 of a matrix of 40 by 32.
template <int Rows> static void copy(const float *from, float *to, int block) {
    const auto x =
        load_tile<1, Rows, 32, 1, 16, 16>(from, 0, block / 2, block % 2);
    store_tile<1, Rows, 32, 1, 16, 16>(to, x, 0, block / 2, block % 2);
}

TILE_KERNEL(4)
right(const float *from, float *to) {
    copy<40>(ct::assume_aligned<16>(from), to, ct::bid().x);
}

TILE_KERNEL(4)
outside(const float *from, float *to) {
    copy<40>(from, to, ct::bid().x + 2);
}

TILE_KERNEL(4)
unmasked(const float *from, float *to) {
    const int row = ct::bid().x / 2, column = ct::bid().x % 2;
    auto tiles = tiles_of<1, 40, 32, 1, 16, 16>(to);
    tiles.store(load_tile<1, 40, 32, 1, 16, 16>(from, 0, row, column), 0, row,
                column);
}

TILE_KERNEL(4)
misaligned(const float *from, float *to) {
    copy<40>(ct::assume_aligned<16>(from + 1), to, ct::bid().x);
}

TILE_KERNEL(4)
twice(const float *from, float *to) {
    copy<40>(from, to, ct::bid().x / 2);
}

TILE_KERNEL(4)
shared(const float *from, float *to) {
    (void)from;
    copy<40>(to, to + 16 * 32, ct::bid().x);
}

static float half(unsigned bits) {
    return (float)std::bit_cast<act>((uint16_t)bits);
}
static unsigned bits_of(float x) {
    return std::bit_cast<uint16_t>(act(x));
}

// Halves keep their bits in f32, and a number between two of them becomes the
// even one.
static bool rounds_well() {
    constexpr unsigned infinity = 0x7c00, minus = 0x8000;
    bool well = std::isinf(half(infinity)) && std::isnan(half(infinity + 1)) &&
                bits_of(65519.996f) == infinity - 1 &&
                bits_of(65520.0f) == infinity && half(1) == 0x1p-24f;
    for (unsigned i = 0; i < infinity; i++) {
        const float x = half(i), next = half(i + 1);
        well &= bits_of(x) == i && bits_of(-x) == (i | minus);
        if (i + 1 < infinity)
            well &= bits_of((x + next) / 2) == i + i % 2;
    }
    return well;
}

// Pools two windows of 2 x 2 pixels, of which the second one has NaNs.
TILE_KERNEL(4)
pools(const float *from, float *to) {
    constexpr int W = 4;
    auto x = load_tile<1, 2 * W, 1, 1, 2 * W, 1>(from, 0, 0, 0);
    auto image = matrix<2 * W, 1>(x);
    store_tile<1, 2, 1, 1, 2, 1>(to, max_pool<W, 2, 2, 2 * W, 1>(image), 0,
                                 0, 0);
    store_tile<1, 2, 1, 1, 2, 1>(to + 4, pool_index<W, 2, 2, 2 * W, 1>(image),
                                 0, 0, 0);
}

// NaN is larger than any number, and of several the first one counts.
static bool pools_well() {
    const float image[] = {1, 7, 9, NAN, 7, 7, NAN, 3}, *from = image;
    float pooled[8], *to = pooled;
    void *argument[] = {&from, &to};
    ct::launch("pools", pools, argument, 1);
    return pooled[0] == 7 && std::isnan(pooled[1]) && pooled[4] == 1 &&
           pooled[5] == 1;
}

int main(int argc, char **argv) {
    static void (*const kernel[])(const float *from, float *to) = {
        right, outside, unmasked, misaligned, twice, shared};
    const float *from = memory;
    float *to = memory + 2048;
    void *argument[] = {&from, &to};
    if (argc < 2 || !rounds_well() || !pools_well())
        return 2;
    for (int i = 0; i < 1280; i++)
        memory[i] = (float)i;
    // In both orders of blocks, of which one alone may show a fault.
    for (int i = 0; i < 2; i++)
        ct::launch(argv[1], kernel[atoi(argv[1])], argument, 6);
    return memcmp(memory, to, 1280 * sizeof *to) != 0;
}
