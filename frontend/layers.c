// Layers: convolutions, products, pools, and functions of each element.
// batch_norm is in norm.c.

#include "frontend/expand.h"

#include <math.h>
#include <string.h>

// ---- windows ----

typedef struct {
    int64_t size[2], stride[2], dilation[2], pad[4];
} Window;

// `same` keeps the size at stride 1; an even window has its extra row or
// column of padding at the bottom or right.
static void pad_same(Window *w) {
    for (int i = 0; i < 2; i++) {
        int64_t total = w->dilation[i] * (w->size[i] - 1);
        w->pad[2 * i] = total / 2;
        w->pad[2 * i + 1] = total - total / 2;
    }
}

static void read_padding(const Value *v, Window *w) {
    memset(w->pad, 0, sizeof w->pad);
    if (v->kind == VALUE_WORD && strcmp(v->text, "same") == 0)
        pad_same(w);
    if (v->kind == VALUE_WORD)
        return;
    int count = v->kind == VALUE_LIST ? v->list.count : 1;
    for (int i = 0; i < 4; i++) {
        const Value *one =
            count == 1 ? v : &v->list.item[count == 2 ? i / 2 : i];
        w->pad[i] = (int64_t)one->number;
    }
}

// False, and a report, when not even one window fits the image.
static bool expect_window(Expansion *e, const Call *c, const Value *x,
                          const Window *w) {
    Type t = node_type(e, x->node);
    for (int i = 0; i < 2; i++) {
        int64_t pads = w->pad[2 * i] + w->pad[2 * i + 1];
        if (window_count(t.dim[1 + i], pads, w->size[i], w->stride[i],
                         w->dilation[i]) > 0)
            continue;
        Diagnostic *d =
            report(e->diags, D_window, c->at,
                   "a window of %lld x %lld does not fit this image",
                   (long long)w->size[0], (long long)w->size[1]);
        diag_place(d, x->at, "this is %s", type_text(e, t));
        if (t.dim[3] == t.dim[2] && t.dim[1] < t.dim[2])
            diag_note(d, "images are [N, height, width, channels]");
        return false;
    }
    return true;
}

// ---- conv ----

static bool expect_groups(Expansion *e, const Call *c, int64_t in, int64_t out,
                          int64_t groups) {
    if (in % groups == 0 && out % groups == 0)
        return true;
    Diagnostic *d =
        report(e->diags, D_groups, c->at,
               "%lld channels in and %lld out do not divide into %lld groups",
               (long long)in, (long long)out, (long long)groups);
    diag_place(d, call_arg(c, P_conv_x)->at, "this is %s",
               type_text(e, node_type(e, call_node(c, P_conv_x))));
    return false;
}

static void warn_channels(Expansion *e, const Call *c, int64_t channels) {
    bool half = e->recipe.precision == F16 || e->recipe.precision == BF16;
    if (!half || channels % 8 == 0)
        return;
    Diagnostic *d =
        report(e->diags, D_odd_channels, c->at,
               "%lld channels are not a multiple of 8", (long long)channels);
    diag_note(d, "in 16 bits the GPU computes them as %lld",
              (long long)((channels + 7) / 8 * 8));
}

// PyTorch's default: uniform within 1 / sqrt(fan_in), also for the bias.
static Init fan_in_init(double fan_in) {
    return (Init){INIT_UNIFORM, 1 / sqrt(fan_in)};
}

static NodeId add_bias(Expansion *e, const Call *c, NodeId y, int64_t channels,
                       Init init) {
    if (y == NO_NODE)
        return NO_NODE;
    NodeId bias = parameter_new(e, c, "bias", type_of(F32, 1, &channels), init);
    return add_binary(e, OP_add, y, bias);
}

static NodeId conv_node(Expansion *e, const Call *c, NodeId x, NodeId weight,
                        const Window *w, int64_t groups) {
    if (weight == NO_NODE)
        return NO_NODE;
    Attr attr[] = {
        attr_ints(ATTR_dilation, 2, w->dilation),
        attr_int(ATTR_groups, groups),
        attr_ints(ATTR_pad, 4, w->pad),
        attr_ints(ATTR_stride, 2, w->stride),
    };
    return add_checked(e, c,
                       (Node){.op = OP_conv,
                              .num_args = 2,
                              .arg = (NodeId[]){x, weight},
                              .num_attrs = 4,
                              .attr = attr});
}

Value lower_conv(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_conv_x);
    int64_t out = call_count(c, P_conv_channels);
    int64_t groups = call_count(c, P_conv_groups);
    Window w;
    call_pair(c, P_conv_size, w.size);
    call_pair(c, P_conv_stride, w.stride);
    call_pair(c, P_conv_dilation, w.dilation);
    read_padding(call_arg(c, P_conv_pad), &w);
    if (!expect_rank(e, c, x, 4) || !expect_window(e, c, x, &w))
        return value_poison();
    int64_t in = node_type(e, x->node).dim[3];
    if (!expect_groups(e, c, in, out, groups))
        return value_poison();
    warn_channels(e, c, out);
    int64_t shape[] = {out, w.size[0], w.size[1], in / groups};
    Init init =
        fan_in_init((double)shape[1] * (double)shape[2] * (double)shape[3]);
    NodeId weight = parameter_new(e, c, "weight", type_of(F32, 4, shape), init);
    NodeId y = conv_node(e, c, as_float(e, x->node), weight, &w, groups);
    if (call_flag(c, P_conv_bias))
        y = add_bias(e, c, y, out, init);
    return value_tensor(y, c->at);
}

// ---- linear ----

Value lower_linear(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_linear_x);
    if (!expect_rank(e, c, x, 2))
        return value_poison();
    int64_t out = call_count(c, P_linear_channels);
    int64_t in = node_type(e, x->node).dim[1];
    Init init = fan_in_init((double)in);
    NodeId weight = parameter_new(e, c, "weight",
                                  type_of(F32, 2, (int64_t[]){out, in}), init);
    if (weight == NO_NODE)
        return value_poison();
    Attr transposed = attr_int(ATTR_tb, 1);
    NodeId y =
        add_checked(e, c,
                    (Node){.op = OP_matmul,
                           .num_args = 2,
                           .arg = (NodeId[]){as_float(e, x->node), weight},
                           .num_attrs = 1,
                           .attr = &transposed});
    if (call_flag(c, P_linear_bias))
        y = add_bias(e, c, y, out, init);
    return value_tensor(y, c->at);
}

// ---- pools ----

static NodeId pool_node(Expansion *e, const Call *c, Op op, NodeId in,
                        const Window *w) {
    Attr attr[] = {
        attr_ints(ATTR_pad, 4, w->pad),
        attr_ints(ATTR_stride, 2, w->stride),
        attr_ints(ATTR_window, 2, w->size),
    };
    return add_checked(
        e, c,
        (Node){
            .op = op, .num_args = 1, .arg = &in, .num_attrs = 3, .attr = attr});
}

static Value pool(Expansion *e, const Call *c, Op op) {
    // max_pool and avg_pool have the same parameters.
    const Value *x = &c->arg[P_max_pool_x - FIRST_max_pool];
    const Value *stride = &c->arg[P_max_pool_stride - FIRST_max_pool];
    Window w = {.dilation = {1, 1}};
    call_pair(c, c->builtin->first + (P_max_pool_size - FIRST_max_pool),
              w.size);
    memcpy(w.stride, w.size, sizeof w.stride);
    if (stride->kind != VALUE_NOTHING)
        call_pair(c, c->builtin->first + (P_max_pool_stride - FIRST_max_pool),
                  w.stride);
    read_padding(&c->arg[P_max_pool_pad - FIRST_max_pool], &w);
    if (!expect_rank(e, c, x, 4) || !expect_window(e, c, x, &w))
        return value_poison();
    return value_tensor(pool_node(e, c, op, as_float(e, x->node), &w), c->at);
}

Value lower_max_pool(Expansion *e, const Call *c) {
    return pool(e, c, OP_max_pool);
}

Value lower_avg_pool(Expansion *e, const Call *c) {
    return pool(e, c, OP_avg_pool);
}

// A pool whose one window is the whole image: [N, channels].
static Value global_pool(Expansion *e, const Call *c, Op op) {
    const Value *x = &c->arg[0];
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    Type t = node_type(e, x->node);
    Window w = {.dilation = {1, 1},
                .size = {t.dim[1], t.dim[2]},
                .stride = {t.dim[1], t.dim[2]}};
    NodeId y = pool_node(e, c, op, as_float(e, x->node), &w);
    y = graph_reshape(e->graph, y, 2, (int64_t[]){t.dim[0], t.dim[3]});
    return value_tensor(y, c->at);
}

Value lower_global_max_pool(Expansion *e, const Call *c) {
    return global_pool(e, c, OP_max_pool);
}

Value lower_global_avg_pool(Expansion *e, const Call *c) {
    return global_pool(e, c, OP_avg_pool);
}

// ---- each element ----

Value lower_pointwise(Expansion *e, const Call *c) {
    Op op = OP_relu;
    op_find(c->builtin->name, strlen(c->builtin->name), &op);
    return value_tensor(add_unary(e, op, as_float(e, c->arg[0].node)), c->at);
}

// x/2 (1 + erf(x / sqrt 2)).
Value lower_gelu(Expansion *e, const Call *c) {
    NodeId x = as_float(e, call_node(c, P_gelu_x));
    NodeId scaled = add_binary(e, OP_mul, x, number_node(e, sqrt(0.5)));
    NodeId erf = add_unary(e, OP_erf, scaled);
    NodeId cdf = add_binary(e, OP_add, erf, number_node(e, 1));
    NodeId half = add_binary(e, OP_mul, x, number_node(e, 0.5));
    return value_tensor(add_binary(e, OP_mul, half, cdf), c->at);
}

Value lower_silu(Expansion *e, const Call *c) {
    NodeId x = as_float(e, call_node(c, P_silu_x));
    return value_tensor(add_binary(e, OP_mul, x, add_unary(e, OP_sigmoid, x)),
                        c->at);
}

Value lower_scale(Expansion *e, const Call *c) {
    NodeId x = as_float(e, call_node(c, P_scale_x));
    NodeId factor = number_node(e, call_number(c, P_scale_factor));
    return value_tensor(add_binary(e, OP_mul, x, factor), c->at);
}

// Along the last axis.
Value lower_softmax(Expansion *e, const Call *c) {
    NodeId x = as_float(e, call_node(c, P_softmax_x));
    return value_tensor(
        add_checked(e, c, (Node){.op = OP_softmax, .num_args = 1, .arg = &x}),
        c->at);
}

// Everything but the batch in one dimension.
Value lower_flatten(Expansion *e, const Call *c) {
    NodeId x = call_node(c, P_flatten_x);
    Type t = node_type(e, x);
    if (t.rank < 2) {
        report(e->diags, D_rank, c->at, "there is nothing to flatten in %s",
               type_text(e, t));
        return value_poison();
    }
    Type flat = type_of(t.dtype, 2, t.dim);
    flat.dim[1] = type_count(t) / t.dim[0];
    return value_tensor(
        add_checked(
            e, c,
            (Node){.op = OP_reshape, .type = flat, .num_args = 1, .arg = &x}),
        c->at);
}

// ---- normalize ----

// A number for each channel, or one for all; inverted if asked.  NO_NODE after
// a report.
static NodeId channel_numbers(Expansion *e, const Call *c, const Value *v,
                              int64_t channels, bool invert) {
    int count = v->kind == VALUE_LIST ? v->list.count : 1;
    if (v->kind == VALUE_LIST && count != channels) {
        report(e->diags, D_length, v->at,
               "this list has %d number%s and the image %lld channel%s", count,
               count == 1 ? "" : "s", (long long)channels,
               channels == 1 ? "" : "s");
        return NO_NODE;
    }
    double *number = ARENA_ARRAY(e->arena, (size_t)count, double);
    for (int i = 0; i < count; i++) {
        number[i] = v->kind == VALUE_LIST ? v->list.item[i].number : v->number;
        if (invert && number[i] <= 0) {
            report(e->diags, D_range, v->at.source ? v->at : c->at,
                   "a standard deviation must be above 0");
            return NO_NODE;
        }
        if (invert)
            number[i] = 1 / number[i];
    }
    return v->kind == VALUE_LIST ? graph_vector(e->graph, number, count)
                                 : number_node(e, number[0]);
}

// (x - mean) / std for each channel.
Value lower_normalize(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_normalize_x);
    Type t = node_type(e, x->node);
    if (t.rank == 0) {
        report(e->diags, D_rank, c->at, "there are no channels to normalize");
        return value_poison();
    }
    int64_t channels = t.dim[t.rank - 1];
    NodeId mean =
        channel_numbers(e, c, call_arg(c, P_normalize_mean), channels, false);
    NodeId std =
        channel_numbers(e, c, call_arg(c, P_normalize_std), channels, true);
    NodeId y = mean == NO_NODE
                   ? NO_NODE
                   : graph_op2(e->graph, OP_sub, as_float(e, x->node), mean);
    return value_tensor(add_binary(e, OP_mul, y, std), c->at);
}

// ---- questions ----

static Value dimension_of(Expansion *e, const Call *c, int axis, int rank) {
    Type t = node_type(e, c->arg[0].node);
    if (t.rank < 1 || (rank != 0 && !expect_rank(e, c, &c->arg[0], rank)))
        return value_poison();
    return value_number((double)t.dim[axis < 0 ? t.rank - 1 : axis], c->at);
}

Value lower_channels_of(Expansion *e, const Call *c) {
    return dimension_of(e, c, -1, 0);
}

Value lower_height_of(Expansion *e, const Call *c) {
    return dimension_of(e, c, 1, 4);
}

Value lower_width_of(Expansion *e, const Call *c) {
    return dimension_of(e, c, 2, 4);
}
