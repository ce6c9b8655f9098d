// Families: one operation of each kind, or the few that go together.  Values
// are bounded, so that nothing overflows however long the chain.
#include "tests/graphs/random_graph.h"

enum { TRIES = 20 };

NodeId family_unary(Random *b) {
    static const Op op[] = {OP_neg,  OP_abs,     OP_relu, OP_tanh,
                            OP_tanh, OP_sigmoid, OP_cos,  OP_cdf};
    NodeId x = random_any(b, F32, -1);
    return x == NO_NODE ? x : random_op1(b, op[random_draw(b, 8)], x);
}

NodeId family_binary(Random *b) {
    static const Op op[] = {OP_add, OP_sub, OP_mul, OP_maximum, OP_minimum};
    for (int i = 0; i < TRIES; i++) {
        NodeId x = random_any(b, F32, -1), y = random_any(b, F32, -1);
        NodeId n = x == NO_NODE || y == NO_NODE
                       ? NO_NODE
                       : random_op2(b, op[random_draw(b, 5)], x, y);
        // Products of products would grow without end.
        if (n != NO_NODE && b->g->node[n].op == OP_mul)
            n = random_op1(b, OP_tanh, n);
        if (n != NO_NODE)
            return n;
    }
    return NO_NODE;
}

NodeId family_choice(Random *b) {
    NodeId x = random_any(b, F32, -1), y = random_any(b, F32, -1);
    if (x == NO_NODE || y == NO_NODE)
        return NO_NODE;
    NodeId less = random_op2(b, OP_lt, x, y);
    if (less == NO_NODE)
        return NO_NODE;
    return random_add(
        b,
        (Node){.op = OP_select, .num_args = 3, .arg = (NodeId[]){less, y, x}});
}

NodeId family_reduction(Random *b) {
    static const Op op[] = {OP_sum, OP_max, OP_var};
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank == 0)
        return NO_NODE;
    int rank = random_type(b, x)->rank, count = 0;
    int64_t axes[MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (random_draw(b, 2))
            axes[count++] = i;
    if (count == 0)
        axes[count++] = random_draw(b, (uint32_t)rank);
    Attr attr = attr_ints(ATTR_axes, count, axes);
    NodeId y = random_add(b, (Node){.op = op[random_draw(b, 3)],
                                    .num_args = 1,
                                    .arg = &x,
                                    .num_attrs = 1,
                                    .attr = &attr});
    return y == NO_NODE ? y : random_op1(b, OP_tanh, y);
}

NodeId family_best(Random *b) {
    NodeId x = random_any(b, F32, -1);
    return x == NO_NODE ? x : random_op1(b, OP_argmax, x);
}

NodeId family_pool(Random *b) {
    NodeId x = random_any(b, F32, 4);
    if (x == NO_NODE)
        return NO_NODE;
    int64_t window[] = {1 + random_draw(b, 3), 1 + random_draw(b, 3)};
    int64_t stride[] = {1 + random_draw(b, 3), 1 + random_draw(b, 3)};
    int64_t pad[] = {random_draw(b, (uint32_t)window[0]),
                     random_draw(b, (uint32_t)window[0]),
                     random_draw(b, (uint32_t)window[1]),
                     random_draw(b, (uint32_t)window[1])};
    Attr attr[] = {attr_ints(ATTR_pad, 4, pad),
                   attr_ints(ATTR_stride, 2, stride),
                   attr_ints(ATTR_window, 2, window)};
    Node n = {.op = random_draw(b, 2) ? OP_max_pool : OP_avg_pool,
              .num_args = 1,
              .arg = &x,
              .num_attrs = 3,
              .attr = attr};
    NodeId y = random_add(b, n);
    if (y == NO_NODE || b->source || random_draw(b, 2))
        return y;
    // The way back, as autodiff would write it.
    NodeId arg[2] = {NO_NODE, y};
    if (n.op == OP_max_pool) {
        n.op = OP_max_pool_index;
        arg[0] = random_add(b, n);
    }
    random_keep(b, y);
    return random_add(b, (Node){.op = n.op == OP_avg_pool ? OP_avg_pool_grad
                                                          : OP_max_pool_grad,
                                .type = random_type(b, x),
                                .num_args = n.op == OP_avg_pool ? 1 : 2,
                                .arg = n.op == OP_avg_pool ? arg + 1 : arg,
                                .num_attrs = 3,
                                .attr = attr});
}

NodeId family_resized(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank == 0)
        return NO_NODE;
    int rank = random_type(b, x)->rank;
    int64_t low[MAX_RANK], high[MAX_RANK];
    bool channels = random_draw(b, 3) == 0; // else only what comes before them
    for (int i = 0; i < rank; i++) {
        low[i] = i + 1 < rank || channels ? random_draw(b, 2) : 0;
        high[i] = i + 1 < rank || channels ? random_draw(b, 3) : 0;
    }
    if (random_draw(b, 4) == 0) { // in step with vectors
        low[rank - 1] = 4 * random_draw(b, 3);
        high[rank - 1] = 4 * random_draw(b, 5);
    }
    Attr attr[] = {attr_ints(ATTR_high, rank, high),
                   attr_ints(ATTR_low, rank, low)};
    return random_add(b, (Node){.op = random_draw(b, 2) ? OP_pad : OP_slice,
                                .num_args = 1,
                                .arg = &x,
                                .num_attrs = 2,
                                .attr = attr});
}

// Images that are data: no gradient passes what moves their pixels.
static NodeId data(Random *b) {
    NodeId x = random_any(b, F32, 4);
    return b->source ? random_op1(b, OP_stop_gradient, x) : x;
}

NodeId family_moved(Random *b) {
    static const char *const mode[] = {"zero", "edge", "reflect"};
    NodeId x = data(b);
    if (x == NO_NODE)
        return NO_NODE;
    const int64_t *images = random_type(b, x)->dim;
    if (random_draw(b, 2)) {
        NodeId by = random_leaf(b, OP_input, BOOL, 1, images);
        return random_op2(b, OP_flip, x, by);
    }
    // Tests shift by no more than 3, and reflect needs as many more pixels.
    bool large = images[1] > 3 && images[2] > 3;
    Attr attr = attr_text(ATTR_mode, mode[random_draw(b, large ? 3 : 2)]);
    NodeId down = random_leaf(b, OP_input, I32, 1, images);
    NodeId right = random_leaf(b, OP_input, I32, 1, images);
    return random_add(b, (Node){.op = OP_shift,
                                .num_args = 3,
                                .arg = (NodeId[]){x, down, right},
                                .num_attrs = 1,
                                .attr = &attr});
}

NodeId family_transposed(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank < 2)
        return NO_NODE;
    int rank = random_type(b, x)->rank;
    int64_t order[MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int at = (int)random_draw(b, (uint32_t)i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    Attr attr = attr_ints(ATTR_order, rank, order);
    return random_add(b, (Node){.op = OP_transpose,
                                .num_args = 1,
                                .arg = &x,
                                .num_attrs = 1,
                                .attr = &attr});
}

// Rows by an index, and half of the time what they are the gradient of.
NodeId family_gathered(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank == 0 ||
        random_type(b, x)->rank > 4)
        return NO_NODE;
    int64_t dim[] = {1 + random_draw(b, 5), 1 + random_draw(b, 3)};
    NodeId index = random_leaf(b, OP_input, I32, (int)random_draw(b, 3), dim);
    NodeId y = random_op2(b, OP_gather, x, index);
    if (y == NO_NODE || b->source || random_draw(b, 2))
        return y;
    random_keep(b, y);
    return random_add(b, (Node){.op = OP_gather_grad,
                                .type = random_type(b, x),
                                .num_args = 2,
                                .arg = (NodeId[]){y, index}});
}

NodeId family_taken(Random *b) {
    NodeId x = data(b);
    if (x == NO_NODE)
        return NO_NODE;
    int64_t images = random_type(b, x)->dim[0];
    int64_t height = 1 + random_draw(b, 7), width = 1 + random_draw(b, 7);
    int64_t pixels[] = {images, height, width}, columns[] = {images, width};
    bool each = random_draw(b, 2);
    NodeId y = random_leaf(b, OP_input, I32, each ? 3 : 2, pixels);
    NodeId z =
        random_leaf(b, OP_input, I32, each ? 3 : 2, each ? pixels : columns);
    return random_add(
        b, (Node){.op = OP_take, .num_args = 3, .arg = (NodeId[]){x, y, z}});
}

// The gradient of an image that was resized to the shape of a value.
NodeId family_collected(Random *b) {
    static const char *const mode[] = {"nearest", "bilinear"};
    NodeId x = random_any(b, F32, 4);
    if (x == NO_NODE || b->source)
        return NO_NODE;
    Type t = *random_type(b, x);
    Attr attr[] = {attr_text(ATTR_mode, mode[random_draw(b, 2)]),
                   attr_ints(ATTR_size, 2, &t.dim[1])};
    t.dim[1] = 1 + random_draw(b, 7);
    t.dim[2] = 1 + random_draw(b, 7);
    return random_add(b, (Node){.op = OP_resize_grad,
                                .type = &t,
                                .num_args = 1,
                                .arg = &x,
                                .num_attrs = 2,
                                .attr = attr});
}

// Dimensions merged or split in two.
NodeId family_view(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank == 0)
        return NO_NODE;
    Type t = *random_type(b, x), to = t;
    int at = (int)random_draw(b, (uint32_t)t.rank);
    if (random_draw(b, 2) && at + 1 < t.rank) {
        to.rank--;
        to.dim[at] *= t.dim[at + 1];
        for (int i = at + 1; i < to.rank; i++)
            to.dim[i] = t.dim[i + 1];
    } else if (t.rank < MAX_RANK) {
        int64_t part = t.dim[at] % 2 == 0 ? 2 : 1;
        to.rank++;
        for (int i = to.rank - 1; i > at; i--)
            to.dim[i] = t.dim[i - 1];
        to.dim[at] = part;
        to.dim[at + 1] = t.dim[at] / part;
    }
    return graph_reshape(b->g, x, to.rank, to.dim);
}

static NodeId contract(Random *b, Op op, NodeId x, NodeId y, int count,
                       const Attr *attr) {
    return random_op1(b, OP_tanh, random_contract(b, op, x, y, count, attr));
}

// A matrix or several by as many, each as it is or transposed.
NodeId family_product(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank < 2)
        return NO_NODE;
    Type t = *random_type(b, x);
    int ta = random_draw(b, 4) == 0, tb = (int)random_draw(b, 2);
    int64_t inner = t.dim[t.rank - (ta ? 2 : 1)],
            outer = 1 + random_draw(b, 12);
    t.dim[t.rank - (tb ? 1 : 2)] = inner;
    t.dim[t.rank - (tb ? 2 : 1)] = outer;
    if (type_count(&t) > b->max_elements)
        return NO_NODE;
    NodeId w = random_leaf(b, OP_param, F32, t.rank, t.dim);
    Attr attr[] = {attr_int(ATTR_ta, ta), attr_int(ATTR_tb, tb)};
    return contract(b, OP_matmul, x, w, 2, attr);
}

// Filters of any size that fits, also in groups and with holes.
NodeId family_convolution(Random *b) {
    NodeId x = random_any(b, F32, 4);
    if (x == NO_NODE)
        return NO_NODE;
    int64_t channels = random_type(b, x)->dim[3], groups = 1;
    if (random_draw(b, 4) == 0 && channels > 0)
        groups = random_draw(b, 2) && channels % 2 == 0 ? 2 : channels;
    int64_t shape[] = {groups * (1 + random_draw(b, groups > 1 ? 2 : 10)),
                       1 + random_draw(b, 3), 1 + random_draw(b, 3),
                       groups ? channels / groups : 0};
    int64_t pad[4], stride[2], dilation[2];
    for (int i = 0; i < 4; i++)
        pad[i] = random_draw(b, (uint32_t)shape[1 + i / 2]);
    for (int i = 0; i < 2; i++) {
        stride[i] = random_draw(b, 4) ? 1 : 2 + random_draw(b, 2);
        dilation[i] = random_draw(b, 6) ? 1 : 2;
    }
    NodeId w = random_leaf(b, OP_param, F32, 4, shape);
    Attr attr[] = {attr_ints(ATTR_dilation, 2, dilation),
                   attr_int(ATTR_groups, groups), attr_ints(ATTR_pad, 4, pad),
                   attr_ints(ATTR_stride, 2, stride)};
    return contract(b, OP_conv, x, w, 4, attr);
}

// A transposed convolution: the gradient of one whose result is x, of which the
// stride leaves some pixels open.
NodeId family_upsampled(Random *b) {
    NodeId x = random_any(b, F32, 4);
    if (x == NO_NODE || random_type(b, x)->dim[3] == 0)
        return NO_NODE;
    Type y = *random_type(b, x);
    int64_t channels = y.dim[3];
    int64_t groups = random_draw(b, 3)   ? 1
                     : channels % 2 == 0 ? 2
                                         : channels;
    int64_t each = 1 + random_draw(b, 5), one[] = {1, 1};
    int64_t pad[4] = {0}, stride[2];
    int64_t shape[] = {channels, 1 + random_draw(b, 4), 1 + random_draw(b, 4),
                       each};
    for (int i = 0; i < 2; i++) {
        stride[i] = 1 + random_draw(b, 3);
        pad[2 * i] = random_draw(b, (uint32_t)shape[1 + i]);
        y.dim[1 + i] = stride[i] * (y.dim[1 + i] - 1) + shape[1 + i] -
                       pad[2 * i] + random_draw(b, (uint32_t)stride[i]);
    }
    y.dim[3] = groups * each;
    if (y.dim[1] < 1 || y.dim[2] < 1 || type_count(&y) > b->max_elements)
        return NO_NODE;
    Attr attr[] = {attr_ints(ATTR_dilation, 2, one),
                   attr_int(ATTR_groups, groups), attr_ints(ATTR_pad, 4, pad),
                   attr_ints(ATTR_stride, 2, stride)};
    NodeId arg[] = {x, random_leaf(b, OP_param, F32, 4, shape)};
    return random_op1(b, OP_tanh,
                      random_add(b, (Node){.op = OP_conv_grad_input,
                                           .type = &y,
                                           .num_args = 2,
                                           .arg = arg,
                                           .num_attrs = 4,
                                           .attr = attr}));
}

// A convolution of sequences, which are images of one row; a causal one is
// padded at the beginning alone.
NodeId family_sequence(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank < 3 ||
        type_count(random_type(b, x)) == 0)
        return NO_NODE;
    Type t = *random_type(b, x);
    int64_t channels = t.dim[t.rank - 1], size = 1 + random_draw(b, 5);
    int64_t places = type_count(&t) / (t.dim[0] * channels), one[] = {1, 1};
    int64_t stride[] = {1, 1 + random_draw(b, 3)};
    int64_t groups = random_draw(b, 3) ? 1 : channels, causal = size - 1;
    int64_t pad[] = {0, 0, causal, 0}, same[] = {0, 0, size / 2, size / 2};
    int64_t shape[] = {groups * (1 + random_draw(b, groups > 1 ? 2 : 9)), 1,
                       size, channels / groups};
    Attr attr[] = {attr_ints(ATTR_dilation, 2, one),
                   attr_int(ATTR_groups, groups),
                   attr_ints(ATTR_pad, 4, random_draw(b, 2) ? pad : same),
                   attr_ints(ATTR_stride, 2, stride)};
    x = graph_reshape(b->g, x, 4, (int64_t[]){t.dim[0], 1, places, channels});
    NodeId w = random_leaf(b, OP_param, F32, 4, shape);
    NodeId y = contract(b, OP_conv, x, w, 4, attr);
    if (y == NO_NODE)
        return NO_NODE;
    t = *random_type(b, y);
    return graph_reshape(b->g, y, 3, (int64_t[]){t.dim[0], t.dim[2], t.dim[3]});
}

NodeId family_uniform(Random *b) {
    NodeId x = random_any(b, F32, -1);
    if (x == NO_NODE || random_type(b, x)->rank == 0)
        return NO_NODE;
    Type t = *random_type(b, x);
    t.dtype = I32;
    NodeId index = graph_iota(b->g, t, (int)random_draw(b, (uint32_t)t.rank));
    NodeId seed = graph_constant(b->g, type_scalar(I32), 7);
    NodeId epoch = graph_constant(b->g, type_scalar(I32), random_draw(b, 5));
    Attr attr = attr_int(ATTR_stream, random_draw(b, 1000));
    return random_add(b, (Node){.op = OP_uniform,
                                .num_args = 3,
                                .arg = (NodeId[]){seed, epoch, index},
                                .num_attrs = 1,
                                .attr = &attr});
}
