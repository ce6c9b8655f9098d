// Gradients: one rule for each operation, named in ops.def.
//
// A rule has y = op(x0, x1, ...) and dy, and gives each operand that trains its
// part of the gradient.  It may give a value of y's shape to an operand that
// was broadcast: give sums it over the axes that were stretched.  Where the
// derivative jumps, the rules follow PyTorch: relu and abs give 0 at 0,
// maximum and minimum halve at a tie, max shares equally, max_pool takes the
// first.
#include "passes/gradients.h"

#include "passes/composite.h"

#include <stdio.h>
#include <stdlib.h>

#define GRAD(rule) static GradRule grad_##rule;
#include "ir/ops.def"

static NodeId x(const Backward *b, int i) {
    return b->node.arg[i];
}

static const Type *type_at(const Backward *b, NodeId n) {
    return b->g->node[n].type;
}

static bool wants(const Backward *b, int i) {
    return b->trains[x(b, i)];
}

static NodeId number(Backward *b, double value) {
    return graph_number(b->g, value);
}

static NodeId op1(Backward *b, Op op, NodeId a) {
    return graph_op1(b->g, op, a);
}

static NodeId op2(Backward *b, Op op, NodeId a, NodeId c) {
    return graph_op2(b->g, op, a, c);
}

static NodeId choose(Backward *b, NodeId condition, NodeId yes, NodeId no) {
    return graph_op3(b->g, OP_select, condition, yes, no);
}

static NodeId stretch(Backward *b, NodeId a, Type to) {
    to.dtype = type_at(b, a)->dtype;
    return graph_broadcast(b->g, a, &to);
}

// Sums a over the axes along which `to` was stretched to a's shape.
static NodeId shrink(Backward *b, NodeId a, Type to) {
    Type from = *type_at(b, a);
    int64_t axes[MAX_RANK];
    int count = 0;
    for (int i = 0; i < from.rank; i++) {
        int j = i - (from.rank - to.rank);
        if (from.dim[i] != 1 && (j < 0 || to.dim[j] == 1))
            axes[count++] = i;
    }
    if (count > 0)
        a = graph_reduce(b->g, OP_sum, a, count, axes);
    if (!type_has_shape(type_at(b, a), &to))
        a = graph_reshape(b->g, a, to.rank, to.dim);
    return a;
}

// Adds to the gradient of operand i.
static void give(Backward *b, int i, NodeId value) {
    NodeId to = x(b, i);
    value = shrink(b, value, *type_at(b, to));
    NodeId old = b->grad[to];
    b->grad[to] = old == NO_NODE ? value : op2(b, OP_add, old, value);
}

// Elements of operand i for each element of y.
static double reduced(const Backward *b, int i) {
    return (double)type_count(type_at(b, x(b, i))) /
           (double)type_count(b->node.type);
}

// A node of the given operation with this node's attributes.
static NodeId with_attributes(Backward *b, Op op, Type type, int num_args,
                              const NodeId *arg) {
    return graph_add(b->g, (Node){.op = op,
                                  .type = &type,
                                  .num_args = num_args,
                                  .num_attrs = b->node.num_attrs,
                                  .arg = arg,
                                  .attr = b->node.attr,
                                  .group = -1});
}

// ---- operations without a gradient ----

// Leaves have no operands.  Other operations are added by autodiff or after it,
// move elements of a data set, or compute starting values.
static void grad_none(Backward *b) {
    if (b->node.num_args == 0)
        return;
    fprintf(stderr,
            "sinter: internal error: autodiff: %%%u: %s has no gradient\n",
            (unsigned)b->id, op_info[b->node.op].name);
    abort();
}

// Constant wherever it has a derivative.
static void grad_zero(Backward *b) {
    (void)b;
}

// ---- pointwise, one operand ----

static void grad_neg(Backward *b) {
    give(b, 0, op1(b, OP_neg, b->dy));
}

static void grad_abs(Backward *b) {
    NodeId zero = number(b, 0);
    NodeId right = choose(b, op2(b, OP_eq, x(b, 0), zero), zero, b->dy);
    NodeId left = op1(b, OP_neg, b->dy);
    give(b, 0, choose(b, op2(b, OP_lt, x(b, 0), zero), left, right));
}

static void grad_exp(Backward *b) {
    give(b, 0, op2(b, OP_mul, b->dy, b->id));
}

static void grad_log(Backward *b) {
    give(b, 0, op2(b, OP_div, b->dy, x(b, 0)));
}

static void grad_sqrt(Backward *b) {
    NodeId half = op2(b, OP_mul, b->dy, number(b, 0.5));
    give(b, 0, op2(b, OP_div, half, b->id));
}

// y = x^-1/2, so dx = -1/2 y^3 dy.
static void grad_rsqrt(Backward *b) {
    NodeId cube = op2(b, OP_mul, b->id, op2(b, OP_mul, b->id, b->id));
    NodeId half = op2(b, OP_mul, b->dy, number(b, -0.5));
    give(b, 0, op2(b, OP_mul, half, cube));
}

static void grad_cos(Backward *b) {
    NodeId slope = op1(b, OP_neg, op1(b, OP_sin, x(b, 0)));
    give(b, 0, op2(b, OP_mul, b->dy, slope));
}

static void grad_sin(Backward *b) {
    give(b, 0, op2(b, OP_mul, b->dy, op1(b, OP_cos, x(b, 0))));
}

static void grad_tanh(Backward *b) {
    NodeId square = op2(b, OP_mul, b->id, b->id);
    NodeId slope = op2(b, OP_sub, number(b, 1), square);
    give(b, 0, op2(b, OP_mul, b->dy, slope));
}

static void grad_cdf(Backward *b) {
    give(b, 0, op2(b, OP_mul, b->dy, op1(b, OP_pdf, x(b, 0))));
}

static void grad_pdf(Backward *b) {
    NodeId slope = op1(b, OP_neg, op2(b, OP_mul, x(b, 0), b->id));
    give(b, 0, op2(b, OP_mul, b->dy, slope));
}

static void grad_sigmoid(Backward *b) {
    NodeId rest = op2(b, OP_sub, number(b, 1), b->id);
    give(b, 0, op2(b, OP_mul, b->dy, op2(b, OP_mul, b->id, rest)));
}

// From y, so that x need not be kept.  A NaN lets the gradient pass and shows.
static void grad_relu(Backward *b) {
    NodeId zero = number(b, 0);
    give(b, 0, choose(b, op2(b, OP_le, b->id, zero), zero, b->dy));
}

static void grad_cast(Backward *b) {
    DType to = type_at(b, x(b, 0))->dtype;
    if (dtype_float(to))
        give(b, 0, graph_cast(b->g, b->dy, to));
}

static void grad_broadcast(Backward *b) {
    give(b, 0, b->dy);
}

// ---- pointwise, two operands and three ----

static void grad_add(Backward *b) {
    for (int i = 0; i < 2; i++)
        if (wants(b, i))
            give(b, i, b->dy);
}

static void grad_sub(Backward *b) {
    if (wants(b, 0))
        give(b, 0, b->dy);
    if (wants(b, 1))
        give(b, 1, op1(b, OP_neg, b->dy));
}

static void grad_mul(Backward *b) {
    if (x(b, 0) == x(b, 1)) {
        NodeId twice = op2(b, OP_mul, b->dy, number(b, 2));
        give(b, 0, op2(b, OP_mul, twice, x(b, 0)));
        return;
    }
    for (int i = 0; i < 2; i++)
        if (wants(b, i))
            give(b, i, op2(b, OP_mul, b->dy, x(b, 1 - i)));
}

// d(x0 / x1) = dx0 / x1 - y / x1 dx1.
static void grad_div(Backward *b) {
    if (wants(b, 0))
        give(b, 0, op2(b, OP_div, b->dy, x(b, 1)));
    if (wants(b, 1)) {
        NodeId slope = op2(b, OP_div, b->id, x(b, 1));
        give(b, 1, op1(b, OP_neg, op2(b, OP_mul, b->dy, slope)));
    }
}

// The gradient goes to the operand that is chosen, in halves at a tie; loses
// tells whether its first operand is not the one.
static void give_chosen(Backward *b, int i, NodeId loses) {
    NodeId half = op2(b, OP_mul, b->dy, number(b, 0.5));
    NodeId tie = op2(b, OP_eq, x(b, 0), x(b, 1));
    NodeId rest = choose(b, tie, half, b->dy);
    give(b, i, choose(b, loses, number(b, 0), rest));
}

static void grad_maximum(Backward *b) {
    for (int i = 0; i < 2; i++)
        if (wants(b, i))
            give_chosen(b, i, op2(b, OP_lt, x(b, i), x(b, 1 - i)));
}

static void grad_minimum(Backward *b) {
    for (int i = 0; i < 2; i++)
        if (wants(b, i))
            give_chosen(b, i, op2(b, OP_lt, x(b, 1 - i), x(b, i)));
}

static void grad_select(Backward *b) {
    NodeId zero = number(b, 0);
    if (wants(b, 1))
        give(b, 1, choose(b, x(b, 0), b->dy, zero));
    if (wants(b, 2))
        give(b, 2, choose(b, x(b, 0), zero, b->dy));
}

// ---- reductions ----

static void grad_sum(Backward *b) {
    give(b, 0, stretch(b, b->dy, *type_at(b, x(b, 0))));
}

static void grad_max(Backward *b) {
    const Attr *axes = node_attr(&b->node, ATTR_axes);
    NodeId largest = op2(b, OP_eq, x(b, 0), b->id);
    NodeId ties = graph_reduce(b->g, OP_sum, graph_cast(b->g, largest, F32),
                               axes->count, axes->ints);
    NodeId share = op2(b, OP_div, b->dy, ties);
    give(b, 0, choose(b, largest, share, number(b, 0)));
}

// d var = 2 / n * (x - mean) dx.
static void grad_var(Backward *b) {
    const Attr *axes = node_attr(&b->node, ATTR_axes);
    double count = reduced(b, 0);
    NodeId sum = graph_reduce(b->g, OP_sum, x(b, 0), axes->count, axes->ints);
    NodeId mean = op2(b, OP_div, sum, number(b, count));
    NodeId scale = op2(b, OP_mul, b->dy, number(b, 2 / count));
    give(b, 0, op2(b, OP_mul, op2(b, OP_sub, x(b, 0), mean), scale));
}

// ---- elements moved without arithmetic ----

static void grad_reshape(Backward *b) {
    Type type = *type_at(b, x(b, 0));
    give(b, 0, graph_reshape(b->g, b->dy, type.rank, type.dim));
}

static void grad_pad(Backward *b) {
    give(b, 0, with_attributes(b, OP_slice, (Type){0}, 1, &b->dy));
}

static void grad_slice(Backward *b) {
    give(b, 0, with_attributes(b, OP_pad, (Type){0}, 1, &b->dy));
}

// The axis of the result that is the operand's axis i.
static void grad_transpose(Backward *b) {
    const Attr *order = node_attr(&b->node, ATTR_order);
    int64_t back[MAX_RANK];
    for (int i = 0; i < order->count; i++)
        back[order->ints[i]] = i;
    give(b, 0, graph_transpose(b->g, b->dy, back));
}

// Operand i has the first rows and columns of matrix i.
static void grad_stack(Backward *b) {
    Type all = *b->node.type;
    for (int i = 0; i < b->node.num_args; i++) {
        Type t = *type_at(b, x(b, i));
        int64_t low[] = {i, 0, 0};
        int64_t high[] = {all.dim[0] - 1 - i, all.dim[1] - t.dim[0],
                          all.dim[2] - type_count(&t) / t.dim[0]};
        if (wants(b, i))
            give(b, i,
                 graph_reshape(b->g, graph_slice(b->g, b->dy, low, high),
                               t.rank, t.dim));
    }
}

static void grad_gather(Backward *b) {
    NodeId arg[] = {b->dy, x(b, 1)};
    give(b, 0,
         with_attributes(b, OP_gather_grad, *type_at(b, x(b, 0)), 2, arg));
}

// ---- windows ----

static void grad_max_pool(Backward *b) {
    NodeId index =
        with_attributes(b, OP_max_pool_index, (Type){0}, 1, b->node.arg);
    NodeId arg[] = {index, b->dy};
    give(b, 0,
         with_attributes(b, OP_max_pool_grad, *type_at(b, x(b, 0)), 2, arg));
}

static void grad_avg_pool(Backward *b) {
    give(b, 0,
         with_attributes(b, OP_avg_pool_grad, *type_at(b, x(b, 0)), 1, &b->dy));
}

static void grad_resize(Backward *b) {
    give(b, 0,
         with_attributes(b, OP_resize_grad, *type_at(b, x(b, 0)), 1, &b->dy));
}

// ---- contractions ----

// Whether windows are pixels of which a convolution leaves some out.
static bool leaves_pixels(const Backward *b) {
    const Type *w = type_at(b, x(b, 1));
    bool strided = false, is = w->dim[1] == 1 && w->dim[2] == 1;
    for (int i = 0; i < 4; i++) {
        strided |= node_ints(&b->node, ATTR_stride, i / 2, 1) > 1;
        is &= node_ints(&b->node, ATTR_pad, i, 0) == 0;
    }
    return is && strided;
}

// The gradient of these pixels, with zeros between them.
static NodeId spread_pixels(Backward *b) {
    const Type *dy = type_at(b, b->dy), *image = type_at(b, x(b, 0));
    const int64_t ones[] = {1, 1};
    Node node = b->node;
    Attr attr[NUM_ATTRS], pool[2] = {{0}};
    Type pixels = *dy;
    pixels.dim[3] = image->dim[3];
    for (int i = 0; i < node.num_attrs; i++) {
        attr[i] = node.attr[i];
        if (attr[i].key == ATTR_stride) {
            pool[0] = attr[i];
            attr[i] = attr_ints(ATTR_stride, 2, ones);
        }
    }
    pool[1] = attr_ints(ATTR_window, 2, ones);
    NodeId arg[] = {b->dy, x(b, 1)};
    NodeId gradient = graph_add(b->g, (Node){.op = OP_conv_grad_input,
                                             .type = &pixels,
                                             .num_args = 2,
                                             .num_attrs = node.num_attrs,
                                             .arg = arg,
                                             .attr = attr,
                                             .group = -1});
    return graph_add(b->g, (Node){.op = OP_avg_pool_grad,
                                  .type = image,
                                  .num_args = 1,
                                  .num_attrs = 2,
                                  .arg = &gradient,
                                  .attr = pool,
                                  .group = -1});
}

// The input gradient of strided windows of one pixel is that of the pixels that
// they read: a library would write the zeros between them, for the next kernel
// to read.
static void grad_conv(Backward *b) {
    if (wants(b, 0) && leaves_pixels(b)) {
        give(b, 0, spread_pixels(b));
    } else if (wants(b, 0)) {
        NodeId arg[] = {b->dy, x(b, 1)};
        give(b, 0,
             with_attributes(b, OP_conv_grad_input, *type_at(b, x(b, 0)), 2,
                             arg));
    }
    if (wants(b, 1)) {
        NodeId arg[] = {b->dy, x(b, 0)};
        give(b, 1,
             with_attributes(b, OP_conv_grad_weight, *type_at(b, x(b, 1)), 2,
                             arg));
    }
}

// A transposed convolution y of x is the gradient of a convolution of y.
static void grad_conv_grad_input(Backward *b) {
    if (wants(b, 0)) {
        NodeId arg[] = {b->dy, x(b, 1)};
        give(b, 0, with_attributes(b, OP_conv, (Type){0}, 2, arg));
    }
    if (wants(b, 1)) {
        NodeId arg[] = {x(b, 0), b->dy};
        give(b, 1,
             with_attributes(b, OP_conv_grad_weight, *type_at(b, x(b, 1)), 2,
                             arg));
    }
}

static NodeId product(Backward *b, NodeId a, bool ta, NodeId c, bool tb) {
    NodeId arg[] = {a, c};
    Attr attr[2];
    int count = 0;
    if (ta)
        attr[count++] = attr_int(ATTR_ta, 1);
    if (tb)
        attr[count++] = attr_int(ATTR_tb, 1);
    return graph_add(b->g, (Node){.op = OP_matmul,
                                  .num_args = 2,
                                  .num_attrs = count,
                                  .arg = arg,
                                  .attr = attr,
                                  .group = -1});
}

// With Y = A B: dA = dY B', dB = A' dY.  An operand that is stored transposed
// gets the transpose of that.
static void grad_matmul(Backward *b) {
    bool ta = node_int(&b->node, ATTR_ta, 0);
    bool tb = node_int(&b->node, ATTR_tb, 0);
    if (wants(b, 0))
        give(b, 0,
             ta ? product(b, x(b, 1), tb, b->dy, true)
                : product(b, b->dy, false, x(b, 1), !tb));
    if (wants(b, 1))
        give(b, 1,
             tb ? product(b, b->dy, true, x(b, 0), ta)
                : product(b, x(b, 0), !ta, b->dy, false));
}

// The operands of attention's gradient are followed by its seed and epoch.
static void grad_attention(Backward *b) {
    NodeId lse = with_attributes(b, OP_attention_lse, (Type){0},
                                 b->node.num_args, b->node.arg);
    NodeId arg[6] = {x(b, 0), b->id, b->dy, lse};
    for (int i = 1; i < b->node.num_args; i++)
        arg[3 + i] = x(b, i);
    give(b, 0,
         with_attributes(b, OP_attention_grad, (Type){0}, 3 + b->node.num_args,
                         arg));
}

// Each shard's operand is in the sum of each: the sum is its own adjoint.
static void grad_sum_over_shards(Backward *b) {
    give(b, 0, op1(b, OP_sum_over_shards, b->dy));
}

// ---- composite operations ----

// Ioffe and Szegedy, "Batch Normalization" (ICML 2015), with n elements to a
// channel and normal = (x - mean) istd:
//   dx = scale istd (dy - (dbias + normal dscale) / n).
// With factors of a channel,
//   gain = scale istd,  slope = gain istd dscale / n,
//   dx = dy gain - ((x - mean) slope + gain dbias / n).
// If other values are normalized, theirs is dy gain, and dx the rest.
static void grad_batch_norm(Backward *b) {
    bool other = b->node.num_args == 4;
    Normalized p = composite_normalize(b->g, x(b, 0), &b->node);
    NodeId z = x(b, other ? 3 : 0);
    NodeId normal = op2(b, OP_mul, op2(b, OP_sub, z, p.mean), p.istd);
    NodeId product = op2(b, OP_mul, b->dy, normal);
    NodeId dscale = shrink(b, product, *type_at(b, p.istd));
    NodeId dbias = shrink(b, b->dy, *type_at(b, p.istd));
    if (wants(b, 1))
        give(b, 1, dscale);
    if (wants(b, 2))
        give(b, 2, dbias);
    if (!wants(b, 0) && !(other && wants(b, 3)))
        return;
    if (node_int(&b->node, ATTR_sync, 0)) {
        dscale = op1(b, OP_sum_over_shards, dscale);
        dbias = op1(b, OP_sum_over_shards, dbias);
    }
    NodeId gain = op2(b, OP_mul, x(b, 1), p.istd);
    NodeId slope = op2(b, OP_mul, op2(b, OP_mul, gain, p.istd),
                       op2(b, OP_mul, dscale, p.share));
    NodeId drift = op2(b, OP_mul, gain, op2(b, OP_mul, dbias, p.share));
    NodeId centred = op2(b, OP_sub, x(b, 0), p.mean);
    NodeId along = op2(b, OP_add, op2(b, OP_mul, centred, slope), drift);
    NodeId direct = op2(b, OP_mul, b->dy, gain);
    if (other) {
        give(b, 0, op1(b, OP_neg, along));
        give(b, 3, direct);
    } else {
        give(b, 0, op2(b, OP_sub, direct, along));
    }
}

// dlogits = (softmax sum(target) - target) dy; labels sum to 1.  A share of a
// class gets 1 - a of the gradient of the class.
static void grad_cross_entropy(Backward *b) {
    double a = node_float(&b->node, ATTR_smoothing, 0);
    int64_t axes[] = {1};
    bool shares = type_at(b, x(b, 1))->dtype != I32;
    Exponents p = composite_exponents(b->g, x(b, 0), 1);
    if (wants(b, 0)) {
        NodeId target = composite_target(b->g, x(b, 0), x(b, 1), a);
        NodeId inverse = op2(b, OP_div, number(b, 1), p.sum);
        NodeId most = op2(b, OP_mul, p.exp, inverse);
        if (shares)
            most = op2(b, OP_mul, most,
                       graph_reduce(b->g, OP_sum, target, 1, axes));
        give(b, 0, op2(b, OP_mul, op2(b, OP_sub, most, target), b->dy));
    }
    if (shares && wants(b, 1)) {
        NodeId cost = op2(b, OP_sub, op1(b, OP_log, p.sum), p.shifted);
        NodeId scaled = op2(b, OP_mul, b->dy, number(b, 1 - a));
        give(b, 1, op2(b, OP_mul, cost, scaled));
    }
}

// dx = y (dy - sum(y dy)).
static void grad_softmax(Backward *b) {
    int64_t axis = node_int(&b->node, ATTR_axis, type_at(b, x(b, 0))->rank - 1);
    NodeId part = op2(b, OP_mul, b->id, b->dy);
    NodeId mean = graph_reduce(b->g, OP_sum, part, 1, &axis);
    give(b, 0, op2(b, OP_mul, b->id, op2(b, OP_sub, b->dy, mean)));
}

// dx = dy - softmax sum(dy).
static void grad_log_softmax(Backward *b) {
    int64_t axis = type_at(b, b->id)->rank - 1;
    NodeId sum = graph_reduce(b->g, OP_sum, b->dy, 1, &axis);
    NodeId part = op2(b, OP_mul, op1(b, OP_exp, b->id), sum);
    give(b, 0, op2(b, OP_sub, b->dy, part));
}

GradRule *const grad_rule[NUM_OPS] = {
#define OP(name, ...) [OP_##name] =
#define GRAD(rule) grad_##rule,
#include "ir/ops.def"
};

bool grad_stops(Op op) {
    return grad_rule[op] == grad_zero;
}
