// Tile print: a schedule as CUDA Tile C++, whose words runtime/prelude/tile.h
// defines.

#include "codegen/program.h"
#include "codegen/tile.h"

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

int64_t tile_blocks(const TileSchedule *s) {
    return s->space.batch * divide_up(s->space.rows, s->size.rows) *
           divide_up(s->space.columns, s->size.columns);
}

static void print_parameters(Text *t, const TileSchedule *s) {
    text_add(t, "TILE_KERNEL(%d)\n%s(const act *a, const act *b, act *out",
             s->size.warps, s->name);
    for (int o = 0; o < TILE_OPERANDS; o++) {
        const Kernel *k = s->operand[o].kernel;
        for (int i = 0; k != NULL && i < k->num_args; i++)
            if (s->operand[o].used[i])
                text_add(t, ",\n    %s *%c%d", k->arg[i].type, "ab"[o], i);
    }
    for (int i = 0; s->epilogue != NULL && i < s->epilogue->num_args; i++)
        text_add(t, ",\n    %s *p%d", s->epilogue->arg[i].type, i);
    text_add(t, ")\n{\n");
}

// M, N and K are the rows, columns and reduced elements of the product.
static void print_sizes(Text *t, const TileSchedule *s) {
    const TileWindow *w = &s->window;
    text_add(t, "    constexpr int Z = %lld, M = %lld, N = %lld, K = %lld;\n",
             (long long)s->space.batch, (long long)s->space.rows,
             (long long)s->space.columns, (long long)s->depth);
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
}

// Blocks side by side share rows of the first operand, which is the larger.
static void print_block(Text *t) {
    text_add(t, "    a = ct::assume_aligned<16>(a);\n"
                "    b = ct::assume_aligned<16>(b);\n"
                "    const int block = ct::bid().x, nb = block %% NB;\n"
                "    const int mb = block / NB %% MB, z = block / NB / MB;\n"
                "    auto acc = "
                "ct::full<ct::tile<float, ct::shape<BM, BN>>>(0.0f);\n");
}

// The operand of a prologue, whose places have been declared: as it is in
// memory, or transposed.
static void print_prologue(Text *t, const TileSchedule *s, int operand,
                           const char *rows, const char *columns,
                           bool transposed) {
    const TileOperand *o = &s->operand[operand];
    const char letter = "ab"[operand];
    t->indent = 2;
    block_print_tiles(t, &o->statements);
    t->indent = 0;
    text_add(t,
             "        const auto %c_tile = %sto_act(where(spread<B%s, B%s>("
             "%c_ok), %s, 0.0f))%s;\n",
             letter, transposed ? "ct::transpose(" : "", rows, columns, letter,
             o->value->name, transposed ? ")" : "");
}

// The image and the pixel of each row of an operand.
static void print_pixels(Text *t, const TileOperand *o, char letter) {
    if (!o->pooled)
        return;
    const long long h = o->type.dim[1], w = o->type.dim[2];
    text_add(t,
             "        const auto %c_n = %c_row / %lld, %c_y = %c_row / %lld %% "
             "%lld, %c_x = %c_row %% %lld;\n",
             letter, letter, h * w, letter, letter, w, h, letter, letter, w);
}

// An operand that is a matrix [rows, columns] of block (i, j), the z-th of
// several if it is batched.
static void print_computed(Text *t, const TileSchedule *s, int operand,
                           const char *rows, const char *columns, const char *i,
                           const char *j, bool batched, bool transposed) {
    const char letter = "ab"[operand];
    text_add(
        t,
        "        const auto %c_inner = column_of<B%s>() + %s * B%s;\n"
        "        const auto %c_column = row_of<B%s>() + %s * B%s;\n"
        "        const auto %c_row = %c_inner%s%s;\n"
        "        const auto %c_ok = (%c_inner < %s) && (%c_column < %s);\n",
        letter, rows, i, rows, letter, columns, j, columns, letter, letter,
        batched ? " + z * " : "", batched ? rows : "", letter, letter, rows,
        letter, columns);
    print_pixels(t, &s->operand[operand], letter);
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
    text_add(t, "    STEPS(i, KB) {\n");
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

// The first row and column of each result's window.
static void print_windows(Text *t, const TileSchedule *s) {
    const TileWindow *w = &s->window;
    Arena *a = t->arena;
    text_add(t,
             "    const auto m = column_of<BM>() + mb * BM;\n"
             "    const auto n = m / (OH * OW);\n"
             "    const auto h = m / OW %% OH%s%s, w = m %% OW%s%s;\n",
             times_text(a, s->load == WINDOW_GRAD ? 1 : w->stride[0]),
             signed_text(a, w->pad[0]),
             times_text(a, s->load == WINDOW_GRAD ? 1 : w->stride[1]),
             signed_text(a, w->pad[1]));
}

// Declares the row or the column that a tap reads, and returns the condition
// that there is one.  The gradient of strided windows has a pixel for
// one tap in so many.
static const char *print_pixel(Text *t, const TileSchedule *s, int axis) {
    static const char *const name[] = {"y", "x"}, *const from[] = {"h", "w"},
                             *const tap[] = {"tap / S", "tap % S"},
                             *const end[] = {"H", "W"};
    int64_t stride = s->load == WINDOW_GRAD ? s->window.stride[axis] : 1;
    const char *y = name[axis];
    text_add(t, "        const auto %s%s = %s + %s%s;\n", y,
             stride > 1 ? "0" : "", from[axis], tap[axis],
             times_text(t->arena, s->window.dilation[axis]));
    if (stride == 1)
        return arena_format(t->arena, "(%s >= 0) && (%s < %s)", y, y,
                            end[axis]);
    text_add(t, "        const auto %s = %s0 / %lld;\n", y, y,
             (long long)stride);
    return arena_format(t->arena,
                        "(%s0 >= 0) && (%s < %s) && (%s0 %% %lld == 0)", y, y,
                        end[axis], y, (long long)stride);
}

// An operand of pixels (n, y, x) and channels c.
static void print_gathered(Text *t, const TileSchedule *s, int operand,
                           const char *inside) {
    const char letter = "ab"[operand];
    if (s->operand[operand].kernel == NULL) {
        text_add(t,
                 "        const auto %c_tile = ct::load_masked(\n"
                 "            %c + (((n * H + y) * W + x) * C + c), %s, "
                 "act(0.0f));\n",
                 letter, letter, inside);
        return;
    }
    text_add(t,
             "        const auto %c_row = (n * H + y) * W + x;\n"
             "        const auto %c_ok = %s;\n"
             "        const auto %c_column = c;\n",
             letter, letter, inside, letter);
    if (s->operand[operand].pooled)
        text_add(t, "        const auto %c_n = n, %c_y = y, %c_x = x;\n",
                 letter, letter, letter);
    if (operand == 0)
        print_prologue(t, s, operand, "M", "K", false);
    else
        print_prologue(t, s, operand, "K", "N", false);
}

// Weights are [N][R * S][C].
static void print_window_loop(Text *t, const TileSchedule *s) {
    bool flat = s->load == WINDOW_FLAT;
    print_windows(t, s);
    if (flat)
        text_add(t, "    STEPS(i, KB) {\n"
                    "        const auto k = row_of<BK>() + i * BK;\n"
                    "        const auto tap = k / C, c = k %% C;\n");
    else
        text_add(t, "    STEPS(i, R * S * KB) {\n"
                    "        const int tap = i / KB, kb = i %% KB;\n"
                    "        const auto c = row_of<BK>() + kb * BK;\n");
    const char *y = print_pixel(t, s, 0), *x = print_pixel(t, s, 1);
    text_add(t, "        const auto inside = (m < M) && %s && %s;\n", y, x);
    print_gathered(t, s, 0,
                   flat                            ? "inside && (k < K)"
                   : s->depth % s->size.depth != 0 ? "inside && (c < K)"
                                                   : "inside");
    if (flat)
        print_operand(t, s, "b", true, "K", "N", "i", "nb");
    else if (s->load == WINDOW_GRAD)
        text_add(t, "        const auto b_tile = matrix<BK, BN>("
                    "load_tile<K, R * S, N, BK, 1, BN>(b, kb, tap, nb));\n");
    else
        text_add(t, "        const auto b_tile = ct::transpose(matrix<BN, BK>("
                    "load_tile<N, R * S, C, BN, 1, BK>(b, nb, tap, kb)));\n");
}

// The gradient of tap z.
static void print_weight_loop(Text *t, const TileSchedule *s) {
    const TileWindow *w = &s->window;
    Arena *a = t->arena;
    text_add(t, "    const auto c = row_of<BN>() + nb * BN;\n"
                "    STEPS(i, KB) {\n"
                "        const auto k = column_of<BK>() + i * BK;\n"
                "        const auto n = k / (OH * OW);\n");
    text_add(t,
             "        const auto y = k / OW %% OH%s%s + z / S%s;\n"
             "        const auto x = k %% OW%s%s + z %% S%s;\n",
             times_text(a, w->stride[0]), signed_text(a, w->pad[0]),
             times_text(a, w->dilation[0]), times_text(a, w->stride[1]),
             signed_text(a, w->pad[1]), times_text(a, w->dilation[1]));
    text_add(t, "        const auto inside = (k < K) && (y >= 0) && (y < H) && "
                "(x >= 0) && (x < W) && (c < C);\n");
    if (s->operand[0].kernel != NULL)
        print_computed(t, s, 0, "K", "M", "i", "mb", false, true);
    else
        text_add(t, "        const auto a_tile = ct::transpose(matrix<BK, BM>("
                    "load_tile<1, K, M, 1, BK, BM>(a, 0, i, mb)));\n");
    print_gathered(t, s, 1, "inside");
}

void tile_print(Text *t, const TileSchedule *s) {
    text_add(t,
             "%s" EMITTED_LICENCE "#define SINTER_ACT %d\n"
             "#include \"runtime/prelude/tile.h\"\n\n",
             s->heading, act_bits(s->act));
    print_parameters(t, s);
    print_sizes(t, s);
    print_block(t);
    if (s->load == MATRIX_ROWS)
        print_matrix_loop(t, s);
    else if (s->load == WEIGHT_GRAD)
        print_weight_loop(t, s);
    else
        print_window_loop(t, s);
    text_add(t, "        acc = ct::mma(a_tile, b_tile, acc);\n    }\n");
    t->indent = 1;
    block_print_tiles(t, &s->statements);
    t->indent = 0;
    text_add(t, "}\n");
}
