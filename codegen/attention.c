// Attention emitter: tiles of queries against tiles of keys.
//
// No kernel stores a score.  Forward (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018; Dao et al., "FlashAttention",
// NeurIPS 2022), a block takes a tile of queries of a head and iterates over
// the tiles of keys that they attend to.  Each row has its largest score so far
// and the sum of the exponentials relative to it; a larger score scales the sum
// and the result.  Backward, the weights are computed again from the logarithms
// of these sums, and so are the random numbers of dropout.  The gradients of
// queries are sums over tiles of keys, those of keys and values sums over tiles
// of queries; each is one block's, in the order of the tiles.
//
// A product of tiles is a loop over the inner index, in which a thread adds to
// RM rows by a vector of columns.  Columns are lanes, so keys and values that
// are multiplied by queries and gradients are transposed in shared memory.

#include "ir/attention.h"
#include "codegen/emit.h"

#include <math.h>

typedef struct {
    Emit *e;
    NodeId n; // whose operands the kernel reads
    Attention s;
    NodeId out, lse;          // its results, or NO_NODE
    const Expr *seed, *epoch; // of dropout
    Scope *kernel;
} Attend;

// Positions of the tile of a block, and of the tiles that it iterates over.
typedef struct {
    int own, other;
} Tiles;

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

// Bytes of shared memory on a GPU: a kernel has 48 KiB without asking for more.
enum { SHARED_FLOATS = 47 << 8, PAD = 4, MOST = 64, LEAST = 8 };

// Lanes on the host: of the columns of a product, and of weights, of which each
// eight blocks of random numbers fill a vector.
enum { COLUMNS = 16, WEIGHTS = 32 };

static int64_t forward_floats(int64_t size, Tiles t) {
    return t.own * (size + PAD) + t.other * size + t.own * (t.other + PAD) +
           3 * t.own;
}

static int64_t longer(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t backward_floats(int64_t size, Tiles t) {
    return 2 * t.own * (size + PAD) + t.other * (size + PAD) +
           2 * longer(t.own * (t.other + PAD), t.other * (t.own + PAD)) +
           2 * longer(t.own, t.other);
}

// The largest tiles on a GPU.  The rows of a tile have the threads of a block.
static Tiles device_tiles(int64_t size, bool backward) {
    int64_t (*floats)(int64_t size, Tiles t) =
        backward ? backward_floats : forward_floats;
    Tiles t = {size <= 32 || !backward ? MOST : MOST / 2, MOST / 2};
    while (floats(size, t) > SHARED_FLOATS && t.own > LEAST) {
        if (t.other >= t.own)
            t.other /= 2;
        else
            t.own /= 2;
    }
    return t;
}

static Tiles host_tiles(void) {
    return (Tiles){MOST, MOST};
}

// Rows that a thread of a block adds to at once, if it has `rows` rows of
// `vectors` vectors each.
static int64_t rows_at_once(int64_t rows, int64_t vectors) {
    int64_t most = rows * vectors / BLOCK_THREADS;
    return power_within(most < 1 ? 1 : most > 4 ? 4 : most);
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

// The constants of a kernel: T positions, D channels of a head; tiles of BM
// and BN positions; vectors of LW channels in memory, of DW channels and of
// JW and VS positions in tiles; CS channels of a row that a thread reads at
// once; rows that a thread adds to at once, RM of scores and RO of results;
// RESULTS_PER_THREAD times RO rows of results of a thread; LQ from row to row
// of a tile of queries.
static void emit_sizes(const Attend *a, Block *b, Tiles device) {
    Emit *e = a->e;
    Tiles host = host_tiles();
    const Attention *s = &a->s;
    enum { LANES = 4, CHANNELS = 8 }; // channels are stored, in 16 bytes
    int64_t channels = power_divisor(s->size, CHANNELS);
    int64_t scores = rows_at_once(device.own, device.other / LANES);
    int64_t results = rows_at_once(device.own, s->size / channels);
    CODE(e, b, NO_NODE,
         "enum { T = $, D = $, HEADS = $, KV_HEADS = $, LW = LANES(D) };",
         number(a, s->positions), number(a, s->size), number(a, s->heads),
         number(a, s->kv_heads));
    CODE(e, b, NO_NODE,
         "enum {"
         "    NT = THREADS(256), BM = $, BN = $, JW = $, DW = $, VS = $"
         "};",
         host_gpu(a, host.own, device.own),
         host_gpu(a, host.other, device.other), host_gpu(a, COLUMNS, LANES),
         host_gpu(a, host_lanes(s->size), channels),
         host_gpu(a, WEIGHTS, LANES));
    CODE(e, b, NO_NODE,
         "enum {"
         "    RM = $, RO = $, CS = $, LQ = D + HOST_GPU(0, 4),"
         "    TILES = (T + BM - 1) / BM,"
         "    RESULTS_PER_THREAD = (BM / RO * (D / DW) + NT - 1) / NT"
         "};",
         host_gpu(a, 4, scores), host_gpu(a, 4, results),
         host_gpu(a, 1, power_divisor(s->size, COLUMNS)));
}

// ---- tiles in shared memory ----

typedef struct {
    NodeId n;          // a tensor [N,T,channels]
    const char *to;    // a shared array
    const char *rows;  // its positions: BM or BN
    const char *from;  // the first of them
    const Expr *first; // channel of the head
    bool transposed;   // [D][rows], else [rows][LQ]
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
static void emit_tile(const Attend *a, Block *b, Tile t) {
    Emit *e = a->e;
    Scope *s = block_open(e, a->kernel, x_name(e->a, "LW"));
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

// A product of tiles of D channels: `to` [rows][columns] = x y, x having rows
// of LQ and y being transposed.  Where no row attends to any of the columns,
// `to` stays as it is.
static void emit_scores(const Attend *a, Block *b, const char *to,
                        const char *rows, const char *columns, const char *x,
                        const char *y) {
    Emit *e = a->e;
    const Expr *width = x_name(e->a, columns);
    CODE(e, b, a->n,
         "for (int t = threadIdx.x; t < $ / RM * ($ / JW); t += NT) {"
         "    const int i = t / ($ / JW) * RM, j = t % ($ / JW) * JW;"
         "    if (j / VS * VS > $) continue;"
         "    float sum[RM][JW];"
         "    UNROLLED(r, RM) LANES_DO(k, JW) sum[r][k] = 0.0f;"
         "    for (int c = 0; c < D; c += CS)"
         "        UNROLLED(u, CS) UNROLLED(r, RM) {"
         "            const float x = $[(i + r) * LQ + c + u];"
         "            LANES_DO(k, JW)"
         "                sum[r][k] ="
         "                    fma_of(x, $[c * $ + j + k + u * $], sum[r][k]);"
         "        }"
         "    UNROLLED(r, RM) LANES_DO(k, JW)"
         "        $[(i + r) * ($ + HOST_GPU(0, 4)) + j + k] = sum[r][k];"
         "}",
         x_name(e->a, rows), width, width, width,
         a->s.causal ? EXPR(e, "i0 + i + RM - 1 - j0") : EXPR(e, "T - 1 - j0"),
         x_name(e->a, x), x_name(e->a, y), width, width, x_name(e->a, to),
         width);
}

// Does `body` for the RO rows of results from i on and the DW channels from c
// on, which are rows m * RO and on of the thread's results.
static void emit_results(const Attend *a, Block *b, const Block *body) {
    CODE(a->e, b, NO_NODE,
         "UNROLLED(m, RESULTS_PER_THREAD) {"
         "    const int t = threadIdx.x + m * NT;"
         "    if (t < BM / RO * (D / DW)) {"
         "        const int i = t / (D / DW) * RO, c = t % (D / DW) * DW;"
         "        ~"
         "    }"
         "}",
         body);
}

static void declare_results(const Attend *a, Block *b, const char *name) {
    const Expr *x = x_name(a->e->a, name);
    CODE(a->e, b, a->n,
         "float $[RESULTS_PER_THREAD * RO][DW];"
         "UNROLLED(m, RESULTS_PER_THREAD * RO) LANES_DO(k, DW) $[m][k] = 0.0f;",
         x, x);
}

// The first and one past the last of the positions of a tile that rows i .. i +
// RO - 1 of the results are sums over.
typedef struct {
    const Expr *from, *to;
} Span;

// Adds a product of tiles over positions j to the results `to`, after a product
// with `factor` of their row, unless it is NULL: weights of row i + r times
// y [BN][LQ].
static void emit_add(const Attend *a, Block *b, const char *to,
                     const Expr *factor, Span span, const Expr *weight,
                     const char *y) {
    Emit *e = a->e;
    const Expr *results = x_name(e->a, to);
    Block add = {NULL, NULL};
    CODE(e, &add, a->n, "float sum[RO][DW];");
    if (factor != NULL)
        CODE(e, &add, a->n,
             "UNROLLED(r, RO) LANES_DO(k, DW)"
             "    sum[r][k] = $[m * RO + r][k] * $;",
             results, factor);
    else
        CODE(e, &add, a->n,
             "UNROLLED(r, RO) LANES_DO(k, DW)"
             "    sum[r][k] = $[m * RO + r][k];",
             results);
    CODE(e, &add, a->n,
         "const int end = $;"
         "for (int j = $; j < end; j++)"
         "    UNROLLED(r, RO) {"
         "        const float x = $;"
         "        LANES_DO(k, DW)"
         "            sum[r][k] = fma_of(x, $[j * LQ + c + k], sum[r][k]);"
         "    }"
         "UNROLLED(r, RO) LANES_DO(k, DW)"
         "    $[m * RO + r][k] = sum[r][k];",
         span.to, span.from, weight, x_name(e->a, y), results);
    emit_results(a, b, &add);
}

// For rows of queries from i0 on: keys from j0 on.
static Span keys_of(const Attend *a) {
    Emit *e = a->e;
    return (Span){e->zero,
                  a->s.causal
                      ? EXPR(e, "i0 + i + RO < j0 + BN ? i0 + i + RO - j0 : BN")
                      : EXPR(e, "T < j0 + BN ? T - j0 : BN")};
}

// For rows of keys from j0 on: queries from i0 on.
static Span queries_of(const Attend *a) {
    Emit *e = a->e;
    return (Span){a->s.causal ? EXPR(e, "j0 + i > i0 ? j0 + i - i0 : 0")
                              : e->zero,
                  EXPR(e, "T < i0 + BN ? T - i0 : BN")};
}

// Stores a tile of results in tensor n from position `at` on, times `factor` of
// their row, unless it is NULL.
static void emit_stores(const Attend *a, Block *b, NodeId n, const char *at,
                        const char *from, const Expr *first,
                        const Expr *factor) {
    Emit *e = a->e;
    Type t = *e->g->node[n].type;
    const Expr *dw = x_name(e->a, "DW");
    Scope *row = block_open(e, a->kernel, dw);
    Index p = {.rank = 3,
               .dim = {t.dim[0], t.dim[1], t.dim[2]},
               .index = {x_name(e->a, "n"),
                         EXPR(e, "$ + i + r", x_name(e->a, at)),
                         EXPR(e, "$ + c", first)},
               .lanes = dw};
    const Expr *x = EXPR(e, "$[m * RO + r][k]", x_name(e->a, from));
    if (factor != NULL)
        x = EXPR(e, "$ * $", x, factor);
    emit_place(e, row, n, p, x);
    Block rows = {NULL, NULL};
    CODE(e, &rows, NO_NODE, "UNROLLED(r, RO) if ($ + i + r < T) { ~ }",
         x_name(e->a, at), scope_close(e, row));
    emit_results(a, b, &rows);
}

// ---- dropout ----

// Declares `kept`, the factors of the weights of VS positions from j0 + c on in
// row i.
static void emit_kept(const Attend *a, Block *b) {
    Emit *e = a->e;
    const Attention *s = &a->s;
    if (s->dropout == 0)
        return;
    double least = ceil((double)(float)s->dropout * 0x1p24);
    CODE(e, b, a->n,
         "const int at = i0 + i < T ? i0 + i : T - 1;"
         "int drawn[VS];"
         "draw_lanes(drawn, VS, $, $, $,"
         "           ((n * HEADS + h) * T + at) * $ + j0 + c);"
         "float kept[VS];"
         "LANES_DO(k, VS) kept[k] = drawn[k] < $ ? 0.0f : $;",
         a->seed, x_kind(e->a, X_STREAM, s->stream), a->epoch,
         x_size(e->a, attention_row(s)), x_size(e->a, (int64_t)least),
         x_scale(e->a, 1 / (1 - s->dropout)));
}

// x times kept[k], if there is dropout.
static const Expr *keep(const Attend *a, const Expr *x) {
    return a->s.dropout > 0 ? EXPR(a->e, "$ * kept[k]", x) : x;
}

// The last column of the tile from j0 on that the row of position i0 + i
// attends to; -1: none.
static const Expr *last_column(const Attend *a) {
    return a->s.causal ? EXPR(a->e, "(i0 + i < T ? i0 + i : T - 1) - j0")
                       : EXPR(a->e, "T - 1 - j0");
}

// The rows i of a tile: each has RT threads of a warp, of which `row_thread` is
// this one, and a thread has ROWS of them.
static void emit_row_loop(const Attend *a, Block *b, const Block *body) {
    CODE(a->e, b, NO_NODE,
         "UNROLLED(m, ROWS) {"
         "    const int i = m * (NT / RT) + threadIdx.x / RT;"
         "    ~"
         "}",
         body);
}

static void declare_rows(const Attend *a, Block *b, const char *rows) {
    const Expr *count = x_name(a->e->a, rows);
    CODE(a->e, b, NO_NODE,
         "enum { RT = NT < $ ? 1 : NT / $, ROWS = $ * RT / NT };"
         "const int row_thread = threadIdx.x % RT;",
         count, count, count);
}

// ---- forward ----

// Makes weights of a tile's scores, relative to the largest of the row so far:
// `most` of the row.  `total` is the sum of the weights.
static void emit_softmax(const Attend *a, Block *b) {
    Emit *e = a->e;
    Block row = {NULL, NULL}, draw = {NULL, NULL};
    emit_kept(a, &draw);
    CODE(e, &row, a->n,
         "const int last = $;"
         "float big[VS];"
         "LANES_DO(k, VS) big[k] = most[m];"
         "for (int c = row_thread * VS; c < BN && c <= last; c += RT * VS)"
         "    LANES_DO(k, VS) {"
         "        const float y = s[i * (BN + HOST_GPU(0, 4)) + c + k] * $;"
         "        const float x = c + k <= last ? y : -INF;"
         "        s[i * (BN + HOST_GPU(0, 4)) + c + k] = x;"
         "        big[k] = larger(big[k], x);"
         "    }"
         "const float now = row_max(lanes_max(big, VS), RT, factor);"
         "float all[VS];"
         "LANES_DO(k, VS) all[k] = 0.0f;"
         "for (int c = row_thread * VS; c < BN; c += RT * VS) {"
         "    if (c > last) {"
         "        LANES_DO(k, VS) s[i * (BN + HOST_GPU(0, 4)) + c + k] = 0.0f;"
         "        continue;"
         "    }"
         "    ~"
         "    LANES_DO(k, VS) {"
         "        const float x = expf(s[i * (BN + HOST_GPU(0, 4)) + c + k] - "
         "now);"
         "        all[k] += x;"
         "        s[i * (BN + HOST_GPU(0, 4)) + c + k] = $;"
         "    }"
         "}"
         "const float share = expf(most[m] - now);"
         "total[m] = fma_of(total[m], share,"
         "                  row_sum(lanes_sum(all, VS), RT, factor));"
         "most[m] = now;"
         "if (row_thread == 0) factor[i] = share;",
         last_column(a), x_scale(e->a, a->s.scale), &draw,
         keep(a, EXPR(e, "x")));
    emit_row_loop(a, b, &row);
}

// The results of a tile, and the logarithms of its rows.
static void emit_forward_stores(const Attend *a, Block *b) {
    Emit *e = a->e;
    Block row = {NULL, NULL};
    CODE(e, &row, NO_NODE, "if (row_thread == 0) factor[i] = 1.0f / total[m];");
    if (a->lse != NO_NODE)
        CODE(e, &row, a->lse,
             "if (row_thread == 0 && i0 + i < T)"
             "    put_f32($ + (size_t)(n * HEADS + h) * T + i0 + i,"
             "            most[m] + logf(total[m]));",
             pointer_name(e, a->lse));
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_row_loop(a, b, &row);
    CODE(e, b, NO_NODE, "BARRIER();");
    if (a->out != NO_NODE)
        emit_stores(a, b, a->out, "i0", "out", query_channel(a),
                    EXPR(e, "factor[i + r]"));
    CODE(e, b, NO_NODE, "BARRIER();");
}

// One tile of keys and values, from j0 on.
static void emit_forward_tile(const Attend *a, Block *b) {
    Emit *e = a->e;
    NodeId qkv = e->g->node[a->n].arg[0];
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_tile(a, b, (Tile){qkv, "kv", "BN", "j0", key_channel(a), true});
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_scores(a, b, "s", "BM", "BN", "q", "kv");
    CODE(e, b, NO_NODE, "BARRIER();");
    if (a->out != NO_NODE)
        emit_tile(a, b, (Tile){qkv, "kv", "BN", "j0", value_channel(a), false});
    emit_softmax(a, b);
    CODE(e, b, NO_NODE, "BARRIER();");
    if (a->out != NO_NODE)
        emit_add(a, b, "out", EXPR(e, "factor[i + r]"), keys_of(a),
                 EXPR(e, "s[(i + r) * (BN + HOST_GPU(0, 4)) + j]"), "kv");
}

// A tile of queries of a head; b declares n, h and i0.
static void emit_forward(const Attend *a, Block *b) {
    Emit *e = a->e;
    NodeId qkv = e->g->node[a->n].arg[0];
    Block keys = {NULL, NULL};
    emit_tile(a, b, (Tile){qkv, "q", "BM", "i0", query_channel(a), false});
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

// Reads the logarithms of a tile's rows, and computes the products of their
// result and its gradient.
static void emit_deltas(const Attend *a, Block *b, const char *rows) {
    Emit *e = a->e;
    const NodeId *arg = e->g->node[a->n].arg;
    Block row = {NULL, NULL};
    Scope *s = block_open(e, a->kernel, x_name(e->a, "LW"));
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
    Block loop = {NULL, NULL};
    declare_rows(a, &loop, rows);
    emit_row_loop(a, &loop, &row);
    CODE(e, b, NO_NODE, "{ ~ }", &loop);
}

// Makes gradients of a tile's scores in `ds` of products of gradients and
// values there, and, if `weighs`, weights of the scores in `s`.
static void emit_slopes(const Attend *a, Block *b, const char *rows,
                        const char *columns, bool weighs) {
    Emit *e = a->e;
    Block element = {NULL, NULL}, none = element, draw = element;
    const Expr *width = x_name(e->a, columns);
    const Expr *scale = x_scale(e->a, a->s.scale);
    emit_kept(a, &draw);
    CODE(e, &element, a->n,
         "const int element = i * ($ + HOST_GPU(0, 4)) + c + k;"
         "const float weight = expf(fma_of(s[element], $, -lse[i]));"
         "const float p = c + k <= last ? weight : 0.0f;"
         "const float dp = $;"
         "ds[element] = p * (dp - delta[i]) * $;",
         width, scale, keep(a, EXPR(e, "ds[element]")), scale);
    if (weighs)
        CODE(e, &element, a->n, "s[element] = $;", keep(a, EXPR(e, "p")));
    CODE(e, &none, a->n, "ds[i * ($ + HOST_GPU(0, 4)) + c + k] = 0.0f;", width);
    if (weighs)
        CODE(e, &none, a->n, "s[i * ($ + HOST_GPU(0, 4)) + c + k] = 0.0f;",
             width);
    CODE(e, b, NO_NODE,
         "for (int t = threadIdx.x; t < $ * ($ / VS); t += NT) {"
         "    const int i = t / ($ / VS), c = t % ($ / VS) * VS;"
         "    const int last = i0 + i < T ? $ : -1;"
         "    if (c > last) {"
         "        LANES_DO(k, VS) { ~ }"
         "        continue;"
         "    }"
         "    ~"
         "    LANES_DO(k, VS) { ~ }"
         "}",
         x_name(e->a, rows), width, width, width, last_column(a), &none, &draw,
         &element);
}

// The gradient of a tile of queries of a head.
static void emit_queries(const Attend *a, Block *b) {
    Emit *e = a->e;
    const NodeId *arg = e->g->node[a->n].arg;
    Block keys = {NULL, NULL};
    const Expr *key = key_channel(a), *value = value_channel(a);
    emit_tile(a, b,
              (Tile){arg[0], "tile0", "BM", "i0", query_channel(a), false});
    emit_tile(a, b,
              (Tile){arg[2], "tile1", "BM", "i0", query_channel(a), false});
    emit_deltas(a, b, "BM");
    declare_results(a, b, "dq");
    emit_tile(a, &keys, (Tile){arg[0], "tile2", "BN", "j0", key, true});
    CODE(e, &keys, NO_NODE, "BARRIER();");
    emit_scores(a, &keys, "s", "BM", "BN", "tile0", "tile2");
    CODE(e, &keys, NO_NODE, "BARRIER();");
    emit_tile(a, &keys, (Tile){arg[0], "tile2", "BN", "j0", value, true});
    CODE(e, &keys, NO_NODE, "BARRIER();");
    emit_scores(a, &keys, "ds", "BM", "BN", "tile1", "tile2");
    CODE(e, &keys, NO_NODE, "BARRIER();");
    emit_tile(a, &keys, (Tile){arg[0], "tile2", "BN", "j0", key, false});
    emit_slopes(a, &keys, "BM", "BN", false);
    CODE(e, &keys, NO_NODE, "BARRIER();");
    emit_add(a, &keys, "dq", NULL, keys_of(a),
             EXPR(e, "ds[(i + r) * (BN + HOST_GPU(0, 4)) + j]"), "tile2");
    CODE(e, &keys, NO_NODE, "BARRIER();");
    CODE(e, b, NO_NODE,
         "const int end = $;"
         "for (int j0 = 0; j0 < end; j0 += BN) { ~ }",
         a->s.causal ? EXPR(e, "i0 + BM < T ? i0 + BM : T") : EXPR(e, "T"),
         &keys);
    emit_stores(a, b, a->n, "i0", "dq", query_channel(a), NULL);
}

// The gradients of a tile of keys and values from j0 on, of one tile of
// queries of head h from i0 on.
static void emit_of_queries(const Attend *a, Block *b) {
    Emit *e = a->e;
    const NodeId *arg = e->g->node[a->n].arg;
    const Expr *query = query_channel(a);
    emit_deltas(a, b, "BN");
    emit_tile(a, b, (Tile){arg[0], "tile2", "BN", "i0", query, false});
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_scores(a, b, "s", "BN", "BM", "tile2", "tile0");
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_tile(a, b, (Tile){arg[2], "tile2", "BN", "i0", query, false});
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_scores(a, b, "ds", "BN", "BM", "tile2", "tile1");
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_slopes(a, b, "BN", "BM", true);
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_add(a, b, "dv", NULL, queries_of(a),
             EXPR(e, "s[j * (BM + HOST_GPU(0, 4)) + i + r]"), "tile2");
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_tile(a, b, (Tile){arg[0], "tile2", "BN", "i0", query, false});
    CODE(e, b, NO_NODE, "BARRIER();");
    emit_add(a, b, "dk", NULL, queries_of(a),
             EXPR(e, "ds[j * (BM + HOST_GPU(0, 4)) + i + r]"), "tile2");
    CODE(e, b, NO_NODE, "BARRIER();");
}

// The gradients of a tile of keys and values: sums over the queries of the
// heads that share them.
static void emit_keys(const Attend *a, Block *b) {
    Emit *e = a->e;
    NodeId qkv = e->g->node[a->n].arg[0];
    const Expr *key = key_channel(a), *value = value_channel(a);
    Block queries = {NULL, NULL};
    emit_tile(a, b, (Tile){qkv, "tile0", "BM", "j0", key, true});
    emit_tile(a, b, (Tile){qkv, "tile1", "BM", "j0", value, true});
    declare_results(a, b, "dk");
    declare_results(a, b, "dv");
    emit_of_queries(a, &queries);
    CODE(e, b, NO_NODE,
         "const int from = head * (HEADS / KV_HEADS);"
         "for (int h = from; h < from + HEADS / KV_HEADS; h++)"
         "    for (int i0 = $; i0 < T; i0 += BN) { ~ }",
         a->s.causal ? EXPR(e, "j0") : e->zero, &queries);
    emit_stores(a, b, a->n, "j0", "dk", key, NULL);
    emit_stores(a, b, a->n, "j0", "dv", value, NULL);
}

// ---- the kernels ----

// An array that the threads of a block share.  Behind a pointer: gcc 12 keeps
// the sums of a product in registers only if it reads no local array.
static void declare_shared(const Attend *a, Block *b, const char *name,
                           const char *size) {
    Emit *e = a->e;
    const Expr *array = x_name(e->a, arena_format(e->a, "%s_array", name));
    CODE(e, b, NO_NODE,
         arena_format(e->a, "SHARED float $[%s]; float *const %s = $;", size,
                      name),
         array, array);
}

static void emit_forward_kernel(const Attend *a, Block *b) {
    Emit *e = a->e;
    Block tile = {NULL, NULL};
    emit_forward(a, &tile);
    declare_shared(a, b, "q", "BM * LQ");
    declare_shared(a, b, "kv", "BN * LQ");
    declare_shared(a, b, "s", "BM * (BN + HOST_GPU(0, 4))");
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

// Tiles of queries come first, then tiles of keys and values.
static void emit_backward_kernel(const Attend *a, Block *b) {
    Emit *e = a->e;
    Block queries = {NULL, NULL}, keys = {NULL, NULL};
    emit_queries(a, &queries);
    emit_keys(a, &keys);
    declare_shared(a, b, "tile0", "BM * LQ");
    declare_shared(a, b, "tile1", "BM * LQ");
    declare_shared(a, b, "tile2", "BN * LQ");
    declare_shared(a, b, "s", "BM * (BN + HOST_GPU(0, 4))");
    declare_shared(a, b, "ds", "BM * (BN + HOST_GPU(0, 4))");
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

void emit_attention(Emit *e, Block *b) {
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
    emit_sizes(&a, b, device_tiles(a.s.size, backward));
    Block body = {NULL, NULL};
    if (backward)
        emit_backward_kernel(&a, &body);
    else
        emit_forward_kernel(&a, &body);
    block_append(b, scope_close(e, a.kernel));
    block_append(b, &body);
}
