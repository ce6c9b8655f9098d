// Random graphs.
//
// A graph grows node by node.  Operands are drawn from what is there, the newer
// the likelier, and an operation whose shape rule refuses them is left out.
// Values are bounded, so that nothing overflows however long the chain.
#include "tests/passes/graphs.h"

#include <assert.h>

enum { MOST_ELEMENTS = 2000, TRIES = 20 };

typedef struct {
    Graph *g;
    uint64_t state;
    NodeId *pick; // what operands are drawn from
    int count;
} Garden;

// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
// generators, scrambled").
static uint32_t draw(Garden *b, uint32_t below) {
    b->state ^= b->state >> 12;
    b->state ^= b->state << 25;
    b->state ^= b->state >> 27;
    return (uint32_t)(b->state * UINT64_C(0x2545F4914F6CDD1D) >> 33) % below;
}

static Type type_at(const Garden *b, NodeId n) {
    return b->g->node[n].type;
}

static NodeId keep(Garden *b, NodeId n) {
    if (n != NO_NODE)
        b->pick[b->count++] = n;
    return n;
}

// Adds n if its operands allow it and its value stays small.
static NodeId plant(Garden *b, Node n) {
    Type type = n.type;
    n.group = -1;
    if (type_infer(b->g, &n, &type) != NULL ||
        type_count(type) > MOST_ELEMENTS || type_count(type) == 0)
        return NO_NODE;
    return graph_add(b->g, n);
}

static NodeId plant1(Garden *b, Op op, NodeId x) {
    return plant(b, (Node){.op = op, .num_args = 1, .arg = &x});
}

static NodeId plant2(Garden *b, Op op, NodeId x, NodeId y) {
    return plant(b, (Node){.op = op, .num_args = 2, .arg = (NodeId[]){x, y}});
}

// A value of this type and rank (-1: any), or NO_NODE.
static NodeId any(Garden *b, DType dtype, int rank) {
    for (int i = 0; i < TRIES; i++) {
        int back = (int)draw(b, 2) ? 12 : b->count;
        int first = b->count > back ? b->count - back : 0;
        NodeId n = b->pick[first + (int)draw(b, (uint32_t)(b->count - first))];
        if (type_at(b, n).dtype == dtype &&
            (rank < 0 || type_at(b, n).rank == rank))
            return n;
    }
    return NO_NODE;
}

static const char *name(Garden *b, const char *stem) {
    return arena_format(b->g->arena, "%s%u", stem, b->g->count);
}

static NodeId leaf(Garden *b, Op op, DType dtype, int rank,
                   const int64_t *dim) {
    return keep(
        b, graph_leaf(b->g, op, name(b, "leaf"), type_of(dtype, rank, dim)));
}

// ---- one operation of each family ----

static NodeId unary(Garden *b) {
    static const Op op[] = {OP_neg,  OP_abs,     OP_relu, OP_tanh,
                            OP_tanh, OP_sigmoid, OP_cos,  OP_erf};
    NodeId x = any(b, F32, -1);
    return x == NO_NODE ? x : plant1(b, op[draw(b, 8)], x);
}

static NodeId binary(Garden *b) {
    static const Op op[] = {OP_add, OP_sub, OP_mul, OP_maximum, OP_minimum};
    for (int i = 0; i < TRIES; i++) {
        NodeId x = any(b, F32, -1), y = any(b, F32, -1);
        NodeId n = x == NO_NODE || y == NO_NODE
                       ? NO_NODE
                       : plant2(b, op[draw(b, 5)], x, y);
        // Products of products would grow without end.
        if (n != NO_NODE && b->g->node[n].op == OP_mul)
            n = plant1(b, OP_tanh, n);
        if (n != NO_NODE)
            return n;
    }
    return NO_NODE;
}

static NodeId choice(Garden *b) {
    NodeId x = any(b, F32, -1), y = any(b, F32, -1);
    if (x == NO_NODE || y == NO_NODE)
        return NO_NODE;
    NodeId less = plant2(b, OP_lt, x, y);
    if (less == NO_NODE)
        return NO_NODE;
    return plant(
        b,
        (Node){.op = OP_select, .num_args = 3, .arg = (NodeId[]){less, y, x}});
}

static NodeId reduction(Garden *b) {
    static const Op op[] = {OP_sum, OP_max, OP_var};
    NodeId x = any(b, F32, -1);
    if (x == NO_NODE || type_at(b, x).rank == 0)
        return NO_NODE;
    int rank = type_at(b, x).rank, count = 0;
    int64_t axes[MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (draw(b, 2))
            axes[count++] = i;
    if (count == 0)
        axes[count++] = draw(b, (uint32_t)rank);
    Attr attr = attr_ints(ATTR_axes, count, axes);
    NodeId y = plant(b, (Node){.op = op[draw(b, 3)],
                               .num_args = 1,
                               .arg = &x,
                               .num_attrs = 1,
                               .attr = &attr});
    return y == NO_NODE ? y : plant1(b, OP_tanh, y);
}

static NodeId best(Garden *b) {
    NodeId x = any(b, F32, -1);
    return x == NO_NODE ? x : plant1(b, OP_argmax, x);
}

static NodeId pool(Garden *b) {
    NodeId x = any(b, F32, 4);
    if (x == NO_NODE)
        return NO_NODE;
    int64_t window[] = {1 + draw(b, 3), 1 + draw(b, 3)};
    int64_t stride[] = {1 + draw(b, 3), 1 + draw(b, 3)};
    int64_t pad[] = {draw(b, (uint32_t)window[0]), draw(b, (uint32_t)window[0]),
                     draw(b, (uint32_t)window[1]),
                     draw(b, (uint32_t)window[1])};
    Attr attr[] = {attr_ints(ATTR_pad, 4, pad),
                   attr_ints(ATTR_stride, 2, stride),
                   attr_ints(ATTR_window, 2, window)};
    Node n = {.op = draw(b, 2) ? OP_max_pool : OP_avg_pool,
              .num_args = 1,
              .arg = &x,
              .num_attrs = 3,
              .attr = attr};
    NodeId y = plant(b, n);
    if (y == NO_NODE || draw(b, 2))
        return y;
    // The way back, as autodiff would write it.
    NodeId arg[2] = {NO_NODE, y};
    if (n.op == OP_max_pool) {
        n.op = OP_max_pool_index;
        arg[0] = plant(b, n);
    }
    keep(b, y);
    return plant(b, (Node){.op = n.op == OP_avg_pool ? OP_avg_pool_grad
                                                     : OP_max_pool_grad,
                           .type = type_at(b, x),
                           .num_args = n.op == OP_avg_pool ? 1 : 2,
                           .arg = n.op == OP_avg_pool ? arg + 1 : arg,
                           .num_attrs = 3,
                           .attr = attr});
}

static NodeId resized(Garden *b) {
    NodeId x = any(b, F32, -1);
    if (x == NO_NODE || type_at(b, x).rank == 0)
        return NO_NODE;
    int rank = type_at(b, x).rank;
    int64_t low[MAX_RANK], high[MAX_RANK];
    bool channels = draw(b, 3) == 0; // else only what comes before them
    for (int i = 0; i < rank; i++) {
        low[i] = i + 1 < rank || channels ? draw(b, 2) : 0;
        high[i] = i + 1 < rank || channels ? draw(b, 3) : 0;
    }
    if (draw(b, 4) == 0) { // in step with vectors
        low[rank - 1] = 4 * draw(b, 3);
        high[rank - 1] = 4 * draw(b, 5);
    }
    Attr attr[] = {attr_ints(ATTR_high, rank, high),
                   attr_ints(ATTR_low, rank, low)};
    return plant(b, (Node){.op = draw(b, 2) ? OP_pad : OP_slice,
                           .num_args = 1,
                           .arg = &x,
                           .num_attrs = 2,
                           .attr = attr});
}

static NodeId moved(Garden *b) {
    static const char *const mode[] = {"zero", "edge", "reflect"};
    NodeId x = any(b, F32, 4);
    if (x == NO_NODE)
        return NO_NODE;
    const int64_t *images = type_at(b, x).dim;
    if (draw(b, 2)) {
        NodeId by = leaf(b, OP_input, BOOL, 1, images);
        return plant2(b, OP_flip, x, by);
    }
    // Tests shift by no more than 3, and reflect needs as many more pixels.
    bool large = images[1] > 3 && images[2] > 3;
    Attr attr = attr_text(ATTR_mode, mode[draw(b, large ? 3 : 2)]);
    NodeId down = leaf(b, OP_input, I32, 1, images);
    NodeId right = leaf(b, OP_input, I32, 1, images);
    return plant(b, (Node){.op = OP_shift,
                           .num_args = 3,
                           .arg = (NodeId[]){x, down, right},
                           .num_attrs = 1,
                           .attr = &attr});
}

static NodeId transposed(Garden *b) {
    NodeId x = any(b, F32, -1);
    if (x == NO_NODE || type_at(b, x).rank < 2)
        return NO_NODE;
    int rank = type_at(b, x).rank;
    int64_t order[MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int at = (int)draw(b, (uint32_t)i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    Attr attr = attr_ints(ATTR_order, rank, order);
    return plant(b, (Node){.op = OP_transpose,
                           .num_args = 1,
                           .arg = &x,
                           .num_attrs = 1,
                           .attr = &attr});
}

// Rows by an index, and half of the time what they are the gradient of.
static NodeId gathered(Garden *b) {
    NodeId x = any(b, F32, -1);
    if (x == NO_NODE || type_at(b, x).rank == 0 || type_at(b, x).rank > 4)
        return NO_NODE;
    int64_t dim[] = {1 + draw(b, 5), 1 + draw(b, 3)};
    NodeId index = leaf(b, OP_input, I32, (int)draw(b, 3), dim);
    NodeId y = plant2(b, OP_gather, x, index);
    if (y == NO_NODE || draw(b, 2))
        return y;
    keep(b, y);
    return plant(b, (Node){.op = OP_gather_grad,
                           .type = type_at(b, x),
                           .num_args = 2,
                           .arg = (NodeId[]){y, index}});
}

static NodeId taken(Garden *b) {
    NodeId x = any(b, F32, 4);
    if (x == NO_NODE)
        return NO_NODE;
    int64_t rows[] = {type_at(b, x).dim[0], 1 + draw(b, 7)};
    int64_t columns[] = {type_at(b, x).dim[0], 1 + draw(b, 7)};
    NodeId y = leaf(b, OP_input, I32, 2, rows);
    NodeId z = leaf(b, OP_input, I32, 2, columns);
    return plant(
        b, (Node){.op = OP_take, .num_args = 3, .arg = (NodeId[]){x, y, z}});
}

// The gradient of an image that was resized to the shape of a value.
static NodeId collected(Garden *b) {
    static const char *const mode[] = {"nearest", "bilinear"};
    NodeId x = any(b, F32, 4);
    if (x == NO_NODE)
        return NO_NODE;
    Type t = type_at(b, x);
    Attr attr[] = {attr_text(ATTR_mode, mode[draw(b, 2)]),
                   attr_ints(ATTR_size, 2, &t.dim[1])};
    t.dim[1] = 1 + draw(b, 7);
    t.dim[2] = 1 + draw(b, 7);
    return plant(b, (Node){.op = OP_resize_grad,
                           .type = t,
                           .num_args = 1,
                           .arg = &x,
                           .num_attrs = 2,
                           .attr = attr});
}

// Dimensions merged or split in two.
static NodeId view(Garden *b) {
    NodeId x = any(b, F32, -1);
    if (x == NO_NODE || type_at(b, x).rank == 0)
        return NO_NODE;
    Type t = type_at(b, x), to = t;
    int at = (int)draw(b, (uint32_t)t.rank);
    if (draw(b, 2) && at + 1 < t.rank) {
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

// A library call on x and a weight of this shape, in f32 or in act.
static NodeId contract(Garden *b, Op op, NodeId x, int rank,
                       const int64_t *shape, Attr attr) {
    NodeId w = leaf(b, OP_param, F32, rank, shape);
    DType dtype = draw(b, 2) ? ACT : F32;
    NodeId arg[] = {graph_cast(b->g, x, dtype), graph_cast(b->g, w, dtype)};
    NodeId y = plant(b, (Node){.op = op,
                               .num_args = 2,
                               .arg = arg,
                               .num_attrs = 1,
                               .attr = &attr});
    return y == NO_NODE ? y : plant1(b, OP_tanh, graph_cast(b->g, y, F32));
}

static NodeId product(Garden *b) {
    NodeId x = any(b, F32, -1);
    if (x == NO_NODE || type_at(b, x).rank < 2)
        return NO_NODE;
    Type t = type_at(b, x);
    t.dim[t.rank - 2] = 1 + draw(b, 12);
    return contract(b, OP_matmul, x, t.rank, t.dim, attr_int(ATTR_tb, 1));
}

static NodeId convolution(Garden *b) {
    static const int64_t pad[] = {1, 1, 1, 1};
    NodeId x = any(b, F32, 4);
    if (x == NO_NODE)
        return NO_NODE;
    int64_t shape[] = {1 + draw(b, 10), 3, 3, type_at(b, x).dim[3]};
    return contract(b, OP_conv, x, 4, shape, attr_ints(ATTR_pad, 4, pad));
}

static NodeId random(Garden *b) {
    NodeId x = any(b, F32, -1);
    if (x == NO_NODE || type_at(b, x).rank == 0)
        return NO_NODE;
    Type t = type_at(b, x);
    t.dtype = I32;
    NodeId index = graph_iota(b->g, t, (int)draw(b, (uint32_t)t.rank));
    NodeId seed = graph_constant(b->g, type_scalar(I32), 7);
    NodeId epoch = graph_constant(b->g, type_scalar(I32), draw(b, 5));
    Attr attr = attr_int(ATTR_stream, draw(b, 1000));
    return plant(b, (Node){.op = OP_uniform,
                           .num_args = 3,
                           .arg = (NodeId[]){seed, epoch, index},
                           .num_attrs = 1,
                           .attr = &attr});
}

// ---- the whole ----

static void plant_leaves(Garden *b) {
    static const int64_t channels[] = {1, 3, 8, 10, 17, 24};
    int64_t n = 1 + draw(b, 3), c = channels[draw(b, 6)];
    int64_t image[] = {n, 1 + draw(b, 6), 1 + draw(b, 6), c};
    leaf(b, OP_input, F32, 4, image);
    leaf(b, OP_input, F32, 4, image);
    leaf(b, OP_input, F32, 2, (int64_t[]){n, c});
    leaf(b, OP_param, F32, 1, &c);
    leaf(b, OP_param, F32, 1, &c);
    leaf(b, OP_state, F32, 0, NULL);
    keep(b, graph_constant(b->g, type_scalar(F32), 0.5));
}

typedef NodeId Family(Garden *b);

static void grow(Garden *b, int steps) {
    static Family *const family[] = {unary,      unary,    unary,   binary,
                                     binary,     binary,   choice,  reduction,
                                     reduction,  pool,     resized, convolution,
                                     moved,      view,     product, random,
                                     transposed, gathered, taken,   collected};
    enum { FAMILIES = sizeof family / sizeof *family };
    for (int i = 0; i < steps; i++)
        keep(b, family[draw(b, FAMILIES)](b));
    keep(b, best(b));
}

// Params and states follow values of their shape, and scalars count.
static void plant_updates(Garden *b) {
    NodeId count = b->g->count;
    NodeId rate = graph_constant(b->g, type_scalar(F32), 0.1);
    for (NodeId n = 0; n < count; n++) {
        Op op = b->g->node[n].op;
        if ((op != OP_param && op != OP_state) || draw(b, 3) == 0)
            continue;
        NodeId value = n;
        for (int i = 0; i < b->count && value == n; i++) {
            NodeId by = b->pick[b->count - 1 - i];
            if (by > n && type_equal(type_at(b, by), type_at(b, n)))
                value = by;
        }
        NodeId step = graph_op2(b->g, OP_mul, value, rate);
        graph_assign(b->g, n, graph_op2(b->g, OP_sub, n, step));
    }
}

static void plant_outputs(Garden *b) {
    uint32_t *uses = graph_uses(b->g, b->g->arena);
    NodeId count = b->g->count, checked[4];
    int num_checked = 0;
    for (NodeId n = 0; n < count; n++) {
        unsigned facts = op_info[b->g->node[n].op].facts;
        if ((facts & (LEAF | EFFECT)) || uses[n] > 0)
            continue;
        Attr attr = attr_text(ATTR_name, name(b, "out"));
        graph_add(b->g, (Node){.op = OP_output,
                               .num_args = 1,
                               .arg = &n,
                               .num_attrs = 1,
                               .attr = &attr,
                               .group = -1});
        if (num_checked < 4 && dtype_float(type_at(b, n).dtype))
            checked[num_checked++] = n;
    }
    if (num_checked == 0)
        return;
    NodeId finite = graph_add(b->g, (Node){.op = OP_all_finite,
                                           .num_args = num_checked,
                                           .arg = checked,
                                           .group = -1});
    NodeId state = graph_state(b->g, "finite", STATE_RUN, type_scalar(F32), 0);
    graph_assign(b->g, state, finite);
}

Graph *random_graph(Arena *a, uint32_t seed, int steps) {
    Garden b = {.g = graph_new(a, "train"),
                .state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15),
                .pick = ARENA_ARRAY(a, 4 * (size_t)steps + 16, NodeId)};
    b.g->facts = PRIMITIVE | TYPED | BACKWARD | UPDATES;
    b.g->act = F32;
    plant_leaves(&b);
    grow(&b, steps);
    plant_updates(&b);
    plant_outputs(&b);
    assert(graph_verify(b.g, a) == NULL);
    return b.g;
}
