// Tile attention: attention and its gradient as CUDA Tile C++.
//
// The products are tensor cores', of 16-bit operands and f32 sums; the rest is
// as in attention.c.  A block of the first kernel has a tile of BM queries and
// iterates over tiles of BN keys; so has one of the gradient of queries.  The
// gradients of keys and values have a kernel of their own, whose block has BN
// keys and iterates over tiles of BM queries: every result is one block's, and
// there are no atomics.  The algorithm is FlashAttention-2 (Dao, 2023): `most`
// is the running maximum m of a row, `now` the new one, `share` the factor that
// rescales earlier sums, `total` the sum l, `lse` the log-sum-exp, `delta` the
// row sum of dO * O.  Scores are multiplied by log2(e), for exp2.

#include "codegen/program.h"
#include "codegen/tile.h"
#include "ir/attention.h"

#include <math.h>
#include <string.h>

static const double LN2 = 0.69314718055994530942;

typedef enum { FORWARD, OF_QUERIES, OF_KEYS } Part;

typedef struct {
    Arena *a;
    const Launches *l;
    const Graph *g;
    const Kernel *kernel;
    const Node *node; // whose operands the kernel reads
    Part part;
    Attention s;
    NodeId out, lse, gradient; // its results, or NO_NODE
    int queries, keys;         // of a tile: BM and BN
    int channels, warps;       // BD
    Text *t;
} TileAttention;

static void line(TileAttention *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void line(TileAttention *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    text_add(t->t, "%*s", 4 * t->t->indent, "");
    text_addv(t->t, format, list);
    text_add(t->t, "\n");
    va_end(list);
}

// A literal of a float.
static const char *real(const TileAttention *t, double x) {
    const char *text = arena_format(t->a, "%.9g", x);
    return arena_format(t->a, strpbrk(text, ".e") ? "%sf" : "%s.0f", text);
}

// ---- sizes ----

static int64_t blocks_of(const TileAttention *t) {
    const Attention *s = &t->s;
    return t->part == OF_KEYS
               ? s->samples * s->kv_heads * divide_up(s->positions, t->keys)
               : s->samples * s->heads * divide_up(s->positions, t->queries);
}

// The block's own positions are equal in all configurations.
static void choose_sizes(TileAttention *t, TileSizes size) {
    enum { LEAST = 16, SHORT = 64, LONG = 128 };
    int64_t positions = t->s.positions;
    int own = power_for(positions, LEAST, SHORT);
    int other = power_for(positions, LEAST, size.columns);
    if (t->part == FORWARD && positions > LONG && t->s.size <= SHORT)
        own = LONG;
    t->channels = power_for(t->s.size, LEAST, LONG);
    t->warps = size.warps;
    t->queries = t->part == OF_KEYS ? other : own;
    t->keys = t->part == OF_KEYS ? own : other;
}

// ---- operands ----

// A tile of a tensor [N,T,heads * D]: its rows, its number, and the head.
typedef struct {
    const char *rows, *at, *head, *heads;
} Place;

typedef struct {
    TileValues v; // first
    Place place;
    TileSpace space; // of the tensor
} Operand;

static const char *parameter_of(const TileAttention *t, NodeId n) {
    TileValues v = {.a = t->a, .g = t->g, .kernel = t->kernel};
    v.parameter = "p";
    return tile_parameter(&v, n)->name;
}

static void extents_of(const TileValues *v, NodeId n, bool whole[2]) {
    tile_extents_in(v, &((const Operand *)v)->space, n, whole);
}

static const Expr *load(TileValues *v, NodeId n) {
    const Operand *o = (const Operand *)v;
    const Place *p = &o->place;
    TileExtents e;
    tile_extents(&o->space, *v->g->node[n].type, &e);
    const bool *whole = e.whole;
    const Expr *zero = x_number(v->a, 0);
    const Expr *arg[] = {tile_parameter(v, n),
                         whole[0] ? x_name(v->a, "n") : zero,
                         whole[1] ? x_name(v->a, p->at) : zero,
                         whole[2] ? x_name(v->a, p->head) : zero};
    return tile_call(v,
                     arena_format(v->a, "load_head<%s, %s, %s, %s, %s>",
                                  whole[0] ? "N" : "1", whole[1] ? "T" : "1",
                                  whole[2] ? p->heads : "1",
                                  whole[2] ? "D" : "1",
                                  tile_text(v, whole + 1)),
                     4, arg);
}

static const Expr *load_value(TileValues *v, NodeId n) {
    return tile_declare_loaded(v, n, load(v, n));
}

static TileValues values_of(const TileAttention *t, const char *name,
                            Stmts *to) {
    TileValues v = tile_values(NULL, t->l, t->kernel, t->kernel->group, t->a);
    v.parameter = "p";
    v.stem = name;
    v.to = to;
    return v;
}

// Whether the tensor has an element: others are 0, as a load makes them.
static const char *inside_text(const TileAttention *t, const Place *p) {
    int rows = p->rows[1] == 'M' ? t->queries : t->keys;
    bool tail = t->s.positions % rows != 0, padded = t->s.size != t->channels;
    const char *row = arena_format(t->a, "(iota_column<%s>() + %s * %s < T)",
                                   p->rows, p->at, p->rows);
    const char *column = "(iota_row<BD>() < D)";
    return tail && padded ? arena_format(t->a, "%s && %s", row, column)
           : tail         ? row
           : padded       ? column
                          : NULL;
}

// Declares `name` as a tile of node n, rounded as it is multiplied.
static void print_operand(TileAttention *t, const char *name, NodeId n,
                          Place place) {
    Stmts b = {NULL, NULL};
    Operand o = {.v = values_of(t, name, &b),
                 .place = place,
                 .space = tile_positions(t->g->node[n].type)};
    o.v.extent[0] = place.rows;
    o.v.extent[1] = "BD";
    o.v.extents = extents_of;
    o.v.load = load_value;
    if (!group_has(t->kernel->group, n)) {
        tile_declare_as(&o.v, n, name, load(&o.v, n));
    } else {
        const Expr *x = tile_value(&o.v, n);
        const char *inside = inside_text(t, &place);
        if (inside != NULL)
            x = tile_call(&o.v, "where", 3,
                          (const Expr *[]){x_name(t->a, inside), x,
                                           literal(t->a, F32, 0)});
        tile_declare_as(&o.v, n, name, tile_call_with(&o.v, "to_act", x));
    }
    stmts_print_tiles(t->t, &b);
}

// A number in memory, or computed by the kernel.
static const Expr *scalar_of(TileValues *v, NodeId n) {
    const Node *d = &v->g->node[n];
    const Expr *operand[4] = {NULL};
    double number;
    if (d->op == OP_constant && node_number(d, &number))
        return literal(v->a, I32, number);
    if (!group_has(v->kernel->group, n))
        return tile_call_with(v, "load_number", tile_parameter(v, n));
    for (int i = 0; i < d->num_args; i++)
        operand[i] = scalar_of(v, d->arg[i]);
    return pointwise_expr(&v->emit, n, operand);
}

static void print_scalar(TileAttention *t, const char *name, NodeId n) {
    Stmts b = {NULL, NULL};
    TileValues v = values_of(t, name, &b);
    tile_declare_as(&v, n, name, scalar_of(&v, n));
    stmts_print_tiles(t->t, &b);
}

static Place queries_of(const char *heads) {
    return (Place){"BM", "mb", "h", heads};
}

static void print_query(TileAttention *t) {
    print_operand(t, "q", t->node->arg[0], queries_of("ALL"));
}

static void print_keys(TileAttention *t) {
    print_operand(t, "k", t->node->arg[0],
                  (Place){"BN", "nb", "HEADS + head", "ALL"});
    print_operand(t, "v", t->node->arg[0],
                  (Place){"BN", "nb", "HEADS + KV_HEADS + head", "ALL"});
}

// The gradient of the result, the log-sum-exp, and delta.
static void print_gradient(TileAttention *t) {
    const char *shape = t->part == OF_KEYS ? "1, BM" : "BM, 1";
    print_operand(t, "g", t->node->arg[2], queries_of("HEADS"));
    print_operand(t, "y", t->node->arg[1], queries_of("HEADS"));
    line(t,
         "const auto delta = matrix<%s>(ct::sum<1>(to_float(g) * "
         "to_float(y)));",
         shape);
    line(t,
         "const auto lse = matrix<%s>(load_tile<N * HEADS, 1, T, 1, 1, "
         "BM>(\n            %s, n * HEADS + h, 0, mb)) * %s;",
         shape, parameter_of(t, t->node->arg[3]), real(t, 1 / LN2));
}

// ---- the tile of scores ----

static const char *tile_of_scores(const TileAttention *t) {
    return t->part == OF_KEYS ? "BN, BM" : "BM, BN";
}

// Whether the last one of the tiles that a block iterates over is partial.
static bool has_tail(const TileAttention *t) {
    return t->s.positions % (t->part == OF_KEYS ? t->queries : t->keys) != 0;
}

// i and j: the positions of queries and keys, along their axes.
static void print_queries_index(TileAttention *t) {
    if (!t->s.causal && t->s.dropout == 0 &&
        !(t->part == OF_KEYS && has_tail(t)))
        return;
    line(t, "const auto i = iota_%s<BM>() + mb * BM;",
         t->part == OF_KEYS ? "row" : "column");
}

static void print_keys_index(TileAttention *t) {
    if (!t->s.causal && !(t->part != OF_KEYS && has_tail(t)))
        return;
    line(t, "const auto j = iota_%s<BN>() + nb * BN;",
         t->part == OF_KEYS ? "column" : "row");
}

// The condition that query i attends to key j; NULL: each does.
static const char *mask_of(const TileAttention *t) {
    bool tail = has_tail(t);
    const char *in = t->part == OF_KEYS ? "(i < T)" : "(j < T)";
    return tail && t->s.causal ? arena_format(t->a, "%s && (j <= i)", in)
           : t->s.causal       ? "j <= i"
           : tail              ? in
                               : NULL;
}

static void print_scores(TileAttention *t) {
    bool by_key = t->part == OF_KEYS;
    line(t,
         "const auto s = ct::mma(%s, ct::transpose(%s), full<%s>(0.0f)) "
         "* %s;",
         by_key ? "k" : "q", by_key ? "q" : "k", tile_of_scores(t),
         real(t, t->s.scale / LN2));
}

// The factors of the weights, which are drawn four at a time.
static void print_kept(TileAttention *t) {
    const Attention *s = &t->s;
    double least = ceil((double)(float)s->dropout * 0x1p24);
    bool by_key = t->part == OF_KEYS;
    if (s->dropout == 0)
        return;
    line(t,
         "const auto first_number = (i + (n * HEADS + h) * T) * %lld + "
         "nb * BN + iota_%s<BN / 4>() * 4;",
         (long long)attention_row(s), by_key ? "column" : "row");
    line(t,
         "const auto kept = draw_kept<%d, %s>(seed, stream, epoch, "
         "first_number, %lld, %s);",
         by_key ? 0 : 1, by_key ? "BN / 4, BM" : "BM, BN / 4", (long long)least,
         real(t, 1 / (1 - s->dropout)));
}

static const char *keep(const TileAttention *t) {
    return t->s.dropout > 0 ? " * kept" : "";
}

// ---- kernels ----

static void print_parameters(TileAttention *t, const char *name) {
    const Kernel *k = t->kernel;
    line(t, "TILE_KERNEL(%d)", t->warps);
    text_add(t->t, "%s(", name);
    for (int i = 0; i < k->num_args; i++)
        text_add(t->t, "%s *p%d, ", k->arg[i].type, i);
    text_add(t->t, "int stream)\n{\n");
}

static void print_sizes(TileAttention *t) {
    const Attention *s = &t->s;
    line(t,
         "constexpr int N = %lld, T = %lld, HEADS = %lld, KV_HEADS = "
         "%lld, D = %lld;",
         (long long)s->samples, (long long)s->positions, (long long)s->heads,
         (long long)s->kv_heads, (long long)s->size);
    line(t, "constexpr int ALL = HEADS + 2 * KV_HEADS;");
    line(t, "constexpr int BM = %d, BN = %d, BD = %d;", t->queries, t->keys,
         t->channels);
    line(t, "constexpr int MB = (T + BM - 1) / BM, NB = (T + BN - 1) / "
            "BN;");
    for (int i = 0; i < t->kernel->num_args; i++)
        line(t, "p%d = ct::assume_aligned<16>(p%d);", i, i);
    if (s->dropout > 0) {
        print_scalar(t, "seed", t->node->arg[t->node->num_args - 2]);
        print_scalar(t, "epoch", t->node->arg[t->node->num_args - 1]);
    }
}

// With a causal mask the last tile of queries has most keys, and is first.
static void print_block_of_queries(TileAttention *t) {
    line(t, "const int block = ct::bid().x;");
    line(t, "const int mb = %sblock %% MB;", t->s.causal ? "MB - 1 - " : "");
    line(t, "const int h = block / MB %% HEADS, n = block / MB / HEADS;");
    line(t, "const int head = h / (HEADS / KV_HEADS);");
}

static void print_loop_over_keys(TileAttention *t) {
    if (t->s.causal) {
        line(t, "const int last = (mb * BM + BM + BN - 1) / BN;");
        line(t, "NO_UNROLL(nb, last < NB ? last : NB) {");
    } else {
        line(t, "NO_UNROLL(nb, NB) {");
    }
    t->t->indent++;
    print_keys(t);
    print_keys_index(t);
}

static void print_loop_end(TileAttention *t) {
    t->t->indent--;
    line(t, "}");
}

static void print_store(TileAttention *t, NodeId n, const char *x,
                        const char *rows, const char *at, const char *head,
                        const char *heads) {
    line(t, "store_head<N, T, %s, D, %s, BD>(%s, to_act(%s), n, %s, %s);",
         heads, rows, parameter_of(t, n), x, at, head);
}

static void print_forward(TileAttention *t) {
    const char *mask = mask_of(t);
    print_block_of_queries(t);
    print_query(t);
    print_queries_index(t);
    line(t, "auto most = full<BM, 1>(LOWEST);");
    line(t, "auto total = full<BM, 1>(0.0f);");
    line(t, "auto out = full<BM, BD>(0.0f);");
    print_loop_over_keys(t);
    print_scores(t);
    if (mask != NULL)
        line(t, "const auto masked = where(%s, s, LOWEST);", mask);
    const char *scores = mask != NULL ? "masked" : "s";
    line(t, "const auto now = ct::max(most, ct::reduce_max<1>(%s));", scores);
    line(t, "const auto p = ct::exp2(%s - now);", scores);
    line(t, "const auto share = ct::exp2(most - now);");
    line(t, "total = total * share + ct::sum<1>(p);");
    print_kept(t);
    line(t, "out = ct::mma(to_act(p%s), v, out * share);", keep(t));
    line(t, "most = now;");
    print_loop_end(t);
    print_store(t, t->out, "out * (1.0f / total)", "BM", "mb", "h", "HEADS");
    if (t->lse != NO_NODE)
        line(t,
             "store_tile<N * HEADS, 1, T, 1, 1, BM>(%s, (most + "
             "ct::log2(total)) * %s, n * HEADS + h, 0, mb);",
             parameter_of(t, t->lse), real(t, LN2));
}

// Declares p, the weights, and ds, the gradients of the scores but for their
// scale.
static void print_slopes(TileAttention *t) {
    const char *mask = mask_of(t);
    bool by_key = t->part == OF_KEYS;
    print_scores(t);
    if (mask != NULL)
        line(t, "const auto p = where(%s, ct::exp2(s - lse), 0.0f);", mask);
    else
        line(t, "const auto p = ct::exp2(s - lse);");
    print_kept(t);
    line(t,
         "const auto dp = ct::mma(%s, ct::transpose(%s), "
         "full<%s>(0.0f))%s;",
         by_key ? "v" : "g", by_key ? "g" : "v", tile_of_scores(t), keep(t));
    line(t, "const auto ds = to_act(p * (dp - delta));");
}

static void print_of_queries(TileAttention *t) {
    print_block_of_queries(t);
    print_query(t);
    print_gradient(t);
    print_queries_index(t);
    line(t, "auto dq = full<BM, BD>(0.0f);");
    print_loop_over_keys(t);
    print_slopes(t);
    line(t, "dq = ct::mma(ds, k, dq);");
    print_loop_end(t);
    print_store(t, t->gradient,
                arena_format(t->a, "dq * %s", real(t, t->s.scale)), "BM", "mb",
                "h", "ALL");
}

// One loop over the tiles of queries of all heads that share the keys: a short
// loop in another one is unrolled whole.
static void print_of_keys(TileAttention *t) {
    line(t, "const int block = ct::bid().x, nb = block %% NB;");
    line(t, "const int head = block / NB %% KV_HEADS, n = block / NB / "
            "KV_HEADS;");
    print_keys(t);
    print_keys_index(t);
    line(t, "auto dk = full<BN, BD>(0.0f);");
    line(t, "auto dv = full<BN, BD>(0.0f);");
    line(t, "const int first = %s, tiles = MB - first;",
         t->s.causal ? "nb * BN / BM" : "0");
    line(t, "NO_UNROLL(step, HEADS / KV_HEADS * tiles) {");
    t->t->indent++;
    line(t, "const int h = head * (HEADS / KV_HEADS) + step / tiles;");
    line(t, "const int mb = first + step %% tiles;");
    print_query(t);
    print_gradient(t);
    print_queries_index(t);
    print_slopes(t);
    line(t, "dv = ct::mma(to_act(p%s), g, dv);", keep(t));
    line(t, "dk = ct::mma(ds, q, dk);");
    print_loop_end(t);
    print_store(t, t->gradient,
                arena_format(t->a, "dk * %s", real(t, t->s.scale)), "BN", "nb",
                "HEADS + head", "ALL");
    print_store(t, t->gradient, "dv", "BN", "nb", "HEADS + KV_HEADS + head",
                "ALL");
}

static void print_kernel(TileAttention *t, const char *name) {
    print_parameters(t, name);
    t->t->indent = 1;
    print_sizes(t);
    if (t->part == FORWARD)
        print_forward(t);
    else if (t->part == OF_QUERIES)
        print_of_queries(t);
    else
        print_of_keys(t);
    t->t->indent = 0;
    text_add(t->t, "}\n");
}

static const char *print_text(TileAttention *t, const char *heading,
                              const char *name, const TileConfig *c) {
    Text text = text_new(t->a);
    t->t = &text;
    t->queries = c->rows;
    t->keys = c->columns;
    t->warps = c->warps;
    text_add(t->t,
             "%s" EMITTED_LICENCE "#define SINTER_ACT %d\n"
             "#include \"runtime/prelude/tile.h\"\n\n",
             heading, act_bits(t->g->act));
    print_kernel(t, name);
    return text_string(&text);
}

static NodeId find_output(const TileAttention *t, Op op) {
    const Group *group = t->kernel->group;
    for (int i = 0; i < group->num_outputs; i++)
        if (t->g->node[group->output[i]].op == op)
            return group->output[i];
    return NO_NODE;
}

// ---- cost ----

// Pairs of tiles that meet, of all blocks.
static double pairs_of(const TileAttention *t) {
    const Attention *s = &t->s;
    int64_t queries = divide_up(s->positions, t->queries), pairs = 0;
    for (int64_t m = 0; m < queries; m++) {
        int64_t last = (m + 1) * t->queries;
        pairs += divide_up(
            s->causal && last < s->positions ? last : s->positions, t->keys);
    }
    return (double)(s->samples * s->heads * pairs);
}

// Elements that a pair of tiles reads, and that a prologue computes.
static double computed_elements(const TileAttention *t) {
    const Group *group = t->kernel->group;
    double tile = t->channels, elements = 0;
    if (group_has(group, t->node->arg[0]))
        elements += tile * (t->part == OF_KEYS ? t->queries : 2 * t->keys);
    for (int i = 1; i <= 2 && t->part == OF_KEYS; i++)
        if (group_has(group, t->node->arg[i]))
            elements += tile * t->queries;
    return elements;
}

// Instructions of a score, of a drawn number and of an element of a prologue:
// those of loops in machine code of NVRTC 13.5 for sm_90, with 64 channels.
static void count_work(const TileAttention *t, TileConfig *k) {
    enum { BLOCK_LANES = 256, DRAW = 16, ELEMENT = 6 };
    static const int of_score[] = {
        [FORWARD] = 18, [OF_QUERIES] = 28, [OF_KEYS] = 35};
    static const int products[] = {
        [FORWARD] = 2, [OF_QUERIES] = 3, [OF_KEYS] = 4};
    double pairs = pairs_of(t), scores = (double)t->queries * t->keys;
    double each = of_score[t->part] + (t->s.dropout > 0 ? DRAW : 0) - 1;
    double lanes = (double)BLOCK_LANES * (double)blocks_of(t);
    k->flops = pairs * 2 * products[t->part] * scores * t->channels;
    k->cost.issue[ISSUE_SPECIAL] = pairs * scores / lanes;
    k->cost.issue[ISSUE_FLOAT] =
        pairs * (scores * each + ELEMENT * computed_elements(t)) / lanes;
}

static void find_candidates(void *context, const TileModel *m,
                            TileConfig to[TILE_CANDIDATES]) {
    TileAttention *t = context;
    for (int i = 0; i < TILE_ATTENTION_SIZES; i++) {
        choose_sizes(t, tile_attention_sizes(m->capability, i));
        to[i] = (TileConfig){.rows = t->queries,
                             .columns = t->keys,
                             .depth = t->channels,
                             .warps = t->warps,
                             .parts = 1,
                             .swizzle = 1,
                             .grid = (int)blocks_of(t)};
        count_work(t, &to[i]);
    }
}

static TileKernel kernel_of(TileAttention *t, Part part, const char *name,
                            const TileFusion *f, const Launches *l,
                            const TileModels *models) {
    TileKernel k = {.fusion = f, .name = name, .number = (int)t->s.stream};
    const char *heading = arena_format(t->a, "// %s\n", t->kernel->name);
    t->part = part;
    tile_rank(&k, l, models, find_candidates, t, t->a);
    for (int i = 0; i < k.num_configs; i++)
        k.config[i].text = print_text(t, heading, name, &k.config[i]);
    k.body = print_text(t, "", "", &k.config[0]);
    return k;
}

TileKernel tile_attention(const Launches *l, const TileFusion *f,
                          const TileModels *models, Arena *a) {
    const Graph *g = l->plan->graph;
    const Kernel *kernel = &l->kernel[f->epilogue];
    const Node *d = &g->node[group_first(g, kernel->group, ATTENDS)];
    TileAttention t = {.a = a,
                       .l = l,
                       .g = g,
                       .kernel = kernel,
                       .node = d,
                       .s = attention_of(g, d)};
    const char *name = arena_format(a, "t%s", kernel->name + 1);
    t.out = find_output(&t, OP_attention);
    t.lse = find_output(&t, OP_attention_lse);
    t.gradient = find_output(&t, OP_attention_grad);
    bool backward = d->op == OP_attention_grad;
    TileKernel k =
        kernel_of(&t, backward ? OF_QUERIES : FORWARD, name, f, l, models);
    if (backward) {
        TileKernel *second = ARENA_NEW(a, TileKernel);
        *second = kernel_of(&t, OF_KEYS, arena_format(a, "%s_keys", name), f, l,
                            models);
        k.second = second;
    }
    return k;
}
