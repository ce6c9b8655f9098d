// Tile config: the configurations of tile kernels for each generation of GPUs,
// and their order for a described one.
//
// A block keeps its tile of the result in registers, of which a thread has at
// most 255: 128 x 128 numbers are 64 for each thread of 8 warps, beside
// operands and addresses; with 4 warps there are too many.  Shared memory has
// the operands of some steps of the loop, (rows + columns) * depth * 2 bytes
// each, 32 KiB of a tile of 128 x 128 x 64; tileiras chooses their number.  The
// tables have the tiles that tileiras 13.5 compiles without spills for all of
// six kernels of resnet9 or for most of them; those that the others need are
// smaller in depth.
#include "codegen/tile.h"

#include <string.h>

// For compute capabilities from `first` on; at the end sizes are 0.
enum { MOST_TILES = 12 };
typedef struct {
    int first;
    TileSizes tile[MOST_TILES];
    struct {
        int other, warps;
    } attention[TILE_ATTENTION_SIZES]; // see tile_attention_sizes
} Generation;

// clang-format off
static const Generation generations[] = {
    // 164 KiB of shared memory, and mma with operands in registers.
    {80,
     {{128, 128, 64, 8}, {128, 128, 32, 8}, {128, 64, 64, 8}, {128, 64, 32, 8},
      {64, 64, 64, 8}, {64, 64, 32, 4}, {64, 32, 64, 4}, {32, 64, 64, 4}},
     {{64, 8}, {32, 8}, {16, 8}, {16, 4}}},
    // 100 KiB of shared memory.
    {86,
     {{128, 128, 32, 8}, {128, 64, 64, 8}, {128, 64, 32, 8}, {64, 64, 64, 8},
      {64, 64, 32, 4}, {64, 32, 64, 4}, {32, 64, 64, 4}},
     {{64, 8}, {32, 8}, {16, 8}, {16, 4}}},
    // 228 KiB, and wgmma of 64 rows and more, with operands in shared memory.
    {90,
     {{128, 256, 64, 8}, {128, 128, 64, 8}, {128, 128, 32, 8}, {128, 64, 64, 8},
      {128, 64, 32, 8}, {64, 64, 64, 8}, {64, 64, 32, 4}, {64, 32, 64, 4},
      {32, 64, 64, 4}},
     {{64, 8}, {32, 8}, {16, 8}, {16, 4}}},
    // 228 KiB, and tcgen05.mma, with accumulators in tensor memory.
    {100,
     {{128, 256, 64, 8}, {128, 128, 64, 8}, {128, 128, 32, 8}, {128, 64, 32, 8},
      {64, 128, 64, 8}, {64, 64, 64, 8}, {64, 64, 32, 4}, {64, 32, 64, 4},
      {32, 64, 64, 4}},
     {{64, 8}, {32, 8}, {16, 8}, {16, 4}}},
    // 100 KiB, and mma as of 8.0.
    {120,
     {{128, 128, 32, 8}, {128, 64, 32, 8}, {64, 128, 64, 8}, {64, 64, 64, 8},
      {64, 32, 64, 4}, {32, 64, 64, 4}},
     {{64, 8}, {32, 8}, {16, 8}, {16, 4}}},
};
// clang-format on

static const Generation *generation_of(int capability) {
    int i = sizeof generations / sizeof *generations - 1;
    while (i > 0 && generations[i].first > capability)
        i--;
    return &generations[i];
}

// Without a description: the flops of a multiprocessor in place of seconds, for
// as many as an H200 has.
static double undescribed_seconds(const Launches *l, const TileKernel *k,
                                  const TileConfig *c, const struct Device *d) {
    (void)l, (void)k, (void)d;
    return c->flops / (c->grid < GENERIC_MULTIPROCESSORS
                           ? c->grid
                           : GENERIC_MULTIPROCESSORS);
}

static const TileModel undescribed = {
    .capability = 90, .processors = 132, .seconds = undescribed_seconds};

static const TileModels *models_or_one(const TileModels *models) {
    static const TileModels one = {&undescribed, 1};
    return models != NULL && models->count > 0 ? models : &one;
}

// ---- sizes ----

int power_for(int64_t n, int least, int most) {
    int power = least;
    while (power < most && power < n)
        power *= 2;
    return power;
}

// The columns of a tile, between powers of two.  If a block's columns tell its
// group, each group has whole tiles.
static int choose_columns(const TileSchedule *s, int least, int most) {
    int64_t columns = s->cover.columns;
    int power = most;
    if (s->groups == 1 || s->load == WEIGHT_GRAD)
        return power_for(columns, least, most);
    while (columns / s->groups % power != 0)
        power /= 2;
    return power;
}

// Cuts a tile to the extents of the problem; a smaller one has fewer warps.
static TileSizes cut(const TileSchedule *s, TileSizes tile) {
    enum { LEAST_ROWS = 32, LEAST = 16, FLAT = 32, SMALL = 64 * 64 };
    TileSizes size = tile;
    size.rows = power_for(s->cover.rows, LEAST_ROWS, tile.rows);
    size.columns = choose_columns(s, LEAST, tile.columns);
    size.depth = power_for(s->depth, LEAST, tile.depth);
    if (s->load == WINDOW_FLAT && size.depth > FLAT)
        size.depth = FLAT;
    if ((size.rows != tile.rows || size.columns != tile.columns) &&
        size.rows * size.columns <= SMALL)
        size.warps = 4;
    return size;
}

void tile_apply(TileSchedule *s, const TileConfig *c) {
    s->size = (TileSizes){c->rows, c->columns, c->depth, c->warps};
    s->parts = c->parts;
    s->part =
        divide_up(divide_up(s->depth, c->depth), c->parts) * (int64_t)c->depth;
    s->swizzle = c->swizzle;
}

// The fewest steps of a block's loop in a part, which take about as long as the
// launch that adds the parts.
enum { LEAST_STEPS = 8 };

// Splits the reduced axis into about so many parts, each of whole steps; 1: it
// does not.
static int split(const TileSchedule *s, int depth, int64_t parts) {
    int64_t steps = divide_up(s->depth, depth), most = steps / LEAST_STEPS;
    if (!s->splits || s->slots > 0 || parts < 2 || most < 2)
        return 1;
    int64_t part = divide_up(steps, parts < most ? parts : most);
    return (int)divide_up(steps, part);
}

// ---- work ----

// The average steps of a block's loop, all parts of the reduced axis together.
static double steps_of(const TileSchedule *s) {
    double steps = (double)divide_up(s->depth, s->size.depth);
    double taps = (double)(s->window.r * s->window.s);
    switch (s->load) {
    case WINDOW_TAPS:
    case WINDOW_GRAD:
        return steps * taps;
    case STRIDED_GRAD:
        return steps * taps / (double)s->cover.batch;
    default:
        return steps;
    }
}

// Instructions but for products that a warp executes, fitted to 46 kernels of
// resnet9 and airbench94 in machine code of NVRTC 13.5 for sm_90: of a block;
// of a step, of which some come before the loop; of one that gathers an
// operand, and its elements; and for each instruction of a prologue's or an
// epilogue's own kernel.  docs/hacking.md has the errors.
static const double OF_BLOCK = 400, OF_STEP = 60, EARLY_STEPS = 1.25,
                    OF_GATHER = 250, OF_ELEMENT = 6, OF_PROLOGUE = 2.75,
                    OF_EPILOGUE = 3.5;

TileConfig tile_with_prologue(TileConfig c, int operand, double instructions) {
    c.cost.issue[ISSUE_FLOAT] += OF_PROLOGUE * instructions *
                                 c.elements[operand] /
                                 ((double)c.grid * BLOCK_THREADS);
    return c;
}

static double count_instructions(const TileSchedule *s) {
    enum { LANES = 32 };
    const double threads = s->size.warps * LANES;
    const double a = s->size.rows * s->size.depth / threads,
                 b = s->size.columns * s->size.depth / threads,
                 result = s->size.rows * s->size.columns / threads;
    double step = OF_STEP + OF_PROLOGUE * (a * s->operand[0].instructions +
                                           b * s->operand[1].instructions);
    if (s->load != MATRIX_ROWS)
        step += OF_ELEMENT * (s->load == WEIGHT_GRAD ? b : a);
    if (s->load != MATRIX_ROWS && s->load != WINDOW_FLAT)
        step += OF_GATHER;
    double steps = steps_of(s) / (double)s->parts + EARLY_STEPS;
    double epilogue = s->parts > 1 ? 0 : result * s->instructions;
    return OF_BLOCK + steps * step + OF_EPILOGUE * epilogue;
}

static TileConfig config_of(const TileSchedule *s, TileSizes size, int parts,
                            int swizzle) {
    enum { BLOCK_WARPS = 8 }; // of the blocks that costs are of
    TileSchedule copy = *s;
    TileConfig c = {.rows = size.rows,
                    .columns = size.columns,
                    .depth = size.depth,
                    .warps = size.warps,
                    .parts = parts,
                    .swizzle = swizzle};
    tile_apply(&copy, &c);
    int64_t tiles = tile_count(&copy);
    double steps = (double)tiles * steps_of(&copy) * size.depth;
    c.grid = (int)(tiles * parts);
    c.sum_grid = (int)tile_sum_blocks(&copy);
    c.workspace = tile_workspace(&copy);
    c.flops = 2 * steps * size.rows * size.columns;
    c.elements[0] = steps * size.rows;
    c.elements[1] = steps * size.columns;
    c.down = divide_up(copy.cover.rows, size.rows);
    c.across = divide_up(copy.cover.columns, size.columns);
    c.matrices = tiles / (c.down * c.across);
    c.taps = s->load == WEIGHT_GRAD ? c.matrices / s->groups : 1;
    c.cost.issue[ISSUE_FLOAT] =
        count_instructions(&copy) * size.warps / BLOCK_WARPS;
    return c;
}

// ---- ranking ----

static bool same_tile(const TileConfig *a, const TileConfig *b) {
    return a->rows == b->rows && a->columns == b->columns &&
           a->depth == b->depth && a->warps == b->warps;
}

static bool same(const TileConfig *a, const TileConfig *b) {
    return same_tile(a, b) && a->parts == b->parts && a->swizzle == b->swizzle;
}

static double seconds_of(const TileModel *m, const Launches *l,
                         const TileKernel *k, const TileConfig *c) {
    return m->seconds(l, k, c, m->device);
}

static int find_config(TileKernel *k, const TileConfig *c, Arena *a) {
    int i = 0;
    while (i < k->num_configs && !same(&k->config[i], c))
        i++;
    if (i == k->num_configs)
        ARENA_APPEND(a, k->config, k->num_configs, *c);
    return i;
}

static void add_candidate(TileKernel *k, TileRanking *r, const TileConfig *c,
                          double seconds, Arena *a) {
    int number = find_config(k, c, a);
    for (int i = 0; i < r->count; i++)
        if (r->config[i] == number)
            return;
    r->config[r->count] = number;
    r->seconds[r->count++] = seconds;
}

void tile_rank(TileKernel *k, const Launches *l, const TileModels *models,
               TileCandidates *candidates, void *context, Arena *a) {
    const TileModels *all = models_or_one(models);
    k->ranking = ARENA_ARRAY(a, (size_t)all->count + 1, TileRanking);
    for (int m = 0; m < all->count; m++) {
        TileConfig c[TILE_CANDIDATES] = {{0}};
        candidates(context, &all->model[m], c);
        for (int i = 0; i < TILE_CANDIDATES && c[i].rows > 0; i++)
            add_candidate(k, &k->ranking[m], &c[i],
                          seconds_of(&all->model[m], l, k, &c[i]), a);
    }
}

TileSizes tile_attention_sizes(int capability, int i) {
    const Generation *g = generation_of(capability);
    return (TileSizes){.columns = g->attention[i].other,
                       .warps = g->attention[i].warps};
}

// The candidates of a kernel for a GPU.
typedef struct {
    const TileSchedule *s;
    const TileKernel *k;
    const Launches *l;
    const TileModel *m;
    TileConfig config[MOST_TILES + TILE_CANDIDATES];
    double seconds[MOST_TILES + TILE_CANDIDATES];
    int count;
} Search;

static void take_faster(const Search *s, const TileConfig *c, TileConfig *best,
                        double *seconds) {
    static const double CLEARLY = 0.99;
    double found = seconds_of(s->m, s->l, s->k, c);
    if (*seconds == 0 || found < CLEARLY * *seconds) {
        *best = *c;
        *seconds = found;
    }
}

// The fastest split of the reduced axis and order of blocks for a tile is its
// only candidate; the simpler one if another is not clearly faster.
static TileConfig choose_order(const Search *s, TileSizes size,
                               double *seconds) {
    enum { WAVES = 4, SWIZZLE = 8 };
    TileConfig best, c = config_of(s->s, size, 1, 1);
    int64_t tiles = c.grid;
    *seconds = 0;
    take_faster(s, &c, &best, seconds);
    for (int waves = 1; waves <= WAVES; waves++) {
        int parts = split(s->s, size.depth, waves * s->m->processors / tiles);
        c = config_of(s->s, size, parts, 1);
        take_faster(s, &c, &best, seconds);
    }
    if (best.down > 1 && best.across > 1) {
        c = config_of(s->s, size, 1, SWIZZLE);
        take_faster(s, &c, &best, seconds);
    }
    return best;
}

static void add(Search *s, TileSizes size) {
    TileConfig c = {.rows = size.rows,
                    .columns = size.columns,
                    .depth = size.depth,
                    .warps = size.warps};
    for (int i = 0; i < s->count; i++)
        if (same_tile(&s->config[i], &c))
            return;
    s->config[s->count] = choose_order(s, size, &s->seconds[s->count]);
    s->count++;
}

// Small problems cut the table's tiles to few: others differ in warps and
// depth.
static void add_variants(Search *s) {
    enum { FEW = 4, LEAST = 16 };
    const TileConfig first = s->config[0];
    for (int i = 1; i < FEW && s->count < FEW; i++) {
        TileSizes size = {first.rows, first.columns, first.depth, first.warps};
        if (i % 2 == 1)
            size.warps = size.warps == 4 ? 8 : 4;
        if (i >= 2 && size.depth > LEAST)
            size.depth /= 2;
        add(s, size);
    }
}

// Where all others spill: the fewest elements of operands for a thread, and of
// the result.
static void add_last(Search *s) {
    const TileConfig first = s->config[0];
    if (s->count < TILE_CANDIDATES)
        add(s, (TileSizes){first.rows, first.columns, 16, 8});
    if (s->count < TILE_CANDIDATES)
        add(s, (TileSizes){32, first.columns, 16, 4});
}

// By insertion: equally fast ones stay in the order of the table.
static void sort(Search *s) {
    for (int i = 1; i < s->count; i++)
        for (int k = i; k > 0 && s->seconds[k] < s->seconds[k - 1]; k--) {
            TileConfig c = s->config[k];
            double seconds = s->seconds[k];
            s->config[k] = s->config[k - 1];
            s->seconds[k] = s->seconds[k - 1];
            s->config[k - 1] = c;
            s->seconds[k - 1] = seconds;
        }
}

static void find_candidates(void *context, const TileModel *m,
                            TileConfig to[TILE_CANDIDATES]) {
    Search *s = context;
    const Generation *g = generation_of(m->capability);
    s->m = m;
    s->count = 0;
    const int least = s->s->pool_kernel.kernel != NULL ? TILE_LEAST_POOLED : 0;
    for (int i = 0; i < MOST_TILES && g->tile[i].rows > 0; i++)
        if (g->tile[i].rows >= least)
            add(s, cut(s->s, g->tile[i]));
    add_variants(s);
    sort(s);
    add_last(s);
    for (int i = 0; i < TILE_CANDIDATES && i < s->count; i++)
        to[i] = s->config[i];
}

void tile_configure(TileKernel *k, const TileSchedule *s, const Launches *l,
                    const TileModels *models, Arena *a) {
    Search search = {.s = s, .k = k, .l = l};
    tile_rank(k, l, models, find_candidates, &search, a);
}
