// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The meaning of cuda::tiles on the host, as far as tile kernels use it: a tile
// is an array, and blocks run one after another.
//
// It is stricter than a GPU.  An index outside of its tensor, a partial tile
// that is accessed without a mask, a pointer that is less aligned than the
// kernel assumes, two blocks that store to one address, and a block that reads
// another's result end the program.  Conversions that lose digits, shapes that
// do not broadcast and extents that are no powers of two do not compile, as
// they do not for NVRTC.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

// Texts of one program may differ in act, so each has functions of its own.
#define __tile__ static
#define __tile_global__

namespace cuda::tiles {

struct Dim {
    unsigned x = 1, y = 1, z = 1;
};

// ---- the running block, and failures ----

// The block that has stored to an address in a launch.
struct Writer {
    const char *address;
    unsigned block, launch;
};

struct Host {
    Dim block, grid;
    const char *kernel;
    unsigned launch; // its number; a writer of another one is none
    // An open-addressing table of `slots` writers, a power of two, of which
    // `count` are of this launch, at addresses from the lowest to the highest.
    Writer *writer;
    size_t slots, count;
    const char *lowest, *highest;
};
inline constinit Host host{};

[[noreturn]] inline void fail(const char *why, long a, long b) {
    fprintf(stderr, "tile kernel %s, block %u: %s: %ld, %ld\n", host.kernel,
            host.block.x, why, a, b);
    abort();
}

inline Dim bid() {
    return host.block;
}
inline Dim num_blocks() {
    return host.grid;
}

// The writer of an address, or the slot for one.  Slots of neighbours are
// neighbours, and lines of 64 bytes lie apart.
inline Writer *writer_of(const char *at) {
    const uint64_t line = (uintptr_t)at / 64, place = (uintptr_t)at % 64;
    size_t i = ((line * 0x9E3779B97F4A7C15 >> 32) * 32 + place / 2) % host.slots;
    while (host.writer[i].launch == host.launch && host.writer[i].address != at)
        i = (i + 1) % host.slots;
    return &host.writer[i];
}

inline void writers_grow() {
    constexpr size_t least = 1 << 12;
    const Host old = host;
    host.slots = old.slots > 0 ? 2 * old.slots : least;
    host.writer = (Writer *)calloc(host.slots, sizeof *host.writer);
    if (host.writer == nullptr)
        fail("there is no memory for the addresses that it stores to",
             (long)old.count, 0);
    for (size_t i = 0; i < old.slots; i++)
        if (old.writer[i].launch == host.launch)
            *writer_of(old.writer[i].address) = old.writer[i];
    free(old.writer);
}

// Blocks run in any order, so that none reads another's results.
inline void reads(const void *p) {
    const char *at = (const char *)p;
    if (host.count == 0 || at < host.lowest || at > host.highest)
        return;
    const Writer *w = writer_of(at);
    if (w->launch == host.launch && w->block != host.block.x)
        fail("reads a value that another block stores", w->block, 0);
}
inline void stores(const void *p) {
    const char *at = (const char *)p;
    if (2 * host.count >= host.slots)
        writers_grow();
    Writer *w = writer_of(at);
    if (w->launch == host.launch) {
        if (w->block != host.block.x)
            fail("another block stores to the same address", w->block, 0);
        return;
    }
    *w = {at, host.block.x, host.launch};
    if (host.count == 0 || at < host.lowest)
        host.lowest = at;
    if (host.count == 0 || at > host.highest)
        host.highest = at;
    host.count++;
}

// ---- shapes ----

template <class Index, size_t... N> struct extents {
    static constexpr size_t rank = sizeof...(N);
    static constexpr size_t count = (size_t(1) * ... * N);
    static constexpr size_t at(size_t i) {
        constexpr size_t all[] = {N..., 1};
        return all[i];
    }
};
template <size_t... N> using shape = extents<uint32_t, N...>;

enum { MAX_RANK = 4 };

// Axis i of MAX_RANK of them, the last ones of the shape; and the distance of
// two neighbours there, 0 where an element is broadcast.
template <class S> constexpr size_t extent(size_t i) {
    return i + S::rank < MAX_RANK ? 1 : S::at(i + S::rank - MAX_RANK);
}
template <class S> constexpr size_t stride(size_t i) {
    size_t product = 1;
    for (size_t k = MAX_RANK - 1; k > i; k--)
        product *= extent<S>(k);
    return extent<S>(i) == 1 ? 0 : product;
}
template <class A, class B> constexpr bool broadcasts() {
    for (size_t i = 0; i < MAX_RANK; i++)
        if (extent<A>(i) != extent<B>(i) && extent<A>(i) != 1 &&
            extent<B>(i) != 1)
            return false;
    return true;
}

template <size_t Rank, size_t A, size_t B, size_t C, size_t D>
using shape_of = std::conditional_t<
    Rank == 0, shape<>,
    std::conditional_t<
        Rank == 1, shape<D>,
        std::conditional_t<
            Rank == 2, shape<C, D>,
            std::conditional_t<Rank == 3, shape<B, C, D>, shape<A, B, C, D>>>>>;
template <class A, class B> constexpr size_t wider(size_t i) {
    return extent<A>(i) > extent<B>(i) ? extent<A>(i) : extent<B>(i);
}
template <class A, class B>
using common = shape_of<(A::rank > B::rank ? A::rank : B::rank), wider<A, B>(0),
                        wider<A, B>(1), wider<A, B>(2), wider<A, B>(3)>;

// ---- element types ----

// 0: an integer.
template <class T>
constexpr int digits = std::same_as<T, float>                          ? 2
                       : std::is_integral_v<T> || std::is_pointer_v<T> ? 0
                                                                       : 1;
template <class From, class To>
constexpr bool widens = std::same_as<From, To> ||
                        (digits<From> > 0 && digits<From> < digits<To>) ||
                        (std::is_integral_v<From> && std::is_integral_v<To> &&
                         sizeof(From) <= sizeof(To)) ||
                        (std::is_pointer_v<From> &&
                         std::is_convertible_v<From, To>);

template <class S>
concept TileShape = S::rank <= MAX_RANK &&S::count > 0 &&
                    (S::count & (S::count - 1)) == 0;

template <class E, class S>
requires TileShape<S>
struct tile {
    E value[S::count];
    tile() = default;
    template <class F>
    requires(!std::same_as<F, E> && widens<F, E>) tile(const tile<F, S> &from) {
        for (size_t i = 0; i < S::count; i++)
            value[i] = (E)from.value[i];
    }
};

template <class T> struct Of {
    static constexpr bool is_tile = false;
    using E = std::remove_cv_t<T>;
    using S = shape<>;
};
template <class E_, class S_> struct Of<tile<E_, S_>> {
    static constexpr bool is_tile = true;
    using E = E_;
    using S = S_;
};
template <class T> using element = typename Of<T>::E;

// A number takes the type of the tile beside it.
template <class A, class B>
using arithmetic = std::conditional_t<
    !Of<B>::is_tile, element<A>,
    std::conditional_t<!Of<A>::is_tile, element<B>,
                       std::conditional_t<widens<element<A>, element<B>>,
                                          element<B>, element<A>>>>;
template <class A, class B>
concept Operands =
    (Of<A>::is_tile || Of<B>::is_tile) &&
    (Of<A>::is_tile || std::is_arithmetic_v<A> || std::is_pointer_v<A>)&&(
        Of<B>::is_tile ||
        std::is_arithmetic_v<B>)&&broadcasts<typename Of<A>::S,
                                             typename Of<B>::S>();
template <class A, class B>
concept Numbers = Operands<A, B> && !std::is_pointer_v<element<A>> &&
                  (widens<element<A>, arithmetic<A, B>> ||
                   digits<element<A>> == 0 || !Of<A>::is_tile) &&
                  (widens<element<B>, arithmetic<A, B>> ||
                   digits<element<B>> == 0 || !Of<B>::is_tile) &&
                  (digits<arithmetic<A, B>> > 0 ||
                   (digits<element<A>> == 0 && digits<element<B>> == 0));

template <class T> const element<T> *first(const T &x) {
    if constexpr (Of<T>::is_tile)
        return x.value;
    else
        return &x;
}

// ---- functions of elements ----

template <class R, class A, class B, class F>
auto each(const A &a, const B &b, F f) {
    using SA = typename Of<A>::S;
    using SB = typename Of<B>::S;
    using S = common<SA, SB>;
    const auto *x = first(a);
    const auto *y = first(b);
    tile<R, S> result;
    R *to = result.value;
    static_assert(S::rank < MAX_RANK);
    for (size_t i = 0; i < extent<S>(1); i++)
        for (size_t j = 0; j < extent<S>(2); j++) {
            const auto *p = x + i * stride<SA>(1) + j * stride<SA>(2);
            const auto *q = y + i * stride<SB>(1) + j * stride<SB>(2);
            for (size_t k = 0; k < extent<S>(3); k++)
                *to++ = f(p[k * stride<SA>(3)], q[k * stride<SB>(3)]);
        }
    return result;
}
template <class R, class E, class S, class F>
auto each(const tile<E, S> &a, F f) {
    tile<R, S> result;
    for (size_t i = 0; i < S::count; i++)
        result.value[i] = f(a.value[i]);
    return result;
}

#define ARITHMETIC(name, expression)                                           \
    template <class A, class B>                                                \
    requires Numbers<A, B>                                                     \
    auto name(const A &a, const B &b) {                                        \
        using R = arithmetic<A, B>;                                            \
        return each<R>(a, b, [](auto x, auto y) {                              \
            const R p = (R)x, q = (R)y;                                        \
            return (R)(expression);                                            \
        });                                                                    \
    }
#define COMPARISON(operation)                                                  \
    template <class A, class B>                                                \
    requires Numbers<A, B>                                                     \
    auto operator operation(const A &a, const B &b) {                          \
        using R = arithmetic<A, B>;                                            \
        return each<bool>(a, b,                                                \
                          [](auto x, auto y) { return (R)x operation(R) y; }); \
    }
#define LOGICAL(operation)                                                     \
    template <class A, class B>                                                \
    requires std::same_as < element<A>,                                        \
    bool > &&std::same_as<element<B>, bool> &&Operands<A, B> auto              \
           operator operation(const A &a, const B &b) {                        \
        return each<bool>(                                                     \
            a, b, [](bool x, bool y) { return (bool)(x operation y); });       \
    }
#define BITWISE(operation)                                                     \
    template <class A, class B>                                                \
    requires Numbers<A, B> && std::same_as<arithmetic<A, B>, int>              \
    auto operator operation(const A &a, const B &b) {                          \
        return each<int>(a, b, [](int x, int y) { return x operation y; });    \
    }
ARITHMETIC(operator+, p + q)
ARITHMETIC(operator-, p - q)
ARITHMETIC(operator*, p *q)
ARITHMETIC(operator/, p / q)
ARITHMETIC(operator%, p % q)
ARITHMETIC(max, std::fmax(p, q))
ARITHMETIC(operator^, p ^ q)
ARITHMETIC(operator>>, p >> q)
ARITHMETIC(mulhi, ((uint64_t)p * q) >> 32)
COMPARISON(<)
COMPARISON(<=)
COMPARISON(>)
COMPARISON(>=)
COMPARISON(==)
COMPARISON(!=)
LOGICAL(&&)
LOGICAL(||)
BITWISE(&)
BITWISE(<<)
BITWISE(>>)
LOGICAL(&)
LOGICAL(|)

template <class S> auto operator!(const tile<bool, S> &a) {
    return each<bool>(a, [](bool x) { return !x; });
}
template <class E, class S> auto operator-(const tile<E, S> &a) {
    return each<E>(a, [](E x) { return (E)-x; });
}
template <class P, class B>
requires std::is_pointer_v<P> && Of<B>::is_tile auto operator+(P p,
                                                               const B &b) {
    return each<P>(b, [p](auto i) { return p + i; });
}

#define FUNCTION(name, expression)                                             \
    template <class S> auto name(const tile<float, S> &a) {                    \
        return each<float>(a, [](float x) { return expression; });             \
    }
FUNCTION(exp, std::exp(x))
FUNCTION(exp2, std::exp2(x))
FUNCTION(log, std::log(x))
FUNCTION(log2, std::log2(x))
FUNCTION(sqrt, std::sqrt(x))
FUNCTION(rsqrt, 1 / std::sqrt(x))
FUNCTION(sin, std::sin(x))
FUNCTION(cos, std::cos(x))
FUNCTION(tanh, std::tanh(x))
FUNCTION(floor, std::floor(x))
FUNCTION(abs, std::fabs(x))

template <class To, class E, class S> auto element_cast(const tile<E, S> &a) {
    return each<To>(a, [](E x) { return (To)x; });
}
template <class C, class E, class S>
requires std::same_as<common<typename Of<C>::S, S>, S>
auto select(const C &condition, const tile<E, S> &a, const tile<E, S> &b) {
    const auto chosen =
        each<bool>(condition, a, [](bool yes, E) { return yes; });
    tile<E, S> result;
    for (size_t i = 0; i < S::count; i++)
        result.value[i] = chosen.value[i] ? a.value[i] : b.value[i];
    return result;
}

// ---- shapes of tiles ----

template <class T, class X>
requires std::is_arithmetic_v<X> || std::same_as<X, element<T>> T full(X x) {
    T result;
    for (auto &e : result.value)
        e = (element<T>)x;
    return result;
}
template <class T> T iota() {
    T result;
    for (size_t i = 0; i < Of<T>::S::count; i++)
        result.value[i] = (element<T>)i;
    return result;
}
template <class To, class E, class S>
requires(To::count == S::count) auto reshape(const tile<E, S> &a) {
    tile<E, To> result;
    memcpy(result.value, a.value, sizeof a.value);
    return result;
}
template <class To, class E, class S>
requires std::same_as<common<To, S>, To>
auto broadcast(const tile<E, S> &a) {
    return each<E>(a, full<tile<char, To>>(0), [](E x, char) { return x; });
}
template <class E, size_t A, size_t B>
auto transpose(const tile<E, shape<A, B>> &a) {
    tile<E, shape<B, A>> result;
    for (size_t i = 0; i < A; i++)
        for (size_t j = 0; j < B; j++)
            result.value[j * A + i] = a.value[i * B + j];
    return result;
}
// The shape with another extent of an axis.
template <class S, size_t Axis, size_t N, size_t... I>
shape<(I == Axis ? N : S::at(I))...> resized(std::index_sequence<I...>);
template <class S, size_t Axis, size_t N>
using resize =
    decltype(resized<S, Axis, N>(std::make_index_sequence<S::rank>()));

// Elements behind which the next one along an axis lies.
template <class S> constexpr size_t inner(size_t axis) {
    size_t product = 1;
    for (size_t i = axis + 1; i < S::rank; i++)
        product *= S::at(i);
    return product;
}

template <size_t Axis, class E, class S, class F>
requires(Axis < S::rank) auto reduce(const tile<E, S> &a, E from, F f) {
    constexpr size_t side = inner<S>(Axis), all = side * S::at(Axis);
    auto result = full<tile<E, resize<S, Axis, 1>>>(from);
    for (size_t i = 0; i < S::count; i++) {
        E &to = result.value[i / all * side + i % side];
        to = f(to, a.value[i]);
    }
    return result;
}
template <size_t Axis, class E, class S> auto sum(const tile<E, S> &a) {
    return reduce<Axis>(a, E(0), [](E x, E y) { return x + y; });
}
template <size_t Axis, class S> auto reduce_max(const tile<float, S> &a) {
    return reduce<Axis>(a, -INFINITY,
                        [](float x, float y) { return std::fmax(x, y); });
}

template <auto Value> struct integral_constant {};
struct propagate_nan_t {};
template <auto Axis, class S>
auto reduce_max(const tile<float, S> &a, integral_constant<Axis>,
                propagate_nan_t) {
    return reduce<Axis>(a, -INFINITY, [](float x, float y) {
        return std::isnan(x) || x >= y ? x : y;
    });
}

// The elements of both side by side along an axis.
template <size_t Axis, class E, class S>
requires(Axis < S::rank) auto cat(const tile<E, S> &a, const tile<E, S> &b) {
    constexpr size_t side = inner<S>(Axis) * S::at(Axis);
    tile<E, resize<S, Axis, 2 * S::at(Axis)>> result;
    for (size_t i = 0; i < S::count; i++) {
        const size_t at = i / side * 2 * side + i % side;
        result.value[at] = a.value[i];
        result.value[at + side] = b.value[i];
    }
    return result;
}

template <class E, size_t M, size_t K, size_t N>
requires(digits<E> == 1) auto mma(const tile<E, shape<M, K>> &a,
                                  const tile<E, shape<K, N>> &b,
                                  const tile<float, shape<M, N>> &c) {
    tile<float, shape<M, N>> result = c;
    float right[K * N];
    for (size_t i = 0; i < K * N; i++)
        right[i] = (float)b.value[i];
    for (size_t i = 0; i < M; i++)
        for (size_t k = 0; k < K; k++) {
            const float x = (float)a.value[i * K + k];
            for (size_t j = 0; j < N; j++)
                result.value[i * N + j] += x * right[k * N + j];
        }
    return result;
}

// ---- memory ----

template <auto Bytes, class T> T *assume_aligned(T *p) {
    if ((uintptr_t)p % Bytes != 0)
        fail("a pointer is not so aligned", (long)Bytes, (long)(uintptr_t)p);
    return p;
}

template <class P, class S, class M, class E>
requires std::is_pointer_v<P>
auto load_masked(const tile<P, S> &from, const M &mask, E otherwise) {
    using T = std::remove_cv_t<std::remove_pointer_t<P>>;
    static_assert(std::same_as<E, T>);
    return each<T>(from, mask, [otherwise](P p, bool inside) {
        if (inside)
            reads(p);
        return inside ? *p : otherwise;
    });
}
template <class P, class S, class E, class M>
requires std::is_pointer_v<P>
void store_masked(const tile<P, S> &to, const tile<E, S> &x, const M &mask) {
    static_assert(widens<E, std::remove_pointer_t<P>>);
    const auto inside =
        each<bool>(mask, x, [](bool is_inside, E) { return is_inside; });
    for (size_t i = 0; i < S::count; i++)
        if (inside.value[i]) {
            stores(to.value[i]);
            *to.value[i] = x.value[i];
        }
}

template <class T, class X> struct tensor_span {
    T *p;
    tensor_span(T *start, X) : p(start) {
    }
};

template <class Span, class S> struct partition_view;

// A tensor of extents X, in tiles of extents S.
template <class T, class I, size_t... X, size_t... S>
struct partition_view<tensor_span<T, extents<I, X...>>, shape<S...>> {
    using E = std::remove_cv_t<T>;
    using Tile = tile<E, shape<S...>>;
    static constexpr size_t rank = sizeof...(X);
    T *p;

    partition_view(tensor_span<T, extents<I, X...>> span, shape<S...>)
        : p(span.p) {
    }

    // Calls f with each element of a tile, its offset in the tensor, and
    // whether the tensor has it.
    template <class F, class... Ix>
    void visit(bool masked, F f, Ix... index) const {
        static_assert(sizeof...(Ix) == rank && sizeof...(S) == rank);
        const long extent[] = {(long)X...}, side[] = {(long)S...},
                   at[] = {(long)index...};
        for (size_t d = 0; d < rank; d++) {
            if (at[d] < 0 || at[d] * side[d] >= extent[d])
                fail("a tile lies outside of its tensor", at[d], extent[d]);
            if (!masked && (at[d] + 1) * side[d] > extent[d])
                fail("a partial tile is accessed without a mask", at[d],
                     extent[d]);
        }
        for (size_t i = 0; i < shape<S...>::count; i++) {
            long rest = (long)i, offset = 0, distance = 1;
            bool inside = true;
            for (size_t d = rank; d-- > 0;) {
                const long x = at[d] * side[d] + rest % side[d];
                rest /= side[d];
                inside &= x < extent[d];
                offset += x * distance;
                distance *= extent[d];
            }
            f(i, offset, inside);
        }
    }
    template <class... Ix> Tile read(bool masked, Ix... index) const {
        Tile result;
        visit(
            masked,
            [&](size_t i, long offset, bool inside) {
                if (inside)
                    reads(p + offset);
                result.value[i] = inside ? p[offset] : E(0.0f);
            },
            index...);
        return result;
    }
    template <class V, class... Ix>
    void write(bool masked, const tile<V, shape<S...>> &x, Ix... index) const {
        static_assert(widens<V, E>);
        visit(
            masked,
            [&](size_t i, long offset, bool inside) {
                if (!inside)
                    return;
                stores(p + offset);
                p[offset] = x.value[i];
            },
            index...);
    }
    template <class... Ix> Tile load(Ix... index) const {
        return read(false, index...);
    }
    template <class... Ix> Tile load_masked(Ix... index) const {
        return read(true, index...);
    }
    template <class V, class... Ix>
    void store(const tile<V, shape<S...>> &x, Ix... index) const {
        write(false, x, index...);
    }
    template <class V, class... Ix>
    void store_masked(const tile<V, shape<S...>> &x, Ix... index) const {
        write(true, x, index...);
    }
};
template <class Span, class S>
partition_view(Span, S) -> partition_view<Span, S>;

struct irange {
    int first, last;
    irange(int from, int to) : first(from), last(to) {
    }
    struct Iterator {
        int i;
        int operator*() const {
            return i;
        }
        void operator++() {
            i++;
        }
        bool operator!=(Iterator other) const {
            return i < other.i;
        }
    };
    Iterator begin() const {
        return {first};
    }
    Iterator end() const {
        return {last};
    }
};

// ---- launches ----

// Runs all blocks of a kernel, the first or the last one first; argument[i] is
// the address of argument i.
template <class... P, size_t... I>
void launch(const char *name, void (*kernel)(P...), void **argument, int grid,
            std::index_sequence<I...>) {
    static bool reversed;
    host.grid = {(unsigned)grid, 1, 1};
    host.kernel = name;
    host.launch++;
    host.count = 0;
    reversed = !reversed;
    for (int i = 0; i < grid; i++) {
        host.block.x = (unsigned)(reversed ? grid - 1 - i : i);
        kernel(*(P *)argument[I]...);
    }
}
template <class... P>
void launch(const char *name, void (*kernel)(P...), void **argument, int grid) {
    launch(name, kernel, argument, grid, std::index_sequence_for<P...>{});
}
template <class... P> int parameters(void (*)(P...)) {
    return sizeof...(P);
}

// RtHostTile of runtime/rt.h.
struct HostTile {
    void (*run)(void **argument, int grid), (*sums)(void **argument, int grid);
};

} // namespace cuda::tiles
