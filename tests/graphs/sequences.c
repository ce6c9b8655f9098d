// Sequences: rows of tables, places in a row, attention, and what of them is
// left out at random.
#include "tests/graphs/random_graph.h"

#include <math.h>

// ---- tables and places ----

// Which rows of a table are wanted: data, or every place counted round.
static NodeId rows_wanted(Random *b, Type t, int64_t rows) {
    if (random_draw(b, 3))
        return random_leaf(b, OP_input, I32, t.rank, t.dim);
    t.dtype = I32;
    NodeId place = graph_iota(b->g, t, t.rank - 1);
    NodeId count = graph_constant(b->g, type_scalar(I32), (double)rows);
    return random_op2(b, OP_mod, place, count);
}

// A table that trains, of which two or three indices each want rows, so that
// its gradient is the sum of what they scatter.
NodeId family_embedded(Random *b) {
    int64_t shape[] = {1 + random_draw(b, 9), 1 + random_draw(b, 17)};
    NodeId table = random_leaf(b, OP_param, F32, 2, shape);
    int64_t dim[] = {1 + random_draw(b, 3), 1 + random_draw(b, 6)};
    Type t = type_of(I32, 1 + (int)random_draw(b, 2), dim);
    NodeId sum = random_op2(b, OP_gather, table, rows_wanted(b, t, shape[0]));
    for (uint32_t more = 1 + random_draw(b, 2); more > 0; more--) {
        NodeId row =
            random_op2(b, OP_gather, table, rows_wanted(b, t, shape[0]));
        sum = random_op2(b, random_draw(b, 3) ? OP_add : OP_mul, sum, row);
    }
    return sum;
}

// The rows of a table, itself or computed, and the products of those with the
// table: an embedding that is tied to the head.
NodeId family_tied(Random *b) {
    int64_t shape[] = {1 + random_draw(b, 9), 1 + random_draw(b, 12)};
    NodeId table = random_leaf(b, OP_param, F32, 2, shape);
    if (random_draw(b, 2))
        table = random_op1(b, OP_tanh, table);
    int64_t rows = 1 + random_draw(b, 7);
    Type t = type_of(I32, 1, &rows);
    NodeId x = random_op2(b, OP_gather, table, rows_wanted(b, t, shape[0]));
    x = random_op1(b, OP_tanh, x);
    Attr attr[] = {attr_int(ATTR_ta, 0), attr_int(ATTR_tb, 1)};
    return random_contract(b, OP_matmul, x, table, 2, attr);
}

// Numbers that the model has.
static NodeId list(Random *b, int64_t count) {
    double number[64];
    for (int64_t i = 0; i < count; i++)
        number[i] = (double)random_draw(b, 33) / 16 - 1;
    return graph_vector(b->g, number, (int)count);
}

// Sine or cosine of the place along an axis, at a frequency for each channel,
// added to a value.
NodeId family_placed(Random *b) {
    enum { MAX_NUMBERS = 64 };
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank < 2)
        return NO_NODE;
    Type t = *random_type(b, x), places = type_of(I32, t.rank, t.dim);
    int64_t channels = t.dim[t.rank - 1];
    if (channels == 0 || channels > MAX_NUMBERS)
        return NO_NODE;
    int axis = (int)random_draw(b, (uint32_t)t.rank - 1);
    for (int i = 0; i < t.rank; i++)
        places.dim[i] = i == axis ? t.dim[i] : 1;
    NodeId place = graph_cast(b->g, graph_iota(b->g, places, axis), F32);
    NodeId angle = random_op2(b, OP_mul, place, list(b, channels));
    return random_op2(
        b, OP_add, x,
        random_op1(b, random_draw(b, 2) ? OP_sin : OP_cos, angle));
}

// Pairs of channels, in halves or side by side, that turn by their place along
// axis 1.
NodeId family_rotary(Random *b) {
    enum { MAX_PAIRS = 64 };
    Graph *g = b->g;
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank < 3)
        return NO_NODE;
    Type whole = *random_type(b, x), t = whole;
    int64_t pairs = t.dim[t.rank - 1] / 2;
    if (pairs < 1 || pairs > MAX_PAIRS || t.dim[t.rank - 1] % 2 != 0)
        return NO_NODE;
    int beside = (int)random_draw(b, 2), last = t.rank - 1 + beside;
    t.dim[t.rank - 1] = pairs;
    Type places = type_of(I32, t.rank, t.dim);
    for (int i = 0; i < t.rank; i++)
        places.dim[i] = i == 1 ? t.dim[i] : 1;
    NodeId place = graph_cast(g, graph_iota(g, places, 1), F32);
    NodeId angle = random_op2(b, OP_mul, place, list(b, pairs));
    if (angle == NO_NODE)
        return NO_NODE;
    int64_t half = beside ? 1 : pairs;
    int64_t low[MAX_RANK] = {0}, high[MAX_RANK] = {0};
    if (beside) {
        t.dim[t.rank++] = 2;
        x = graph_reshape(g, x, t.rank, t.dim);
        Type turned = *random_type(b, angle);
        turned.dim[turned.rank++] = 1;
        angle = graph_reshape(g, angle, turned.rank, turned.dim);
    }
    low[last] = half;
    NodeId first = graph_slice(g, x, high, low);
    NodeId second = graph_slice(g, x, low, high);
    NodeId cosine = random_op1(b, OP_cos, angle);
    NodeId sine = random_op1(b, OP_sin, angle);
    NodeId a = random_op2(b, OP_sub, random_op2(b, OP_mul, first, cosine),
                          random_op2(b, OP_mul, second, sine));
    NodeId z = random_op2(b, OP_add, random_op2(b, OP_mul, second, cosine),
                          random_op2(b, OP_mul, first, sine));
    if (a == NO_NODE || z == NO_NODE)
        return NO_NODE;
    Type along = {.dtype = I32, .rank = t.rank};
    for (int i = 0; i < t.rank; i++)
        along.dim[i] = i == last ? 2 * half : 1;
    NodeId end = graph_constant(g, type_scalar(I32), (double)half);
    NodeId before = random_op2(b, OP_lt, graph_iota(g, along, last), end);
    NodeId all = random_op3(b, OP_select, before, graph_pad(g, a, high, low),
                            graph_pad(g, z, low, high));
    return all == NO_NODE ? all : graph_reshape(g, all, whole.rank, whole.dim);
}

// ---- what is left out ----

// Dropout, as the front end has it.
static NodeId dropped(Random *b, NodeId x) {
    static const double share[] = {0.1, 0.5, 0.875};
    Type t = *random_type(b, x);
    double p = share[random_draw(b, 3)];
    int64_t count = type_count(&t);
    NodeId place = graph_iota(b->g, type_of(I32, 1, &count), 0);
    NodeId seed = random_run(b, "run.seed");
    NodeId step = random_run(b, "run.step");
    Attr attr[] = {attr_int(ATTR_stream, random_draw(b, 1000)),
                   attr_int(ATTR_words, 4)};
    NodeId drawn = random_add(b, (Node){.op = OP_uniform,
                                        .num_args = 3,
                                        .arg = (NodeId[]){seed, step, place},
                                        .num_attrs = 2,
                                        .attr = attr});
    if (drawn == NO_NODE)
        return NO_NODE;
    NodeId out = random_op2(b, OP_lt, graph_reshape(b->g, drawn, t.rank, t.dim),
                            random_number(b, p));
    NodeId more = random_op2(b, OP_mul, x, random_number(b, 1 / (1 - p)));
    return random_op3(b, OP_select, out, random_number(b, 0), more);
}

NodeId family_dropped(Random *b) {
    NodeId x = random_any(b, F32, -1);
    return x == NO_NODE ? x : dropped(b, x);
}

// ---- attention ----

typedef struct {
    int64_t samples, positions, channels, heads;
} Heads;

static NodeId product(Random *b, NodeId x, NodeId y, int tb) {
    Attr attr[] = {attr_int(ATTR_ta, 0), attr_int(ATTR_tb, tb)};
    return random_contract(b, OP_matmul, x, y, 2, attr);
}

// Rows [N*P,C] by a matrix that trains, to so many channels.
static NodeId projected(Random *b, NodeId rows, int64_t channels) {
    if (rows == NO_NODE)
        return NO_NODE;
    int64_t shape[] = {channels, random_type(b, rows)->dim[1]};
    return product(b, rows, random_leaf(b, OP_param, F32, 2, shape), 1);
}

static NodeId reordered(Random *b, NodeId x) {
    Attr order = attr_ints(ATTR_order, 4, (int64_t[]){0, 2, 1, 3});
    return random_with(b, OP_transpose, x, 1, &order);
}

// [N*P,C] as [N,heads,P,C/heads].
static NodeId split(Random *b, NodeId rows, const Heads *h) {
    int64_t dim[] = {h->samples, h->positions, h->heads,
                     h->channels / h->heads};
    if (rows == NO_NODE)
        return NO_NODE;
    return reordered(b, graph_reshape(b->g, rows, 4, dim));
}

// What comes later is not looked at.
static NodeId masked(Random *b, NodeId scores, int64_t positions) {
    Type t = type_of(I32, 2, (int64_t[]){positions, positions});
    NodeId seen =
        random_op2(b, OP_le, graph_iota(b->g, t, 1), graph_iota(b->g, t, 0));
    return random_op3(b, OP_select, seen, scores, random_number(b, -1e30));
}

static NodeId attended(Random *b, NodeId rows, const Heads *h) {
    NodeId query = split(b, projected(b, rows, h->channels), h);
    NodeId key = split(b, projected(b, rows, h->channels), h);
    NodeId value = split(b, projected(b, rows, h->channels), h);
    NodeId size = random_number(b, sqrt((double)(h->channels / h->heads)));
    NodeId scores = product(b, query, key, 1);
    scores = scores == NO_NODE ? scores : random_op2(b, OP_div, scores, size);
    if (random_draw(b, 2))
        scores = masked(b, scores, h->positions);
    if (scores == NO_NODE)
        return NO_NODE;
    NodeId shares = random_softmax(b, scores);
    if (shares != NO_NODE && random_draw(b, 3) == 0)
        shares = dropped(b, shares);
    NodeId all = reordered(b, product(b, shares, value, 0));
    return all == NO_NODE ? all
                          : graph_reshape(b->g, all, 2,
                                          (int64_t[]){h->samples * h->positions,
                                                      h->channels});
}

// Attention as one operation, which computes tiles, with heads of any size.
static NodeId tiled(Random *b, NodeId rows, const Heads *h) {
    int64_t heads = h->heads * (1 + random_draw(b, 2));
    int64_t size = random_draw(b, 2) ? INT64_C(1) << random_draw(b, 5)
                                     : 1 + random_draw(b, 12);
    int64_t dim[] = {h->samples, h->positions, (heads + 2 * h->heads) * size};
    NodeId qkv = projected(b, rows, dim[2]);
    bool drops = random_draw(b, 3) == 0;
    NodeId arg[] = {NO_NODE, random_run(b, "run.seed"),
                    random_run(b, "run.step")};
    Attr attr[6];
    int count = 0;
    if (qkv == NO_NODE)
        return NO_NODE;
    arg[0] = graph_reshape(b->g, qkv, 3, dim);
    if (random_draw(b, 2))
        attr[count++] = attr_int(ATTR_causal, 1);
    if (drops)
        attr[count++] = attr_float(ATTR_dropout, 0.25);
    attr[count++] = attr_int(ATTR_heads, heads);
    attr[count++] = attr_int(ATTR_kv_heads, h->heads);
    if (random_draw(b, 4) == 0)
        attr[count++] = attr_float(ATTR_scale, 0.5);
    if (drops)
        attr[count++] = attr_int(ATTR_stream, random_draw(b, 1000));
    NodeId y = random_add(b, (Node){.op = OP_attention,
                                    .num_args = drops ? 3 : 1,
                                    .arg = arg,
                                    .num_attrs = count,
                                    .attr = attr});
    return y == NO_NODE ? y
                        : graph_reshape(b->g, y, 2,
                                        (int64_t[]){h->samples * h->positions,
                                                    heads * size});
}

// Self-attention over all axes but the first and the last, with a residual.
NodeId family_attention(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank < 3)
        return NO_NODE;
    Type t = *random_type(b, x);
    Heads h = {t.dim[0], 1, t.dim[t.rank - 1], 1};
    for (int i = 1; i < t.rank - 1; i++)
        h.positions *= t.dim[i];
    int64_t scores = h.samples * h.positions * h.positions;
    if (type_count(&t) == 0 || h.channels > 24 || 2 * scores > b->max_elements)
        return NO_NODE;
    h.heads = h.channels % 2 == 0 ? 1 + random_draw(b, 2) : 1;
    int64_t rows[] = {h.samples * h.positions, h.channels};
    NodeId from = graph_reshape(b->g, random_op1(b, OP_tanh, x), 2, rows);
    NodeId y = random_draw(b, 2) ? tiled(b, from, &h) : attended(b, from, &h);
    if (y == NO_NODE || (y = projected(b, y, h.channels)) == NO_NODE)
        return NO_NODE;
    return random_op2(b, OP_add, x, graph_reshape(b->g, y, t.rank, t.dim));
}

// Heads of x that share keys and values in groups, those of x or of another
// sequence with as many samples.
NodeId family_grouped(Random *b) {
    Graph *g = b->g;
    NodeId x = random_any(b, F32, -1), other = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank < 3 ||
        type_count(random_type(b, x)) == 0)
        return NO_NODE;
    Type t = *random_type(b, x), m = *random_type(b, other);
    bool crosses = m.rank >= 3 && m.dim[0] == t.dim[0] && type_count(&m) > 0;
    if (!crosses)
        m = t;
    int64_t n = t.dim[0], c = t.dim[t.rank - 1], d = m.dim[m.rank - 1];
    int64_t places = type_count(&t) / (n * c), seen = type_count(&m) / (n * d);
    int64_t group = 2, kv = 1 + random_draw(b, 2), size = 1 + random_draw(b, 4);
    int64_t scored = n * kv * group * places * seen;
    if (2 * scored > b->max_elements || c > 24 || d > 24 ||
        type_count(&t) > b->max_elements || type_count(&m) > b->max_elements)
        return NO_NODE;
    NodeId rows = graph_reshape(g, random_op1(b, OP_tanh, x), 2,
                                (int64_t[]){n * places, c});
    NodeId memory = rows;
    if (crosses)
        memory = graph_reshape(g, random_op1(b, OP_tanh, other), 2,
                               (int64_t[]){n * seen, d});
    int64_t wide[] = {kv * group * size, c}, narrow[] = {kv * size, d};
    NodeId q = product(b, rows, random_leaf(b, OP_param, F32, 2, wide), 1);
    NodeId k = product(b, memory, random_leaf(b, OP_param, F32, 2, narrow), 1);
    NodeId v = product(b, memory, random_leaf(b, OP_param, F32, 2, narrow), 1);
    if (q == NO_NODE || k == NO_NODE || v == NO_NODE)
        return NO_NODE;
    Heads h = {n, seen, kv * size, kv};
    Attr order = attr_ints(ATTR_order, 5, (int64_t[]){0, 2, 3, 1, 4});
    int64_t heads[] = {n, places, kv, group, size};
    q = random_with(b, OP_transpose, graph_reshape(g, q, 5, heads), 1, &order);
    if (q == NO_NODE)
        return NO_NODE;
    q = graph_reshape(g, q, 4, (int64_t[]){n, kv, group * places, size});
    NodeId scores = product(b, q, split(b, k, &h), 1);
    NodeId root = random_number(b, sqrt((double)size));
    scores = random_op2(b, OP_div, scores, root);
    NodeId shares = scores == NO_NODE ? scores : random_softmax(b, scores);
    NodeId y = product(b, shares, split(b, v, &h), 0);
    if (y == NO_NODE)
        return NO_NODE;
    order = attr_ints(ATTR_order, 5, (int64_t[]){0, 3, 1, 2, 4});
    int64_t back[] = {n, kv, group, places, size};
    y = random_with(b, OP_transpose, graph_reshape(g, y, 5, back), 1, &order);
    int64_t merged[] = {n, places, wide[0]};
    return y == NO_NODE ? y : graph_reshape(g, y, 3, merged);
}
