// Tile print: a schedule as CUDA Tile C++, whose words runtime/prelude/tile.h
// defines.

#include "codegen/program.h"
#include "codegen/tile.h"

// Rows of a tile whose parts a block adds; columns whose partial sums it adds,
// and those of a column that it reads at once.
enum { PART_ROWS = 16, SUM_COLUMNS = 8, SUM_ROWS = 256, SUM_WARPS = 4 };

static int64_t groups_of(const TileSchedule *s) {
    return s->load == WEIGHT_GRAD ? s->groups : 1;
}

int64_t tile_count(const TileSchedule *s) {
    return groups_of(s) * s->cover.batch *
           divide_up(s->cover.rows, s->size.rows) *
           divide_up(s->cover.columns, s->size.columns);
}

int64_t tile_sum_blocks(const TileSchedule *s) {
    TileSchedule copy = *s;
    copy.size.rows = PART_ROWS;
    return s->parts > 1   ? tile_count(&copy)
           : s->slots > 0 ? divide_up(s->space.columns, SUM_COLUMNS)
                          : 0;
}

int64_t tile_workspace(const TileSchedule *s) {
    int64_t numbers =
        s->parts > 1
            ? s->parts * tile_count(s) * s->size.rows * s->size.columns
            : s->slots * s->cover.batch *
                  divide_up(s->cover.rows, s->size.rows) * s->space.columns;
    return numbers * (int64_t)sizeof(float);
}

static void print_parameters(Text *t, const TileSchedule *s, int warps,
                             const char *part) {
    text_add(t, "TILE_KERNEL(%d)\n%s%s(const act *a, const act *b, act *out",
             warps, s->name, part);
    for (int o = 0; o < TILE_OPERANDS; o++) {
        const Kernel *k = s->operand[o].kernel;
        for (int i = 0; k != NULL && i < k->num_args; i++)
            if (s->operand[o].used[i])
                text_add(t, ",\n    %s *%c%d", k->arg[i].type, "ab"[o], i);
    }
    for (int i = 0;
         s->pool_kernel.kernel != NULL && i < s->pool_kernel.kernel->num_args;
         i++)
        if (s->pool_kernel.used[i])
            text_add(t, ",\n    %s *q%d", s->pool_kernel.kernel->arg[i].type,
                     i);
    for (int i = 0; s->epilogue != NULL && i < s->epilogue->num_args; i++)
        text_add(t, ",\n    %s *p%d", s->epilogue->arg[i].type, i);
    text_add(t, "%s)\n{\n",
             s->slots > 0 || s->parts > 1 ? ",\n    float *partial" : "");
}

// M, N and K are the rows, columns and reduced elements of the product.
static void print_extents(Text *t, const TileSchedule *s) {
    text_add(t, "    constexpr int Z = %lld, M = %lld, N = %lld, K = %lld;\n",
             (long long)s->cover.batch, (long long)s->cover.rows,
             (long long)s->cover.columns, (long long)s->depth);
    if (s->groups > 1)
        text_add(t, "    constexpr int G = %lld;\n", (long long)s->groups);
}

static void print_sizes(Text *t, const TileSchedule *s) {
    const TileWindow *w = &s->window;
    print_extents(t, s);
    if (s->load != MATRIX_ROWS)
        text_add(t,
                 "    constexpr int H = %lld, W = %lld, C = %lld, R = %lld, "
                 "S = %lld, OH = %lld, OW = %lld;\n",
                 (long long)w->h, (long long)w->w, (long long)w->c,
                 (long long)w->r, (long long)w->s, (long long)w->oh,
                 (long long)w->ow);
    text_add(t,
             "    constexpr int BM = %d, BN = %d, BK = %d;\n"
             "    constexpr int MB = (M + BM - 1) / BM, NB = (N + BN - 1) / BN,"
             " KB = (K + BK - 1) / BK;\n",
             s->size.rows, s->size.columns, s->size.depth);
    if (s->parts > 1)
        text_add(t,
                 "    constexpr int PARTS = %lld, PART = %lld / BK, "
                 "TILES = %lld;\n",
                 (long long)s->parts, (long long)s->part,
                 (long long)tile_count(s));
    if (s->slots > 0)
        text_add(t, "    constexpr int SLOTS = %d;\n", s->slots);
}

// Blocks side by side share rows of the first operand, which is the larger; or
// a few rows of tiles, column by column, if the second is large, too.
static void print_tile(Text *t, const char *block, int swizzle) {
    if (swizzle > 1)
        text_add(
            t,
            "    constexpr int SWIZZLE = %d;\n"
            "    const int block = %s;\n"
            "    const int within = block %% (MB * NB), "
            "z = block / (MB * NB);\n"
            "    const int first = within / (SWIZZLE * NB) * SWIZZLE;\n"
            "    const int side = MB - first < SWIZZLE ? MB - first : "
            "SWIZZLE;\n"
            "    const int mb = first + within %% (SWIZZLE * NB) %% side;\n"
            "    const int nb = within %% (SWIZZLE * NB) / side;\n",
            swizzle, block);
    else
        text_add(t,
                 "    const int block = %s, nb = block %% NB;\n"
                 "    const int mb = block / NB %% MB, z = block / NB / MB;\n",
                 block);
    text_add(t, "    auto acc = "
                "ct::full<ct::tile<float, ct::shape<BM, BN>>>(0.0f);\n");
}

static void print_block(Text *t, const TileSchedule *s) {
    text_add(t, "    a = ct::assume_aligned<16>(a);\n"
                "    b = ct::assume_aligned<16>(b);\n");
    if (s->parts > 1)
        text_add(t, "    const int part = ct::bid().x / TILES;\n");
    print_tile(t, s->parts > 1 ? "ct::bid().x % TILES" : "ct::bid().x",
               s->swizzle);
}

// A loop over the steps of the reduced axis, or of the block's part.
static void print_steps(Text *t, const TileSchedule *s) {
    if (s->parts > 1)
        text_add(t, "    NO_UNROLL(step, part < PARTS - 1 ? PART : "
                    "KB - (PARTS - 1) * PART) {\n"
                    "        const int i = part * PART + step;\n");
    else
        text_add(t, "    NO_UNROLL(i, KB) {\n");
}

// The operand of a prologue, whose places have been declared: as it is in
// memory, or transposed.
static void print_prologue(Text *t, const TileSchedule *s, int operand,
                           const char *rows, const char *columns,
                           bool transposed) {
    const TileFusedKernel *o = &s->operand[operand];
    const char letter = "ab"[operand];
    t->indent = 2;
    stmts_print_tiles(t, &o->statements);
    if (o->stores.first != NULL) {
        text_add(t, "        if (nb == 0) {\n");
        t->indent = 3;
        stmts_print_tiles(t, &o->stores);
        text_add(t, "        }\n");
    }
    t->indent = 0;
    text_add(
        t,
        "        const auto %c_tile = %sto_act(where(broadcast_to<B%s, B%s>("
        "%c_ok), %s, 0.0f))%s;\n",
        letter, transposed ? "ct::transpose(" : "", rows, columns, letter,
        o->value->name, transposed ? ")" : "");
}

// The image and the pixel of each row of an operand.
static void print_pixels(Text *t, const TileFusedKernel *o, char letter) {
    if (!o->reads_pooled)
        return;
    const long long h = o->type.dim[1], w = o->type.dim[2];
    text_add(t,
             "        const auto %c_n = %c_row / %lld, %c_y = %c_row / %lld %% "
             "%lld, %c_x = %c_row %% %lld;\n",
             letter, letter, h * w, letter, letter, w, h, letter, letter, w);
}

static void print_row_mask(Text *t, const TileFusedKernel *o, char letter,
                           const char *inside) {
    if (o->by_row)
        text_add(t, "        const auto %c_in = %s;\n", letter, inside);
}

// An operand that is a matrix [rows, columns] of block (i, j), the z-th of
// several if it is batched.
static void print_computed(Text *t, const TileSchedule *s, int operand,
                           const char *rows, const char *columns, const char *i,
                           const char *j, bool batched, bool transposed) {
    const TileFusedKernel *o = &s->operand[operand];
    const char letter = "ab"[operand];
    text_add(t,
             "        const auto %c_inner = iota_column<B%s>() + %s * B%s;\n"
             "        const auto %c_column = iota_row<B%s>() + %s * B%s;\n",
             letter, rows, i, rows, letter, columns, j, columns);
    if (o->reads_rows || o->reads_pooled)
        text_add(t, "        const auto %c_row = %c_inner%s%s;\n", letter,
                 letter, batched ? " + z * " : "", batched ? rows : "");
    print_row_mask(t, o, letter,
                   arena_format(t->arena, "%c_inner < %s", letter, rows));
    text_add(
        t, "        const auto %c_ok = (%c_inner < %s) && (%c_column < %s);\n",
        letter, letter, rows, letter, columns);
    print_pixels(t, o, letter);
    print_prologue(t, s, operand, rows, columns, transposed);
}

static void print_operand(Text *t, const TileSchedule *s, const char *name,
                          bool transposed, const char *rows,
                          const char *columns, const char *i, const char *j) {
    const char letter = *name;
    const int operand = letter == 'b';
    if (s->operand[operand].kernel != NULL && transposed)
        print_computed(t, s, operand, columns, rows, j, i, s->space.batch > 1,
                       true);
    else if (s->operand[operand].kernel != NULL)
        print_computed(t, s, operand, rows, columns, i, j, s->space.batch > 1,
                       false);
    else if (transposed)
        text_add(t,
                 "        const auto %c_tile = ct::transpose(matrix<B%s, B%s>("
                 "load_tile<Z, %s, %s, 1, B%s, B%s>(%c, z, %s, %s)));\n",
                 letter, columns, rows, columns, rows, columns, rows, letter, j,
                 i);
    else
        text_add(t,
                 "        const auto %c_tile = matrix<B%s, B%s>("
                 "load_tile<Z, %s, %s, 1, B%s, B%s>(%c, z, %s, %s));\n",
                 letter, rows, columns, rows, columns, rows, columns, letter, i,
                 j);
}

static void print_matrix_loop(Text *t, const TileSchedule *s) {
    print_steps(t, s);
    print_operand(t, s, "a", s->ta, "M", "K", "mb", "i");
    print_operand(t, s, "b", s->tb, "K", "N", "i", "nb");
}

static const char *signed_text(Arena *a, int64_t by) {
    return by == 0  ? ""
           : by < 0 ? arena_format(a, " + %lld", (long long)-by)
                    : arena_format(a, " - %lld", (long long)by);
}

static const char *times_text(Arena *a, int64_t by) {
    return by == 1 ? "" : arena_format(a, " * %lld", (long long)by);
}

// The group of a block's channels, each of which has whole tiles of columns.
static void print_group(Text *t, const TileSchedule *s) {
    if (s->groups > 1)
        text_add(t, "    const int group = nb / (N / G / BN);\n");
}

static const char *group_text(const TileSchedule *s) {
    return s->groups > 1 ? "group * K + c" : "c";
}

// The first row and column of each result's window.
static void print_windows(Text *t, const TileSchedule *s) {
    const TileWindow *w = &s->window;
    Arena *a = t->arena;
    text_add(t,
             "    const auto m = iota_column<BM>() + mb * BM;\n"
             "    const auto n = m / (OH * OW);\n"
             "    const auto h = m / OW %% OH%s%s, w = m %% OW%s%s;\n",
             times_text(a, s->load == WINDOW_GRAD ? 1 : w->stride[0]),
             signed_text(a, w->pad[0]),
             times_text(a, s->load == WINDOW_GRAD ? 1 : w->stride[1]),
             signed_text(a, w->pad[1]));
}

// An operand of pixels (n, y, x) and channels c: the elements and, for a
// prologue, the pixels that are inside.
static void print_gathered(Text *t, const TileSchedule *s, int operand,
                           const char *channel, const char *inside,
                           const char *pixel) {
    const char letter = "ab"[operand];
    if (s->operand[operand].kernel == NULL) {
        text_add(t,
                 "        const auto %c_tile = ct::load_masked(\n"
                 "            %c + (((n * H + y) * W + x) * C + %s), %s, "
                 "act(0.0f));\n",
                 letter, letter, channel, inside);
        return;
    }
    text_add(t,
             "        const auto %c_ok = %s;\n"
             "        const auto %c_column = %s;\n",
             letter, inside, letter, channel);
    print_row_mask(t, &s->operand[operand], letter, pixel);
    if (s->operand[operand].reads_rows)
        text_add(t, "        const auto %c_row = (n * H + y) * W + x;\n",
                 letter);
    if (s->operand[operand].reads_pooled)
        text_add(t, "        const auto %c_n = n, %c_y = y, %c_x = x;\n",
                 letter, letter, letter);
    if (operand == 0)
        print_prologue(t, s, operand, "M", "K", false);
    else
        print_prologue(t, s, operand, "K", "N", false);
}

#define PIXEL_INSIDE "(y >= 0) && (y < H) && (x >= 0) && (x < W)"

// A condition on indices below n, but for whole tiles of so many.
static const char *below(int64_t n, int size, const char *condition) {
    return n % size == 0 ? "" : condition;
}

// Loads the pixels y, x of an image, those of rows that are inside.
static void print_gather(Text *t, const TileSchedule *s, const char *inside,
                         const char *tail) {
    text_add(t, "        const auto inside = %s%s;\n", inside, PIXEL_INSIDE);
    print_gathered(t, s, 0, group_text(s),
                   arena_format(t->arena, "inside%s", tail), "inside");
}

// Weights of a gradient: [K][R * S][N] of each group.
static void print_weights(Text *t, const TileSchedule *s, const char *tap) {
    if (s->groups > 1)
        text_add(t,
                 "        const auto b_tile = matrix<BK, BN>("
                 "load_tile<G, K, R * S * (N / G), 1, BK, BN>(b, group, kb, "
                 "(%s) * (N / G / BN) + nb %% (N / G / BN)));\n",
                 tap);
    else
        text_add(t,
                 "        const auto b_tile = matrix<BK, BN>("
                 "load_tile<K, R * S, N, BK, 1, BN>(b, kb, %s, nb));\n",
                 tap);
}

// Weights are [N][R * S][K].
static void print_window_loop(Text *t, const TileSchedule *s) {
    bool flat = s->load == WINDOW_FLAT;
    print_windows(t, s);
    print_group(t, s);
    if (flat)
        text_add(t, "    NO_UNROLL(i, KB) {\n"
                    "        const auto k = iota_row<BK>() + i * BK;\n"
                    "        const auto tap = k / C, c = k %% C;\n");
    else
        text_add(t, "    NO_UNROLL(i, R * S * KB) {\n"
                    "        const int tap = i / KB, kb = i %% KB;\n"
                    "        const auto c = iota_row<BK>() + kb * BK;\n");
    text_add(t, "        const auto y = h + tap / S%s, x = w + tap %% S%s;\n",
             times_text(t->arena, s->window.dilation[0]),
             times_text(t->arena, s->window.dilation[1]));
    print_gather(
        t, s, below(s->cover.rows, s->size.rows, "(m < M) && "),
        below(s->depth, s->size.depth, flat ? " && (k < K)" : " && (c < K)"));
    if (flat)
        print_operand(t, s, "b", true, "K", "N", "i", "nb");
    else if (s->load == WINDOW_GRAD)
        print_weights(t, s, "tap");
    else
        text_add(t, "        const auto b_tile = ct::transpose(matrix<BN, BK>("
                    "load_tile<N, R * S, K, BN, 1, BK>(b, nb, tap, kb)));\n");
}

// The extended Euclidean algorithm's x with a * x = gcd modulo b, for a, b > 0.
static int64_t inverse(int64_t a, int64_t b, int64_t *gcd) {
    int64_t x = 1, next = 0, rest = b;
    while (rest != 0) {
        int64_t times = a / rest, old = rest;
        rest = a - times * rest;
        a = old;
        old = next;
        next = x - times * next;
        x = old;
    }
    *gcd = a;
    return x;
}

// An axis of STRIDED_GRAD.  Pixel p of the gradient is at tap t of window o if
// p + pad = o * stride + t * dilation.  So its taps are `first` and those
// `every` apart, each `back` windows before the last; or none, if the gcd of
// stride and dilation does not divide p + pad.
typedef struct {
    int64_t stride, pad, dilation, gcd, every, back, factor;
} StridedAxis;

static StridedAxis strided_axis(const TileWindow *w, int axis) {
    StridedAxis s = {.stride = w->stride[axis],
                     .pad = -w->pad[axis],
                     .dilation = -w->dilation[axis]};
    int64_t factor = inverse(s.dilation, s.stride, &s.gcd);
    s.every = s.stride / s.gcd;
    s.back = s.dilation / s.gcd;
    s.factor = (factor % s.every + s.every) % s.every;
    return s;
}

// Declares the taps of residue `from` of an axis: the first and their number.
static void print_taps(Text *t, const StridedAxis *s, const char *from,
                       char tap) {
    Arena *a = t->arena;
    const char *pixel = arena_format(a, "%s%s", from, signed_text(a, -s->pad));
    const char all = (char)(tap - 'a' + 'A');
    if (s->pad != 0)
        pixel = arena_format(a, "(%s)", pixel);
    if (s->every == 1)
        text_add(t, "    const int %c0 = 0, taps_%c = ", tap, tap);
    else
        text_add(
            t, "    const int %c0 = %s%s%s %% %lld, taps_%c = ", tap, pixel,
            s->gcd == 1 ? "" : arena_format(a, " / %lld", (long long)s->gcd),
            times_text(a, s->factor), (long long)s->every, tap);
    if (s->gcd > 1)
        text_add(t, "%s %% %lld != 0 ? 0 : ", pixel, (long long)s->gcd);
    if (s->every == 1)
        text_add(t, "%c;\n", all);
    else
        text_add(t, "(%c - %c0 + %lld) / %lld;\n", all, tap,
                 (long long)s->every - 1, (long long)s->every);
}

// The pixels of a block, and for each the window at its first tap.
static void print_residue(Text *t, const StridedAxis axis[2]) {
    Arena *a = t->arena;
    text_add(t,
             "    constexpr int SH = %lld, SW = %lld;\n"
             "    constexpr int QH = (OH + SH - 1) / SH, "
             "QW = (OW + SW - 1) / SW;\n"
             "    const auto m = iota_column<BM>() + mb * BM;\n"
             "    const int h0 = z / SW, w0 = z %% SW;\n"
             "    const auto n = m / (QH * QW);\n"
             "    const auto oh = m / QW %% QH * SH + h0, "
             "ow = m %% QW * SW + w0;\n"
             "    const auto is_pixel = (m < M) && (oh < OH) && (ow < OW);\n"
             "    const auto pixel = (n * OH + oh) * OW + ow;\n",
             (long long)axis[0].stride, (long long)axis[1].stride);
    print_taps(t, &axis[0], "h0", 'r');
    print_taps(t, &axis[1], "w0", 's');
    text_add(t,
             "    const auto h = (oh%s - r0%s) / SH, "
             "w = (ow%s - s0%s) / SW;\n",
             signed_text(a, -axis[0].pad), times_text(a, axis[0].dilation),
             signed_text(a, -axis[1].pad), times_text(a, axis[1].dilation));
}

// The gradient of strided windows: a dense problem for each residue.
static void print_strided_loop(Text *t, const TileSchedule *s) {
    Arena *a = t->arena;
    const StridedAxis axis[] = {strided_axis(&s->window, 0),
                                strided_axis(&s->window, 1)};
    print_residue(t, axis);
    print_group(t, s);
    text_add(t,
             "    NO_UNROLL(i, taps_r * taps_s * KB) {\n"
             "        const int kb = i %% KB, r = i / KB / taps_s, "
             "s = i / KB %% taps_s;\n"
             "        const auto c = iota_row<BK>() + kb * BK;\n"
             "        const auto y = h - r%s, x = w - s%s;\n",
             times_text(a, axis[0].back), times_text(a, axis[1].back));
    print_gather(t, s, "is_pixel && ",
                 below(s->depth, s->size.depth, " && (c < K)"));
    print_weights(t, s,
                  arena_format(a, "(r0 + r%s) * S + s0 + s%s",
                               times_text(a, axis[0].every),
                               times_text(a, axis[1].every)));
}

static void print_weight_group(Text *t, const TileSchedule *s) {
    if (s->load == WEIGHT_GRAD && s->groups > 1)
        text_add(t, "    const int tap = z %% Z, group = z / Z;\n"
                    "    const auto m = iota_column<BM>() + mb * BM;\n");
}

// The gradient of tap z: of each group, if there are some.
static void print_weight_loop(Text *t, const TileSchedule *s) {
    const TileWindow *w = &s->window;
    Arena *a = t->arena;
    const char *tap = s->groups > 1 ? "tap" : "z";
    print_weight_group(t, s);
    text_add(t, "    const auto c = iota_row<BN>() + nb * BN;\n");
    print_steps(t, s);
    text_add(t, "        const auto k = iota_column<BK>() + i * BK;\n"
                "        const auto n = k / (OH * OW);\n");
    text_add(t,
             "        const auto y = k / OW %% OH%s%s + %s / S%s;\n"
             "        const auto x = k %% OW%s%s + %s %% S%s;\n",
             times_text(a, w->stride[0]), signed_text(a, w->pad[0]), tap,
             times_text(a, w->dilation[0]), times_text(a, w->stride[1]),
             signed_text(a, w->pad[1]), tap, times_text(a, w->dilation[1]));
    const char *inside = arena_format(
        a, "%s" PIXEL_INSIDE, below(s->depth, s->size.depth, "(k < K) && "));
    text_add(t, "        const auto inside = %s%s;\n", inside,
             below(s->cover.columns, s->size.columns, " && (c < N)"));
    if (s->operand[0].kernel != NULL)
        print_computed(t, s, 0, "K", "M", "i", "mb", false, true);
    else
        text_add(t,
                 "        const auto a_tile = ct::transpose(matrix<BK, BM>("
                 "load_tile<%s(a, %s, mb)));\n",
                 s->groups > 1 ? "K, G, M, BK, 1, BM>" : "1, K, M, 1, BK, BM>",
                 s->groups > 1 ? "i, group" : "0, i");
    print_gathered(t, s, 1, s->groups > 1 ? "group * N + c" : "c", "inside",
                   inside);
}

static void print_statements(Text *t, const Stmts *b) {
    t->indent = 1;
    stmts_print_tiles(t, b);
    t->indent = 0;
    text_add(t, "}\n");
}

// The kernel that adds the sums of all parts, in their order.
static void print_parts(Text *t, const TileSchedule *s) {
    text_add(t, "\n");
    print_parameters(t, s, SUM_WARPS, "_sums");
    print_extents(t, s);
    text_add(t,
             "    constexpr int PARTS = %lld, TILES = %lld, ROWS = %d;\n"
             "    constexpr int BM = %d, BN = %d;\n"
             "    constexpr int MB = (M + BM - 1) / BM, "
             "NB = (N + BN - 1) / BN;\n",
             (long long)s->parts, (long long)tile_count(s), s->size.rows,
             PART_ROWS, s->size.columns);
    print_tile(t, "ct::bid().x", 1);
    text_add(t, "    const int tile = (z * ((M + ROWS - 1) / ROWS) + "
                "mb * BM / ROWS) * NB + nb;\n"
                "    NO_UNROLL(part, PARTS)\n"
                "        acc = acc + matrix<BM, BN>("
                "load_tile<PARTS * TILES, ROWS, BN, 1, BM, BN>("
                "partial, part * TILES + tile, mb %% (ROWS / BM), 0));\n");
    print_weight_group(t, s);
    print_statements(t, &s->statements);
}

// Adds the partial sums of all blocks.
static void print_sums(Text *t, const TileSchedule *s) {
    text_add(t, "\n");
    print_parameters(t, s, SUM_WARPS, "_sums");
    text_add(t,
             "    constexpr int Z = %lld, M = %lld, N = %lld, BM = %d, "
             "SLOTS = %d;\n"
             "    constexpr int MB = (M + BM - 1) / BM, BR = %d, BN = %d;\n"
             "    const int nb = ct::bid().x;\n",
             (long long)s->cover.batch, (long long)s->cover.rows,
             (long long)s->space.columns, s->size.rows, s->slots, SUM_ROWS,
             SUM_COLUMNS);
    print_statements(t, &s->sums);
}

void tile_print(Text *t, const TileSchedule *s) {
    text_add(t,
             "%s" EMITTED_LICENCE "#define SINTER_ACT %d\n"
             "#include \"runtime/prelude/tile.h\"\n\n",
             s->heading, act_bits(s->act));
    print_parameters(t, s, s->size.warps, "");
    print_sizes(t, s);
    print_block(t, s);
    if (s->load == MATRIX_ROWS)
        print_matrix_loop(t, s);
    else if (s->load == WEIGHT_GRAD)
        print_weight_loop(t, s);
    else if (s->load == STRIDED_GRAD)
        print_strided_loop(t, s);
    else
        print_window_loop(t, s);
    text_add(t, "        acc = ct::mma(a_tile, b_tile, acc);\n    }\n");
    if (s->parts > 1) {
        text_add(t, "    store_tile<PARTS * TILES, BM, BN, 1, BM, BN>("
                    "partial, acc, ct::bid().x, 0, 0);\n}\n");
        print_parts(t, s);
        return;
    }
    print_statements(t, &s->statements);
    if (s->slots > 0)
        print_sums(t, s);
}
