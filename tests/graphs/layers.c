// Layers: the patterns of nodes that layers and losses are made of, and the
// composite operations that stand for them.
#include "tests/graphs/random_graph.h"

// x less its mean, by its deviation: over rows as batch_norm has it, or over
// the last axis as layer_norm has it.
NodeId family_normalized(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank == 0)
        return NO_NODE;
    Type t = *random_type(b, x);
    int64_t axes[MAX_RANK] = {t.rank - 1};
    int count = 1;
    double elements = (double)t.dim[t.rank - 1];
    if (t.rank > 1 && random_draw(b, 2)) {
        elements = 1;
        for (count = 0; count < t.rank - 1; count++) {
            axes[count] = count;
            elements *= (double)t.dim[count];
        }
    }
    NodeId sum = graph_reduce(b->g, OP_sum, x, count, axes);
    NodeId mean = random_op2(b, OP_div, sum, random_number(b, elements));
    NodeId var = graph_reduce(b->g, OP_var, x, count, axes);
    NodeId safe = random_op2(b, OP_add, var, random_number(b, 0.01));
    NodeId away = random_op2(b, OP_sub, x, mean);
    return random_op2(b, OP_mul, away, random_op1(b, OP_rsqrt, safe));
}

// x by the root mean square of its last axis, times a scale for each channel.
NodeId family_rms(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank == 0 ||
        type_count(random_type(b, x)) == 0)
        return NO_NODE;
    int64_t last = random_type(b, x)->rank - 1;
    int64_t channels = random_type(b, x)->dim[last];
    NodeId square = random_op2(b, OP_mul, x, x);
    if (square == NO_NODE)
        return NO_NODE;
    NodeId sum = graph_reduce(b->g, OP_sum, square, 1, &last);
    NodeId mean =
        random_op2(b, OP_div, sum, random_number(b, (double)channels));
    NodeId safe = random_op2(b, OP_add, mean, random_number(b, 0.01));
    NodeId scale = random_leaf(b, OP_param, F32, 1, &channels);
    NodeId normal = random_op2(b, OP_mul, x, random_op1(b, OP_rsqrt, safe));
    return random_op2(b, OP_mul, normal, scale);
}

// Shares of a row that add up to 1.
static NodeId exponents(Random *b, NodeId x) {
    int64_t axis = random_type(b, x)->rank - 1;
    NodeId most = graph_reduce(b->g, OP_max, x, 1, &axis);
    NodeId power = random_op1(b, OP_exp, random_op2(b, OP_sub, x, most));
    if (power == NO_NODE)
        return NO_NODE;
    return random_op2(b, OP_div, power,
                      graph_reduce(b->g, OP_sum, power, 1, &axis));
}

NodeId family_exponents(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank == 0 ||
        type_count(random_type(b, x)) == 0)
        return NO_NODE;
    return exponents(b, x);
}

NodeId random_softmax(Random *b, NodeId x) {
    return b->source ? random_op1(b, OP_softmax, x) : exponents(b, x);
}

static NodeId batch_norm(Random *b, NodeId x) {
    int64_t channels = random_type(b, x)->dim[random_type(b, x)->rank - 1];
    Attr attr = attr_float(ATTR_eps, 0.01);
    NodeId scale = random_leaf(b, OP_param, F32, 1, &channels);
    NodeId bias = random_leaf(b, OP_param, F32, 1, &channels);
    return random_add(b, (Node){.op = OP_batch_norm,
                                .num_args = 3,
                                .arg = (NodeId[]){x, scale, bias},
                                .num_attrs = 1,
                                .attr = &attr});
}

static NodeId resize(Random *b, NodeId x) {
    int64_t size[] = {1 + random_draw(b, 7), 1 + random_draw(b, 7)};
    Attr attr[] = {
        attr_text(ATTR_mode, random_draw(b, 2) ? "nearest" : "bilinear"),
        attr_ints(ATTR_size, 2, size)};
    return random_with(b, OP_resize, x, 2, attr);
}

// Composite operations are only in what the front end makes.
NodeId family_composite(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || !b->source || random_type(b, x)->rank < 2)
        return NO_NODE;
    switch (random_draw(b, 5)) {
    case 0:
        return random_op1(b, OP_softmax, x);
    case 1:
        return random_op1(b, OP_tanh, random_op1(b, OP_log_softmax, x));
    case 2:
        return random_type(b, x)->rank == 4 ? resize(b, x) : NO_NODE;
    default:
        return batch_norm(b, x);
    }
}

// The largest of windows side by side, whose places take few bits.
static NodeId max_pool(Random *b, NodeId x) {
    int64_t window[] = {1 + random_draw(b, 3), 1 + random_draw(b, 3)};
    Attr attr[] = {attr_ints(ATTR_stride, 2, window),
                   attr_ints(ATTR_window, 2, window)};
    return random_with(b, OP_max_pool, x, 2, attr);
}

// A convolution of images x whose statistics a library could take, of a
// multiple of 8 channels, with batch_norm behind it: half of the time what went
// in is added, where it has as many.
static NodeId layer(Random *b, NodeId x) {
    int64_t channels = random_type(b, x)->dim[3], one[] = {1, 1};
    bool residual = channels % 8 == 0 && random_draw(b, 2);
    int64_t size = 1 + random_draw(b, 3);
    size |= residual; // so that its pixels stay as many
    int64_t shape[] = {residual ? channels : 8 + 8 * random_draw(b, 2), size,
                       size, channels};
    int64_t edge = size / 2, pad[] = {edge, edge, edge, edge};
    Attr attr[] = {attr_ints(ATTR_dilation, 2, one), attr_int(ATTR_groups, 1),
                   attr_ints(ATTR_pad, 4, pad), attr_ints(ATTR_stride, 2, one)};
    NodeId w = random_leaf(b, OP_param, F32, 4, shape);
    NodeId arg[] = {random_draw(b, 2) ? random_op1(b, OP_relu, x) : x, w};
    NodeId y = random_add(b, (Node){.op = OP_conv,
                                    .num_args = 2,
                                    .arg = arg,
                                    .num_attrs = 4,
                                    .attr = attr});
    y = y == NO_NODE ? y : batch_norm(b, y);
    return y != NO_NODE && residual ? random_op2(b, OP_add, x, y) : y;
}

// One or two such layers and what comes behind them: three in four times relu,
// a third of the time a pool.
NodeId family_layer(Random *b) {
    NodeId y = random_any(b, F32, 4);
    if (y == NO_NODE || !b->source || random_type(b, y)->dim[3] == 0)
        return NO_NODE;
    y = layer(b, y);
    if (y != NO_NODE && random_draw(b, 3) == 0)
        y = layer(b, y);
    if (y != NO_NODE && random_draw(b, 4))
        y = random_op1(b, OP_relu, y);
    return y == NO_NODE || random_draw(b, 3) ? y : max_pool(b, y);
}

// A convolution of each channel by itself, one or two filters for each, with
// strides and holes, and one over its channels behind it.
NodeId family_separable(Random *b) {
    NodeId x = random_any(b, F32, 4);
    if (x == NO_NODE || random_type(b, x)->dim[3] == 0)
        return NO_NODE;
    int64_t channels = random_type(b, x)->dim[3];
    int64_t size[] = {1 + random_draw(b, 5), 1 + random_draw(b, 5)};
    int64_t stride[] = {1 + random_draw(b, 3), 1 + random_draw(b, 3)};
    int64_t holes[] = {1 + random_draw(b, 2), 1 + random_draw(b, 2)};
    int64_t each = channels * (1 + random_draw(b, 2)), one[] = {1, 1};
    int64_t pad[4];
    for (int i = 0; i < 4; i++) // so that some place of the window is inside
        pad[i] =
            random_draw(b, (uint32_t)((size[i / 2] - 1) * holes[i / 2]) + 1);
    Attr deep[] = {attr_ints(ATTR_dilation, 2, holes),
                   attr_int(ATTR_groups, channels), attr_ints(ATTR_pad, 4, pad),
                   attr_ints(ATTR_stride, 2, stride)};
    Attr wide[] = {attr_ints(ATTR_dilation, 2, one), attr_int(ATTR_groups, 1),
                   attr_ints(ATTR_pad, 4, (int64_t[4]){0}),
                   attr_ints(ATTR_stride, 2, one)};
    NodeId w = random_leaf(b, OP_param, F32, 4,
                           (int64_t[]){each, size[0], size[1], 1});
    NodeId y = random_contract(b, OP_conv, x, w, 4, deep);
    if (y != NO_NODE && b->source && random_draw(b, 2))
        y = batch_norm(b, y);
    if (y == NO_NODE || random_draw(b, 3) == 0)
        return y == NO_NODE ? y : random_op1(b, OP_tanh, y);
    int64_t shape[] = {1 + random_draw(b, 17), 1, 1, each};
    NodeId z =
        random_contract(b, OP_conv, random_op1(b, OP_relu, y),
                        random_leaf(b, OP_param, F32, 4, shape), 4, wide);
    return random_op1(b, OP_tanh, z);
}

// The last batch of an evaluation: rows from a number on count for nothing, and
// the mean is that of the others.
NodeId family_tail(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank == 0)
        return NO_NODE;
    Type t = *random_type(b, x), rows = {.dtype = I32, .rank = t.rank};
    int64_t axes[MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        rows.dim[i] = i == 0 ? t.dim[0] : 1;
        axes[i] = i;
    }
    int64_t size = t.dim[0] > 0 ? t.dim[0] : 1;
    NodeId row = graph_iota(b->g, rows, 0);
    int64_t some = 1 + random_draw(b, (uint32_t)size);
    NodeId count = graph_constant(b->g, type_scalar(I32), (double)some);
    NodeId real = random_op2(b, OP_lt, row, count);
    NodeId kept = random_op3(b, OP_select, real, x, random_number(b, 0));
    if (kept == NO_NODE || random_draw(b, 2))
        return kept;
    NodeId sum = graph_reduce(b->g, OP_sum, kept, t.rank, axes);
    double of = (double)some * (double)type_count(&t) / (double)size;
    return random_op2(b, OP_div, sum, random_number(b, of > 0 ? of : 1));
}

// The mean of what rows [M,1] cost by the weights of their classes, without
// those of one class.
static NodeId weighed(Random *b, NodeId cost, NodeId label, int64_t classes) {
    enum { MOST = 64 };
    Graph *g = b->g;
    int64_t rows = random_type(b, label)->dim[0], both[] = {0, 1}, last = 1;
    double weight[MOST];
    if (classes < 1 || classes > MOST)
        return cost;
    for (int64_t k = 0; k < classes; k++)
        weight[k] = (double)(1 + random_draw(b, 8)) / 4;
    label = graph_reshape(g, label, 2, (int64_t[]){rows, 1});
    Type along = type_of(I32, 2, (int64_t[]){1, classes});
    NodeId own = random_op2(b, OP_eq, label, graph_iota(g, along, 1));
    NodeId table = graph_vector(g, weight, (int)classes);
    NodeId none = random_number(b, 0);
    NodeId of = random_op3(b, OP_select, own, table, none);
    NodeId ignored = graph_constant(g, type_scalar(I32), random_draw(b, 3));
    NodeId is = random_op2(b, OP_eq, label, ignored);
    if (of == NO_NODE || is == NO_NODE)
        return cost;
    of = random_op3(b, OP_select, is, none,
                    graph_reduce(g, OP_sum, of, 1, &last));
    NodeId part = random_op2(b, OP_mul, cost, of);
    if (part == NO_NODE)
        return cost;
    NodeId all = graph_reduce(g, OP_sum, of, 2, both);
    NodeId some = random_op2(b, OP_lt, none, all);
    NodeId by = random_op3(b, OP_select, some, all, random_number(b, 1));
    return random_op2(b, OP_div, graph_reduce(g, OP_sum, part, 2, both), by);
}

// What rows cost, against labels or against shares.
NodeId family_costs(Random *b) {
    NodeId x = random_any(b, F32, 2);
    if (x == NO_NODE || !b->source)
        return NO_NODE;
    Type t = *random_type(b, x);
    bool shares = random_draw(b, 3) == 0;
    // Labels are below the number of classes, which their name has.
    const char *stem = arena_format(b->g->arena, "label%d.", (int)t.dim[1]);
    Type type = type_of(shares ? F32 : I32, shares ? 2 : 1, t.dim);
    NodeId label = graph_leaf(b->g, OP_input, random_name(b, stem), type);
    Attr attr = attr_float(ATTR_smoothing, random_draw(b, 2) ? 0 : 0.2);
    NodeId cost = random_add(b, (Node){.op = OP_cross_entropy,
                                       .num_args = 2,
                                       .arg = (NodeId[]){x, label},
                                       .num_attrs = 1,
                                       .attr = &attr});
    return cost == NO_NODE || shares || random_draw(b, 2)
               ? cost
               : weighed(b, cost, label, t.dim[1]);
}
