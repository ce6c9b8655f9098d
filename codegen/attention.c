// Attention emitter: tiles of queries against tiles of keys.
//
// No kernel stores a score in global memory.  Forward (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018; Dao et al.,
// "FlashAttention", NeurIPS 2022), a block takes a tile of queries of a head
// and iterates over the tiles of keys that they attend to.  Each row has its
// largest score so far and the sum of the exponentials relative to it; a larger
// score scales the sum and the result.  Backward, the weights are computed
// again from the logarithms of these sums, and so are the random numbers of
// dropout.  The gradients of queries are sums over tiles of keys, those of keys
// and values sums over tiles of queries; each is one block's, in the order of
// the tiles.  Where shared memory holds the gradients of all queries that share
// keys, one block computes their weights once for all three; else there are
// blocks for queries and blocks for keys and values, and both compute the
// weights.
//
// A product of tiles is a loop over the inner index, in which a thread adds to
// RM rows by a vector of columns.  Columns are lanes, so keys and values that
// are multiplied by queries and gradients are transposed in shared memory.

#include "codegen/emit.h"
#include "passes/plan/attention_tiles.h"

#include <math.h>

typedef struct {
    Emit *e;
    NodeId n; // whose operands the kernel reads
    Attention s;
    AttentionTiles tiles;
    NodeId out, lse;          // its results, or NO_NODE
    const Expr *seed, *epoch; // of dropout
    Scope *kernel;
} Attend;

static int64_t power_within(int64_t most) {
    int64_t power = 1;
    while (2 * power <= most)
        power *= 2;
    return power;
}

static int64_t power_divisor(int64_t x, int64_t most) {
    int64_t power = 1;
    while (power < most && x % (2 * power) == 0)
        power *= 2;
    return power;
}

// ---- the sizes of tiles ----

// On the host, positions of a tile, lanes of the columns of a product, and of
// weights, of which each eight blocks of random numbers fill a vector.
enum { HOST_TILE = 64, COLUMNS = 16, WEIGHTS = 32 };

// Rows that a thread of a block adds to at once, if it has `rows` rows of
// `vectors` vectors each.
static int64_t rows_at_once(int64_t rows, int64_t vectors) {
    int64_t most = rows * vectors / BLOCK_THREADS;
    return power_within(most < 2 ? 2 : most > 4 ? 4 : most);
}

static const Expr *host_gpu(const Attend *a, int64_t host, int64_t device) {
    Emit *e = a->e;
    return host == device ? x_number(e->a, host)
                          : EXPR(e, "HOST_GPU($, $)", x_number(e->a, host),
                                 x_number(e->a, device));
}

static const Expr *number(const Attend *a, int64_t value) {
    return x_number(a->e->a, value);
}

// Lanes of a vector of channels on the host.
static int64_t host_lanes(int64_t size) {
    return size <= COLUMNS ? size : power_divisor(size, COLUMNS);
}

// The constants of a kernel:
//   T, D, HEADS, KV_HEADS  positions, channels of a head, heads of queries, and
//       of keys and values
//   NT, BM, BN  threads; positions of a block's own tile, and of those that it
//       iterates over
//   LW, DW, JW, VS  lanes: channels in memory, channels in a product, positions
//       in a product, positions in the softmax
//   JG  vectors of positions side by side, of as many threads
//   CS, JS  channels and positions that a thread reads at once
//   RM, RO  rows that it adds to at once, of scores and of results
//   LQ, PAD  floats from row to row of a tile, and unused ones of them
//   TILES, QUERIES  tiles of BM positions, and positions of all of them
//   RESULTS_PER_THREAD  times RO rows of results
static void emit_sizes(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    const Attention *s = &a->s;
    AttentionTiles t = a->tiles;
    enum { POSITIONS = 4, CHANNELS = 8 }; // of vectors; channels are stored
    int64_t channels = power_divisor(s->size, CHANNELS);
    int64_t scores = rows_at_once(t.bm, t.bn / POSITIONS);
    int64_t results = rows_at_once(t.bm, s->size / channels);
    int64_t groups = t.bn / POSITIONS;
    CODE(e, b, NO_NODE,
         "enum { T = $, D = $, HEADS = $, KV_HEADS = $, LW = LANES(D) };",
         number(a, s->positions), number(a, s->size), number(a, s->heads),
         number(a, s->kv_heads));
    CODE(e, b, NO_NODE,
         "enum { NT = THREADS(256), BM = $, BN = $, PAD = $, LQ = D + PAD };",
         host_gpu(a, HOST_TILE, t.bm), host_gpu(a, HOST_TILE, t.bn),
         host_gpu(a, 0, ATTENTION_PAD));
    CODE(e, b, NO_NODE,
         "enum { DW = $, JW = $, JG = $, VS = $, CS = $, JS = $ };",
         host_gpu(a, host_lanes(s->size), channels),
         host_gpu(a, COLUMNS, POSITIONS),
         host_gpu(a, HOST_TILE / COLUMNS, groups < 4 ? groups : 4),
         host_gpu(a, WEIGHTS, POSITIONS),
         host_gpu(a, 1, power_divisor(s->size, COLUMNS)), host_gpu(a, 1, 8));
    CODE(e, b, NO_NODE,
         "enum {"
         "    RM = $, RO = $, TILES = (T + BM - 1) / BM, QUERIES = TILES * BM,"
         "    RESULTS_PER_THREAD = (BM / RO * (D / DW) + NT - 1) / NT"
         "};",
         host_gpu(a, 4, scores), host_gpu(a, 4, results));
}

// ---- tiles in shared memory ----

typedef struct {
    NodeId n;          // a tensor [N,T,channels]
    const char *to;    // a shared array
    const char *rows;  // its positions: BM or BN
    const char *from;  // the first of them
    const Expr *first; // channel of the head
    bool transposed;   // [D][rows], else [rows][LQ]
    bool scaled;       // times the scale of scores
} Tile;

// The index expression of LW channels from c on at position `at`.
static Index channels_at(const Attend *a, NodeId n, const Expr *first) {
    Emit *e = a->e;
    Type t = *e->g->node[n].type;
    return (Index){.rank = 3,
                   .dim = {t.dim[0], t.dim[1], t.dim[2]},
                   .index = {x_name(e->a, "n"), x_name(e->a, "at"),
                             EXPR(e, "$ + c", first)},
                   .lanes = x_name(e->a, "LW")};
}

// Positions from T on are zeros.
static void emit_tile(const Attend *a, Stmts *b, Tile t) {
    Emit *e = a->e;
    Scope *s = scope_open(e, a->kernel, x_name(e->a, "LW"));
    const Expr *rows = x_name(e->a, t.rows), *from = x_name(e->a, t.from);
    const Expr *to = x_name(e->a, t.to);
    if (t.transposed)
        CODE(e, &s->before, NO_NODE, "const int j = t % $, c = t / $ * LW;",
             rows, rows);
    else
        CODE(e, &s->before, NO_NODE,
             "const int j = t / (D / LW), c = t % (D / LW) * LW;");
    CODE(e, &s->before, NO_NODE, "const int at = $ + j < T ? $ + j : T - 1;",
         from, from);
    const Expr *x = value_at(e, s, t.n, channels_at(a, t.n, t.first));
    if (t.scaled)
        x = EXPR(e, "$ * $", x, x_constant(e->a, a->s.scale));
    const Expr *element = t.transposed ? EXPR(e, "(c + k) * $ + j", rows)
                                       : EXPR(e, "j * LQ + c + k");
    CODE(e, &s->lanes, t.n, "$[$] = $ + j < T ? $ : 0.0f;", to, element, from,
         x);
    CODE(e, b, NO_NODE,
         "for (int t = threadIdx.x; t < $ * (D / LW); t += NT) { ~ }", rows,
         scope_close(e, s));
}

static const Expr *query_channel(const Attend *a) {
    return EXPR(a->e, "h * D");
}

static const Expr *key_channel(const Attend *a) {
    return EXPR(a->e, "(HEADS + head) * D");
}

static const Expr *value_channel(const Attend *a) {
    return EXPR(a->e, "(HEADS + KV_HEADS + head) * D");
}

// ---- products of tiles ----

// Does `body` for RM rows from i on and JW columns from j on of a product of
// `rows` by `columns`.  The threads of a warp have rows and columns that are
// next to each other, so that few warps compute masked products.
static void emit_products(const Attend *a, Stmts *b, const char *rows,
                          const char *columns, const Stmts *body) {
    Emit *e = a->e;
    const Expr *height = x_name(e->a, rows), *width = x_name(e->a, columns);
    CODE(e, b, NO_NODE,
         "for (int t = threadIdx.x; t < $ / RM * ($ / JW); t += NT) {"
         "    const int i = t / JG % ($ / RM) * RM;"
         "    const int j = (t / (JG * ($ / RM)) * JG + t % JG) * JW;"
         "    ~"
         "}",
         height, width, height, height, body);
}

// Adds these products of tiles to `to`: x has rows of LQ, y is transposed.
static void emit_product(const Attend *a, Stmts *b, const char *to,
                         const char *x, const char *y, const char *columns) {
    Emit *e = a->e;
    const Expr *sum = x_name(e->a, to), *width = x_name(e->a, columns);
    CODE(e, b, a->n,
         "for (int c = 0; c < D; c += CS)"
         "    UNROLLED(u, CS) UNROLLED(r, RM) {"
         "        const float x = $[(i + r) * LQ + c + u];"
         "        LANES_DO(k, JW)"
         "            $[r][k] = fma_of(x, $[c * $ + j + k + u * $], $[r][k]);"
         "    }",
         x_name(e->a, x), sum, x_name(e->a, y), width, width, sum);
}

static void declare_products(const Attend *a, Stmts *b, const char *to) {
    const Expr *sum = x_name(a->e->a, to);
    CODE(a->e, b, a->n,
         "float $[RM][JW]; UNROLLED(r, RM) LANES_DO(k, JW) $[r][k] = 0.0f;",
         sum, sum);
}

// A column of the tile from j0 on, beyond which none of the rows i .. i + RM -
// 1 attends to any.
static const Expr *last_product(const Attend *a) {
    Emit *e = a->e;
    return a->s.causal ? EXPR(e, "i0 + i + RM - 1 - j0")
                       : EXPR(e, "T - 1 - j0");
}

// The last column of the tile from j0 on that the row `i` of the tile from i0
// on attends to; -1 or less: none.
static const Expr *last_column(const Attend *a, const Expr *i) {
    return a->s.causal ? EXPR(a->e, "(i0 + $ < T ? i0 + $ : T - 1) - j0", i, i)
                       : EXPR(a->e, "T - 1 - j0");
}

// The place of a thread, counted from a quarter of the block on: products that
// need not wait for each other begin with different quarters.
static const Expr *place_from(const Attend *a, int quarter) {
    return quarter == 0 ? EXPR(a->e, "threadIdx.x")
                        : EXPR(a->e, "(threadIdx.x + NT / 4 * $) % NT",
                               number(a, quarter));
}

// Does `body` for the RO rows of results from i on and the DW channels from c
// on, which are rows m * RO and on of a thread's results.
static void emit_results(const Attend *a, Stmts *b, int quarter,
                         const Stmts *body) {
    CODE(a->e, b, NO_NODE,
         "UNROLLED(m, RESULTS_PER_THREAD) {"
         "    const int t = $ + m * NT;"
         "    if (t < BM / RO * (D / DW)) {"
         "        const int i = t / (D / DW) * RO, c = t % (D / DW) * DW;"
         "        ~"
         "    }"
         "}",
         place_from(a, quarter), body);
}

static void declare_results(const Attend *a, Stmts *b, const char *name) {
    const Expr *x = x_name(a->e->a, name);
    CODE(a->e, b, a->n,
         "float $[RESULTS_PER_THREAD * RO][DW];"
         "UNROLLED(m, RESULTS_PER_THREAD * RO) LANES_DO(k, DW) $[m][k] = 0.0f;",
         x, x);
}

// The first and one past the last of the positions of a tile that rows i .. i +
// RO - 1 of the results are sums over; weights up to multiples of JS are zeros.
typedef struct {
    const Expr *from, *to;
} Span;

// Adds a product of tiles over positions j + u to elements, after a product
// with `factor` of their row, unless it is NULL: weights of row i + r times
// y [BN][LQ].  Weights of 0 are multiplied, too: an infinite y makes NaN of up
// to JS - 1 rows that do not attend to it.
static void emit_add(const Attend *a, Stmts *b, const Expr *element,
                     const Expr *factor, Span span, const Expr *weight,
                     const char *y) {
    Emit *e = a->e;
    CODE(
        e, b, a->n,
        "float sum[RO][DW];"
        "UNROLLED(r, RO) LANES_DO(k, DW) sum[r][k] = $;"
        "const int end = $;"
        "for (int j = $; j < end; j += JS)"
        "    UNROLLED(u, JS) UNROLLED(r, RO) {"
        "        const float x = $;"
        "        LANES_DO(k, DW)"
        "            sum[r][k] = fma_of(x, $[(j + u) * LQ + c + k], sum[r][k]);"
        "    }"
        "UNROLLED(r, RO) LANES_DO(k, DW) $ = sum[r][k];",
        factor == NULL ? element : EXPR(e, "$ * $", element, factor), span.to,
        span.from, weight, x_name(e->a, y), element);
}

static void emit_add_results(const Attend *a, Stmts *b, int quarter,
                             const char *to, const Expr *factor, Span span,
                             const Expr *weight, const char *y) {
    Emit *e = a->e;
    Stmts add = {NULL, NULL};
    emit_add(a, &add, EXPR(e, "$[m * RO + r][k]", x_name(e->a, to)), factor,
             span, weight, y);
    emit_results(a, b, quarter, &add);
}

// For rows of queries from i0 on: keys from j0 on, of a tile of so many.
static Span keys_of(const Attend *a, const char *columns) {
    Emit *e = a->e;
    const Expr *width = x_name(e->a, columns);
    return (Span){e->zero,
                  a->s.causal
                      ? EXPR(e, "i0 + i + RO < j0 + $ ? i0 + i + RO - j0 : $",
                             width, width)
                      : EXPR(e, "T < j0 + $ ? T - j0 : $", width, width)};
}

// For rows of keys from j0 on: queries from i0 on.
static Span queries_of(const Attend *a) {
    Emit *e = a->e;
    return (Span){a->s.causal ? EXPR(e, "j0 + i > i0 ? (j0 + i - i0) / JS * JS "
                                        ": 0")
                              : e->zero,
                  EXPR(e, "T < i0 + BN ? T - i0 : BN")};
}

// Stores DW channels from c on of position `at` in tensor n.
static void emit_row(const Attend *a, Stmts *b, NodeId n, const Expr *at,
                     const Expr *first, const Expr *x) {
    Emit *e = a->e;
    Type t = *e->g->node[n].type;
    const Expr *dw = x_name(e->a, "DW");
    Scope *row = scope_open(e, a->kernel, dw);
    Index p = {.rank = 3,
               .dim = {t.dim[0], t.dim[1], t.dim[2]},
               .index = {x_name(e->a, "n"), at, EXPR(e, "$ + c", first)},
               .lanes = dw};
    emit_place(e, row, n, p, x);
    CODE(e, b, NO_NODE, "~", scope_close(e, row));
}

// Stores a tile of results in tensor n from position `at` on, times `factor` of
// their row, unless it is NULL.
static void emit_stores(const Attend *a, Stmts *b, int quarter, NodeId n,
                        const char *at, const char *from, const Expr *first,
                        const Expr *factor) {
    Emit *e = a->e;
    Stmts row = {NULL, NULL}, rows = row;
    const Expr *x = EXPR(e, "$[m * RO + r][k]", x_name(e->a, from));
    if (factor != NULL)
        x = EXPR(e, "$ * $", x, factor);
    const Expr *position = EXPR(e, "$ + i + r", x_name(e->a, at));
    emit_row(a, &row, n, position, first, x);
    CODE(e, &rows, NO_NODE, "UNROLLED(r, RO) if ($ < T) { ~ }", position, &row);
    emit_results(a, b, quarter, &rows);
}

// ---- dropout ----

// Declares `kept`, the factors of the weights of so many positions from j0 +
// `column` on in row i0 + `row`.
static void emit_kept(const Attend *a, Stmts *b, const char *width,
                      const Expr *row, const char *column) {
    Emit *e = a->e;
    const Attention *s = &a->s;
    if (s->dropout == 0)
        return;
    double least = ceil((double)(float)s->dropout * 0x1p24);
    const Expr *n = x_name(e->a, width);
    CODE(e, b, a->n,
         "const int at = i0 + $ < T ? i0 + $ : T - 1;"
         "int drawn[$];"
         "draw_lanes(drawn, $, $, $, $,"
         "           ((n * HEADS + h) * T + at) * $ + j0 + $);"
         "float kept[$];"
         "LANES_DO(k, $) kept[k] = drawn[k] < $ ? 0.0f : $;",
         row, row, n, n, a->seed, x_kind(e->a, X_STREAM, s->stream), a->epoch,
         x_size(e->a, attention_row(s)), x_name(e->a, column), n, n,
         x_size(e->a, (int64_t)least), x_constant(e->a, 1 / (1 - s->dropout)));
}

// x times kept[k], if there is dropout.
static const Expr *keep(const Attend *a, const Expr *x) {
    return a->s.dropout > 0 ? EXPR(a->e, "$ * kept[k]", x) : x;
}

// The rows i of a tile: each has RT threads of a warp, of which `row_thread` is
// this one, and a thread has ROWS of them.
static void emit_row_loop(const Attend *a, Stmts *b, const Stmts *body) {
    CODE(a->e, b, NO_NODE,
         "UNROLLED(m, ROWS) {"
         "    const int i = m * (NT / RT) + threadIdx.x / RT;"
         "    ~"
         "}",
         body);
}

static void declare_rows(const Attend *a, Stmts *b, const char *rows) {
    const Expr *count = x_name(a->e->a, rows);
    CODE(a->e, b, NO_NODE,
         "enum { RT = NT < $ ? 1 : NT / $, ROWS = $ * RT / NT };"
         "const int row_thread = threadIdx.x % RT;",
         count, count, count);
}

// ---- forward ----

// Scores of a tile: -INF where a row does not attend to a column.  Vectors of
// which it attends to none stay as they are.
static void emit_scores(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    Stmts score = {NULL, NULL};
    CODE(e, &score, a->n, "if (j / VS * VS > $) continue;", last_product(a));
    declare_products(a, &score, "sum");
    emit_product(a, &score, "sum", "q", "kv", "BN");
    CODE(e, &score, a->n,
         "UNROLLED(r, RM) {"
         "    const int last = $;"
         "    LANES_DO(k, JW)"
         "        s[(i + r) * (BN + PAD) + j + k] ="
         "            j + k <= last ? sum[r][k] : -INF;"
         "}",
         last_column(a, EXPR(e, "i + r")));
    emit_products(a, b, "BM", "BN", &score);
}

// Makes weights of a tile's scores, relative to the largest of the row so far:
// `most`, the paper's m.  `total`, its l, is the thread's part of the sum of
// the weights; `rescale` is for earlier tiles.
static void emit_softmax(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    Stmts row = {NULL, NULL}, draw = {NULL, NULL};
    const Expr *i = x_name(e->a, "i");
    emit_kept(a, &draw, "VS", i, "c");
    CODE(e, &row, a->n,
         "const int last = $;"
         "float big[VS];"
         "LANES_DO(k, VS) big[k] = most[m];"
         "for (int c = row_thread * VS; c < BN && c <= last; c += RT * VS) {"
         "    float score[VS];"
         "    LANES_DO(k, VS) score[k] = s[i * (BN + PAD) + c + k];"
         "    LANES_DO(k, VS) big[k] = maximum(big[k], score[k]);"
         "}"
         "const float now = row_max(lanes_max(big, VS), RT, factor);"
         "float all[VS];"
         "LANES_DO(k, VS) all[k] = 0.0f;"
         "for (int c = row_thread * VS; c < BN; c += RT * VS) {"
         "    if (c > last) {"
         "        LANES_DO(k, VS) s[i * (BN + PAD) + c + k] = 0.0f;"
         "        continue;"
         "    }"
         "    ~"
         "    float score[VS];"
         "    LANES_DO(k, VS) score[k] = s[i * (BN + PAD) + c + k];"
         "    LANES_DO(k, VS) {"
         "        const float x = exp_weight(score[k] - now);"
         "        all[k] += x;"
         "        score[k] = $;"
         "    }"
         "    LANES_DO(k, VS) s[i * (BN + PAD) + c + k] = score[k];"
         "}"
         "const float rescale = exp_weight(most[m] - now);"
         "total[m] = fma_of(total[m], rescale, lanes_sum(all, VS));"
         "most[m] = now;"
         "if (row_thread == 0) factor[i] = rescale;",
         last_column(a, i), &draw, keep(a, EXPR(e, "x")));
    emit_row_loop(a, b, &row);
}

// The results of a tile, and the logarithms of its rows.
static void emit_forward_stores(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    Stmts row = {NULL, NULL};
    CODE(e, &row, NO_NODE,
         "const float all = row_sum(total[m], RT, factor);"
         "if (row_thread == 0) factor[i] = 1.0f / all;");
    if (a->lse != NO_NODE)
        CODE(e, &row, a->lse,
             "if (row_thread == 0 && i0 + i < T)"
             "    put_f32($ + (size_t)(n * HEADS + h) * T + i0 + i,"
             "            most[m] + logf(all));",
             pointer_name(e, a->lse));
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_row_loop(a, b, &row);
    CODE(e, b, NO_NODE, "BARRIER();");
    if (a->out != NO_NODE)
        emit_stores(a, b, 0, a->out, "i0", "out", query_channel(a),
                    EXPR(e, "factor[i + r]"));
}

// One tile of keys and values, from j0 on.
static void emit_forward_tile(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    NodeId qkv = e->g->node[a->n].arg[0];
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_tile(a, b, (Tile){qkv, "kv", "BN", "j0", key_channel(a), true, false});
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_scores(a, b);
    CODE(e, b, NO_NODE, "BARRIER();");
    if (a->out != NO_NODE)
        emit_tile(
            a, b,
            (Tile){qkv, "kv", "BN", "j0", value_channel(a), false, false});
    emit_softmax(a, b);
    CODE(e, b, NO_NODE, "BARRIER();");
    if (a->out != NO_NODE)
        emit_add_results(a, b, 0, "out", EXPR(e, "factor[i + r]"),
                         keys_of(a, "BN"),
                         EXPR(e, "s[(i + r) * (BN + PAD) + j + u]"), "kv");
}

// A tile of queries of a head; b declares n, h and i0.
static void emit_forward(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    NodeId qkv = e->g->node[a->n].arg[0];
    Stmts keys = {NULL, NULL};
    emit_tile(a, b,
              (Tile){qkv, "q", "BM", "i0", query_channel(a), false, true});
    declare_rows(a, b, "BM");
    CODE(e, b, NO_NODE,
         "float most[ROWS], total[ROWS];"
         "UNROLLED(m, ROWS) { most[m] = -INF; total[m] = 0.0f; }");
    if (a->out != NO_NODE)
        declare_results(a, b, "out");
    emit_forward_tile(a, &keys);
    CODE(e, b, NO_NODE,
         "const int end = $;"
         "for (int j0 = 0; j0 < end; j0 += BN) { ~ }",
         a->s.causal ? EXPR(e, "i0 + BM < T ? i0 + BM : T") : EXPR(e, "T"),
         &keys);
    emit_forward_stores(a, b);
}

// ---- backward ----

// Reads the logarithms of a tile's rows, and computes the dot products of their
// result and its gradient, the paper's D.
static void emit_deltas(const Attend *a, Stmts *b, const char *rows) {
    Emit *e = a->e;
    const NodeId *arg = e->g->node[a->n].arg;
    Stmts row = {NULL, NULL};
    Scope *s = scope_open(e, a->kernel, x_name(e->a, "LW"));
    const Expr *x =
        value_at(e, s, arg[1], channels_at(a, arg[1], query_channel(a)));
    const Expr *dx =
        value_at(e, s, arg[2], channels_at(a, arg[2], query_channel(a)));
    CODE(e, &s->lanes, a->n, "sum[k] = fma_of($, $, sum[k]);", x, dx);
    CODE(e, &row, a->n,
         "const int at = i0 + i < T ? i0 + i : T - 1;"
         "float sum[LW];"
         "LANES_DO(k, LW) sum[k] = 0.0f;"
         "for (int c = row_thread * LW; c < D; c += RT * LW) { ~ }"
         "const float all = row_sum(lanes_sum(sum, LW), RT, lse);"
         "if (row_thread == 0) {"
         "    delta[i] = all;"
         "    lse[i] = get_f32($ + (size_t)(n * HEADS + h) * T + at);"
         "}",
         scope_close(e, s), pointer_name(e, arg[3]));
    Stmts loop = {NULL, NULL};
    declare_rows(a, &loop, rows);
    emit_row_loop(a, &loop, &row);
    CODE(e, b, NO_NODE, "{ ~ }", &loop);
}

// Replaces scores by weights in `sum`, and gradients of weights by gradients of
// scores in `slope`.
static void emit_slopes(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    const Expr *delta = EXPR(e, "delta[i + r]");
    CODE(e, b, NO_NODE, "const int last = i0 + i + r < T ? $ : -1;",
         a->s.causal ? EXPR(e, "i0 + i + r - j0") : EXPR(e, "T - 1 - j0"));
    emit_kept(a, b, "JW", EXPR(e, "i + r"), "j");
    CODE(e, b, a->n,
         "LANES_DO(k, JW) {"
         "    const float weight = exp_weight(sum[r][k] - lse[i + r]);"
         "    const float p = j + k <= last ? weight : 0.0f;"
         "    sum[r][k] = $;"
         "    slope[r][k] = p * ($);"
         "}",
         keep(a, EXPR(e, "p")),
         a->s.dropout > 0 ? EXPR(e, "fma_of(slope[r][k], kept[k], -$)", delta)
                          : EXPR(e, "slope[r][k] - $", delta));
}

// Computes the gradients of a tile's scores in `ds`, and, if `weighs`, its
// weights in `s`, from products of queries and keys and of gradients and
// values.
static void emit_weights(const Attend *a, Stmts *b, const char *rows,
                         const char *columns, bool weighs) {
    Emit *e = a->e;
    Stmts body = {NULL, NULL}, some = body, row = body;
    const Expr *width = x_name(e->a, columns);
    emit_product(a, &some, "sum", "q", "keys", columns);
    emit_product(a, &some, "slope", "g", "values", columns);
    emit_slopes(a, &row);
    declare_products(a, &body, "sum");
    declare_products(a, &body, "slope");
    CODE(e, &body, NO_NODE, "if (j <= $) { ~ UNROLLED(r, RM) { ~ } }",
         last_product(a), &some, &row);
    if (weighs)
        CODE(e, &body, a->n,
             "UNROLLED(r, RM)"
             "    LANES_DO(k, JW) s[(i + r) * ($ + PAD) + j + k] = sum[r][k];",
             width);
    CODE(e, &body, a->n,
         "UNROLLED(r, RM)"
         "    LANES_DO(k, JW) ds[(i + r) * ($ + PAD) + j + k] = slope[r][k];",
         width);
    emit_products(a, b, rows, columns, &body);
}

// Tiles of queries and of their gradients, and of keys and values, in two
// passes.
static void declare_tiles(const Attend *a, Stmts *b, const char *queries,
                          const char *keys) {
    Emit *e = a->e;
    const Expr *m = x_name(e->a, queries), *n = x_name(e->a, keys);
    CODE(e, b, NO_NODE,
         "float *const q = tiles;"
         "float *const g = q + $ * LQ;"
         "float *const keys = g + $ * LQ;"
         "float *const values = keys + $ * LQ;",
         m, m, n);
}

// Reads a tile of queries, times the scale of scores, and one of the gradients
// of their results.
static void emit_query_tiles(const Attend *a, Stmts *b, const char *rows) {
    const NodeId *arg = a->e->g->node[a->n].arg;
    const Expr *first = query_channel(a);
    emit_tile(a, b, (Tile){arg[0], "q", rows, "i0", first, false, true});
    emit_tile(a, b, (Tile){arg[2], "g", rows, "i0", first, false, false});
}

static void emit_key_tiles(const Attend *a, Stmts *b, const char *rows) {
    NodeId qkv = a->e->g->node[a->n].arg[0];
    emit_tile(a, b,
              (Tile){qkv, "keys", rows, "j0", key_channel(a), true, false});
    emit_tile(a, b,
              (Tile){qkv, "values", rows, "j0", value_channel(a), true, false});
}

// The gradient of a tile of queries of a head.
static void emit_queries(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    NodeId qkv = e->g->node[a->n].arg[0];
    Stmts keys = {NULL, NULL};
    const Expr *scale = x_constant(e->a, a->s.scale);
    declare_tiles(a, b, "BM", "BN");
    emit_query_tiles(a, b, "BM");
    emit_deltas(a, b, "BM");
    declare_results(a, b, "dq");
    emit_key_tiles(a, &keys, "BN");
    CODE(e, &keys, NO_NODE, "BARRIER();");
    emit_weights(a, &keys, "BM", "BN", false);
    CODE(e, &keys, NO_NODE, "BARRIER();");
    emit_tile(a, &keys,
              (Tile){qkv, "keys", "BN", "j0", key_channel(a), false, false});
    CODE(e, &keys, NO_NODE, "BARRIER();");
    emit_add_results(a, &keys, 0, "dq", NULL, keys_of(a, "BN"),
                     EXPR(e, "ds[(i + r) * (BN + PAD) + j + u]"), "keys");
    CODE(e, &keys, NO_NODE, "BARRIER();");
    CODE(e, b, NO_NODE,
         "const int end = $;"
         "for (int j0 = 0; j0 < end; j0 += BN) { ~ }",
         a->s.causal ? EXPR(e, "i0 + BM < T ? i0 + BM : T") : EXPR(e, "T"),
         &keys);
    emit_stores(a, b, 0, a->n, "i0", "dq", query_channel(a), scale);
}

// Adds to the gradient of all queries, in shared memory, in one pass.
static void emit_add_queries(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    Stmts add = {NULL, NULL};
    emit_add(a, &add, EXPR(e, "dq[(i0 + i + r) * LQ + c + k]"), NULL,
             keys_of(a, "BM"), EXPR(e, "ds[(i + r) * (BM + PAD) + j + u]"),
             "key_rows");
    CODE(e, b, NO_NODE,
         "for (int t = $; t < BN / RO * (D / DW); t += NT) {"
         "    const int i = t / (D / DW) * RO, c = t % (D / DW) * DW;"
         "    ~"
         "}",
         place_from(a, 2), &add);
}

// The gradients of a tile of keys and values from j0 on, of one tile of
// queries of head h from i0 on.
static void emit_of_queries(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    if (a->tiles.one_pass)
        CODE(e, b, NO_NODE,
             "const int first = (h - from) * QUERIES;"
             "float *const dq = all_dq + first * LQ;"
             "const float *const lse = all_lse + first + i0;"
             "const float *const delta = all_delta + first + i0;");
    else
        emit_deltas(a, b, "BN");
    emit_query_tiles(a, b, "BN");
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_weights(a, b, "BN", "BM", true);
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_add_results(a, b, 0, "dv", NULL, queries_of(a),
                     EXPR(e, "s[(j + u) * (BM + PAD) + i + r]"), "g");
    emit_add_results(a, b, 1, "dk", NULL, queries_of(a),
                     EXPR(e, "ds[(j + u) * (BM + PAD) + i + r]"), "q");
    if (a->tiles.one_pass)
        emit_add_queries(a, b);
    CODE(e, b, NO_NODE, "BARRIER();");
}

// The gradients of a tile of keys and values: sums over the queries of the
// heads that share them.
static void emit_keys(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    NodeId qkv = e->g->node[a->n].arg[0];
    Stmts queries = {NULL, NULL};
    if (!a->tiles.one_pass)
        declare_tiles(a, b, "BN", "BM");
    emit_key_tiles(a, b, "BM");
    if (a->tiles.one_pass)
        emit_tile(
            a, b,
            (Tile){qkv, "key_rows", "BM", "j0", key_channel(a), false, false});
    declare_results(a, b, "dk");
    declare_results(a, b, "dv");
    emit_of_queries(a, &queries);
    CODE(e, b, NO_NODE,
         "for (int h = from; h < from + HEADS / KV_HEADS; h++)"
         "    for (int i0 = $; i0 < T; i0 += BN) { ~ }",
         a->s.causal ? EXPR(e, "j0") : e->zero, &queries);
    emit_stores(a, b, 1, a->n, "j0", "dk", key_channel(a), NULL);
    emit_stores(a, b, 0, a->n, "j0", "dv", value_channel(a), NULL);
}

// All gradients of a head of keys and values, and of the heads of queries that
// share it.
static void emit_head(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    Stmts deltas = {NULL, NULL}, keys = deltas, rows = deltas;
    CODE(e, &deltas, NO_NODE,
         "float *const lse = all_lse + (h - from) * QUERIES + i0;"
         "float *const delta = all_delta + (h - from) * QUERIES + i0;");
    emit_deltas(a, &deltas, "BM");
    emit_keys(a, &keys);
    emit_row(a, &rows, a->n, x_name(e->a, "i"), query_channel(a),
             EXPR(e, "all_dq[((h - from) * QUERIES + i) * LQ + c + k] * $",
                  x_constant(e->a, a->s.scale)));
    CODE(e, b, NO_NODE,
         "const int count = HEADS / KV_HEADS * QUERIES * LQ;"
         "for (int t = threadIdx.x; t < count; t += NT) all_dq[t] = 0.0f;"
         "for (int h = from; h < from + HEADS / KV_HEADS; h++)"
         "    for (int i0 = 0; i0 < T; i0 += BM) { ~ }"
         "for (int j0 = 0; j0 < T; j0 += BM) { ~ }"
         "for (int h = from; h < from + HEADS / KV_HEADS; h++)"
         "    for (int t = threadIdx.x; t < T * (D / DW); t += NT) {"
         "        const int i = t / (D / DW), c = t % (D / DW) * DW;"
         "        ~"
         "    }"
         "BARRIER();",
         &deltas, &keys, &rows);
}

// ---- the kernels ----

// An array that the threads of a block share.  Behind a pointer: gcc 12 keeps
// the sums of a product in registers only if it reads no local array.
static void declare_shared(const Attend *a, Stmts *b, const char *name,
                           const char *size) {
    Emit *e = a->e;
    const Expr *array = x_name(e->a, arena_format(e->a, "%s_array", name));
    CODE(e, b, NO_NODE,
         arena_format(e->a, "SHARED float $[%s]; float *const %s = $;", size,
                      name),
         array, array);
}

static void emit_forward_kernel(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    Stmts tile = {NULL, NULL};
    emit_forward(a, &tile);
    declare_shared(a, b, "q", "BM * LQ");
    declare_shared(a, b, "kv", "BN * LQ");
    declare_shared(a, b, "s", "BM * (BN + PAD)");
    declare_shared(a, b, "factor", "BM");
    CODE(e, b, NO_NODE,
         "BLOCK_RANGE(lo, hi, $ * HEADS * TILES);"
         "for (int item = lo; item < hi; item++) {"
         "    const int i0 = item % TILES * BM, h = item / TILES % HEADS;"
         "    const int n = item / (TILES * HEADS);"
         "    const int head = h / (HEADS / KV_HEADS);"
         "    ~"
         "}",
         number(a, a->s.samples), &tile);
}

static void emit_one_pass_kernel(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    Stmts body = {NULL, NULL};
    emit_head(a, &body);
    declare_shared(a, b, "q", "BN * LQ");
    declare_shared(a, b, "g", "BN * LQ");
    declare_shared(a, b, "keys", "D * BM");
    declare_shared(a, b, "values", "D * BM");
    declare_shared(a, b, "key_rows", "BM * LQ");
    declare_shared(a, b, "s", "BN * (BM + PAD)");
    declare_shared(a, b, "ds", "BN * (BM + PAD)");
    declare_shared(a, b, "all_dq", "HEADS / KV_HEADS * QUERIES * LQ");
    declare_shared(a, b, "all_delta", "HEADS / KV_HEADS * QUERIES");
    declare_shared(a, b, "all_lse", "HEADS / KV_HEADS * QUERIES");
    CODE(e, b, NO_NODE,
         "BLOCK_RANGE(lo, hi, $ * KV_HEADS);"
         "for (int item = lo; item < hi; item++) {"
         "    const int head = item % KV_HEADS, n = item / KV_HEADS;"
         "    const int from = head * (HEADS / KV_HEADS);"
         "    ~"
         "}",
         number(a, a->s.samples), &body);
}

// Tiles of queries come first, then tiles of keys and values.
static void emit_two_pass_kernel(const Attend *a, Stmts *b) {
    Emit *e = a->e;
    Stmts queries = {NULL, NULL}, keys = {NULL, NULL};
    emit_queries(a, &queries);
    emit_keys(a, &keys);
    declare_shared(a, b, "tiles", "2 * (BM + BN) * LQ");
    declare_shared(a, b, "s", "BN * (BM + PAD)");
    declare_shared(a, b, "ds", "BM * (BN + PAD)");
    declare_shared(a, b, "delta", "BM");
    declare_shared(a, b, "lse", "BM");
    CODE(e, b, NO_NODE,
         "enum {"
         "    OF_QUERIES = $ * HEADS * TILES,"
         "    OF_KEYS = $ * KV_HEADS * TILES"
         "};"
         "BLOCK_RANGE(lo, hi, OF_QUERIES + OF_KEYS);"
         "for (int item = lo; item < hi; item++) {"
         "    if (item < OF_QUERIES) {"
         "        const int i0 = item % TILES * BM;"
         "        const int h = item / TILES % HEADS;"
         "        const int n = item / (TILES * HEADS);"
         "        const int head = h / (HEADS / KV_HEADS);"
         "        ~"
         "    } else {"
         "        const int tile = item - OF_QUERIES;"
         "        const int j0 = tile % TILES * BM;"
         "        const int head = tile / TILES % KV_HEADS;"
         "        const int n = tile / (TILES * KV_HEADS);"
         "        const int from = head * (HEADS / KV_HEADS);"
         "        ~"
         "    }"
         "}",
         number(a, a->s.samples), number(a, a->s.samples), &queries, &keys);
}

// The node of the group that is op and in memory, or NO_NODE: rematerialization
// may compute one of two results again.
static NodeId find_stored(const Emit *e, Op op) {
    for (NodeId n = e->group->first; n <= e->group->last; n++)
        if (e->g->node[n].op == op && e->stored[n])
            return n;
    return NO_NODE;
}

void emit_attention(Emit *e, Stmts *b) {
    NodeId n = group_first(e->g, e->group, ATTENDS);
    const Node *d = &e->g->node[n];
    bool backward = d->op == OP_attention_grad;
    Attend a = {.e = e,
                .n = n,
                .s = attention_of(e->g, d),
                .out = find_stored(e, OP_attention),
                .lse = find_stored(e, OP_attention_lse),
                .kernel = scope_new(e, NULL, IN_KERNEL, NULL)};
    if (!backward && a.out == NO_NODE)
        a.s.dropout = 0;
    if (a.s.dropout > 0) {
        a.seed = value_at(e, a.kernel, d->arg[d->num_args - 2], (Index){0});
        a.epoch = value_at(e, a.kernel, d->arg[d->num_args - 1], (Index){0});
    }
    e->min_blocks = 2;
    a.tiles = attention_tiles(&a.s, backward);
    emit_sizes(&a, b);
    Stmts body = {NULL, NULL};
    if (a.tiles.one_pass)
        emit_one_pass_kernel(&a, &body);
    else if (backward)
        emit_two_pass_kernel(&a, &body);
    else
        emit_forward_kernel(&a, &body);
    stmts_append(b, scope_close(e, a.kernel));
    stmts_append(b, &body);
}
