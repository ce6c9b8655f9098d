// Convolutions and pools.

#include "frontend/functions/functions.h"

#include "base/round_up.h"

#include <string.h>

// ---- windows ----

typedef struct {
    int64_t size[2], stride[2], dilation[2], pad[4];
} Window;

// `same` keeps the size at stride 1; an even window has its extra row or column
// of padding at the bottom or right.
static void pad_same(Window *w) {
    for (int i = 0; i < 2; i++) {
        int64_t total = w->dilation[i] * (w->size[i] - 1);
        w->pad[2 * i] = total / 2;
        w->pad[2 * i + 1] = total - total / 2;
    }
}

void read_pads(const Value *v, int64_t pad[4]) {
    int count = v->kind == VALUE_LIST ? v->list.count : 1;
    for (int i = 0; i < 4; i++) {
        const Value *one =
            count == 1 ? v : &v->list.item[count == 2 ? i / 2 : i];
        pad[i] = (int64_t)one->number;
    }
}

static void read_padding(const Value *v, Window *w) {
    memset(w->pad, 0, sizeof w->pad);
    if (v->kind == VALUE_WORD && strcmp(v->text, "same") == 0)
        pad_same(w);
    if (v->kind != VALUE_WORD)
        read_pads(v, w->pad);
}

static void note_window(const Call *c, const Window *w, Diagnostic *d) {
    enum { LARGE = 16 };
    const char *pool = c->builtin->name;
    if (builtin_id(c->builtin) == B_conv)
        diag_note(d, "pad=same keeps the size of the image");
    else if (w->size[0] >= LARGE)
        diag_note(d,
                  "the first argument of %s is the size of its window, as in "
                  "%s(2); the channels stay",
                  pool, pool);
    else
        diag_note(d, "global_%s pools the whole image", pool);
}

// False, with a report, if no window fits the image.
static bool expect_window(Expansion *e, const Call *c, const Value *x,
                          const Window *w) {
    Type t = *node_type(e, x->node);
    int64_t pads[2], image[2], window[2];
    bool fits = true;
    for (int i = 0; i < 2; i++) {
        pads[i] = w->pad[2 * i] + w->pad[2 * i + 1];
        image[i] = t.dim[1 + i] + pads[i];
        window[i] = w->dilation[i] * (w->size[i] - 1) + 1;
        fits &= window[i] <= image[i];
    }
    if (fits)
        return true;
    Diagnostic *d = report(
        e->diags, D_window_too_large, c->at,
        "a window of %lld x %lld is larger than the image, %lld x %lld%s",
        (long long)window[0], (long long)window[1], (long long)image[0],
        (long long)image[1], pads[0] + pads[1] ? " with its padding" : "");
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
    note_window(c, w, d);
    if (t.dim[3] == t.dim[2] && t.dim[1] < t.dim[2])
        diag_note(d, "images are [N, height, width, channels]");
    return false;
}

// ---- conv ----

static bool expect_groups(Expansion *e, const Call *c, int64_t in, int64_t out,
                          int64_t groups) {
    if (in % groups == 0 && out % groups == 0)
        return true;
    Diagnostic *d =
        report(e->diags, D_indivisible_groups, c->at,
               "%lld channels in and %lld out do not divide into %lld groups",
               (long long)in, (long long)out, (long long)groups);
    diag_secondary(d, c->arg[0].at, "this is %s",
                   tensor_text(e, c->arg[0].node));
    return false;
}

// A convolution whose channels are padded in 16-bit precision.
struct Padded {
    NodeId node;
    Span at;
    int64_t channels;
    struct Padded *next;
};

// A single channel is a mask, not a layer's width.
static void note_padded(Expansion *e, const Call *c, NodeId node,
                        int64_t channels) {
    bool half = e->recipe.precision == F16 || e->recipe.precision == BF16;
    if (!half || !e->training || channels % 8 == 0 || channels == 1)
        return;
    struct Padded *p = ARENA_NEW(e->arena, struct Padded);
    *p = (struct Padded){node, c->at, channels, NULL};
    if (e->padded == NULL)
        e->padded = p;
    else
        e->last_padded->next = p;
    e->last_padded = p;
}

// The nodes that some later product uses; all others lead to the output only.
static bool *find_hidden(Expansion *e) {
    const Graph *g = e->graph;
    bool *inner = ARENA_ARRAY(e->arena, g->count, bool);
    for (NodeId n = g->count; n-- > 0;) {
        bool product = (op_info[g->node[n].op].traits & CONTRACTS) != 0;
        for (int i = 0; i < g->node[n].num_args; i++)
            inner[g->node[n].arg[i]] |= product || inner[n];
    }
    return inner;
}

void conv_warn(Expansion *e) {
    const bool *inner = e->padded != NULL ? find_hidden(e) : NULL;
    for (const struct Padded *p = e->padded; p != NULL; p = p->next) {
        if (!inner[p->node])
            continue;
        Diagnostic *d = report(e->diags, D_odd_channels, p->at,
                               "%lld channels are not a multiple of 8",
                               (long long)p->channels);
        diag_note(d, "in 16 bits the GPU computes them as %lld",
                  (long long)round_up(p->channels, 8));
    }
}

// Warns of PyTorch's argument order: input channels, channels, window size.
// The signs are an odd stride below the window's size, or a large window with
// stride 1.  A named stride is meant.
static void warn_order(Expansion *e, const Call *c, const Window *w,
                       int64_t in) {
    enum { LARGE = 16 };
    const Expr *by = c->by;
    int first = c->piped ? 0 : 1;
    int64_t size = w->size[0], stride = w->stride[0];
    bool odd = stride % 2 == 1 && stride < size;
    if (by->count < first + 3 || by->argument[first + 2].name != NULL ||
        call_count(c, P_conv_channels) != in || !odd ||
        (stride == 1 && size < LARGE))
        return;
    Diagnostic *d =
        report(e->diags, D_input_channels_first, c->at,
               "this convolution has windows of %lld x %lld and a stride of "
               "%lld",
               (long long)size, (long long)w->size[1], (long long)stride);
    diag_note(d,
              "the channels of the input are known: conv(%lld, %lld); if the "
              "stride is meant: stride=%lld",
              (long long)size, (long long)stride, (long long)stride);
}

static bool pad_is_written(const Call *c) {
    const Expr *by = c->by;
    int pad_position = P_conv_pad - P_conv_x - (c->piped ? 1 : 0), position = 0;
    for (int i = 0; i < by->count; i++) {
        const char *name = by->argument[i].name;
        if (name != NULL ? strcmp(name, "pad") == 0
                         : position++ == pad_position)
            return true;
    }
    return false;
}

// Warns of adjacent windows that would cover the image exactly (patches), if
// the default padding shifts them.
static void warn_patches(Expansion *e, const Call *c, const Window *w, Type t) {
    bool side_by_side = true, moved = false;
    for (int i = 0; i < 2; i++) {
        side_by_side &= w->stride[i] == w->size[i] && w->dilation[i] == 1 &&
                        t.dim[1 + i] % w->size[i] == 0;
        moved |= w->pad[2 * i] > 0;
    }
    if (!side_by_side || !moved || pad_is_written(c))
        return;
    Diagnostic *d =
        report(e->diags, D_shifted_patches, c->at,
               "padding moves these patches of %lld x %lld by %lld x %lld",
               (long long)w->size[0], (long long)w->size[1],
               (long long)w->pad[0], (long long)w->pad[2]);
    diag_note(d, "pad=0 cuts the image into patches, as PyTorch does; if the "
                 "padding is meant: pad=same");
}

// y: the type of a convolution to the input; NULL: it follows.
static NodeId conv_node(Expansion *e, const Call *c, Op op, const Type *y,
                        NodeId x, NodeId weight, const Window *w,
                        int64_t groups) {
    if (weight == NO_NODE)
        return NO_NODE;
    Attr attr[] = {
        attr_ints(ATTR_dilation, 2, w->dilation),
        attr_int(ATTR_groups, groups),
        attr_ints(ATTR_pad, 4, w->pad),
        attr_ints(ATTR_stride, 2, w->stride),
    };
    return add_checked(e, c,
                       (Node){.op = op,
                              .type = y,
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
    int64_t in = node_type(e, x->node)->dim[3];
    if (!expect_groups(e, c, in, out, groups))
        return value_poison();
    warn_order(e, c, &w, in);
    warn_patches(e, c, &w, *node_type(e, x->node));
    int64_t shape[] = {out, w.size[0], w.size[1], in / groups};
    Type type = type_of(F32, 4, shape);
    Init init = initial_default(type);
    init.groups = groups;
    if (!initial_argument(e, call_arg(c, P_conv_init), type, &init))
        return value_poison();
    NodeId weight = parameter_new(e, c, "weight", type, init);
    NodeId image = as_float(e, x->node);
    if (e->collecting && init.kind == INIT_WHITENING &&
        !whitening_collect(e, c, image, type, &init))
        return value_poison();
    NodeId y = conv_node(e, c, OP_conv, NULL, image, weight, &w, groups);
    if (y != NO_NODE)
        note_padded(e, c, y, out);
    return add_bias(e, c, y, type, call_flag(c, P_conv_bias),
                    call_arg(c, P_conv_bias_init));
}

// ---- conv_transpose ----

// The rows or columns of the result; a report and 0 if there are none.
static int64_t transposed_size(Expansion *e, const Call *c, const Value *x,
                               const Window *w, int i) {
    const Value *more = call_arg(c, P_conv_transpose_output_pad);
    int64_t pads = w->pad[2 * i] + w->pad[2 * i + 1];
    int64_t size = (node_type(e, x->node)->dim[1 + i] - 1) * w->stride[i] +
                   w->dilation[i] * (w->size[i] - 1) + 1 +
                   (int64_t)more->number - pads;
    if (more->number >= (double)w->stride[i]) {
        report(e->diags, D_out_of_range, more->at.source ? more->at : c->at,
               "`output_pad` of conv_transpose must be below the stride, %lld",
               (long long)w->stride[i]);
        return 0;
    }
    if (size > 0)
        return size;
    Diagnostic *d =
        report(e->diags, D_out_of_range, c->at,
               "padding of %lld removes all %s of the result",
               (long long)pads, i == 0 ? "rows" : "columns");
    diag_secondary(d, x->at, "this is %s", tensor_text(e, x->node));
    return 0;
}

Value lower_conv_transpose(Expansion *e, const Call *c) {
    const Value *x = call_arg(c, P_conv_transpose_x);
    int64_t out = call_count(c, P_conv_transpose_channels);
    int64_t groups = call_count(c, P_conv_transpose_groups);
    Window w;
    call_pair(c, P_conv_transpose_size, w.size);
    call_pair(c, P_conv_transpose_stride, w.stride);
    call_pair(c, P_conv_transpose_dilation, w.dilation);
    read_padding(call_arg(c, P_conv_transpose_pad), &w);
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    Type y = *node_type(e, x->node);
    int64_t in = y.dim[3];
    if (!expect_groups(e, c, in, out, groups))
        return value_poison();
    for (int i = 0; i < 2; i++) {
        y.dim[1 + i] = transposed_size(e, c, x, &w, i);
        if (y.dim[1 + i] == 0)
            return value_poison();
    }
    y.dtype = F32;
    y.dim[3] = out;
    Type type = type_of(
        F32, 4, (int64_t[]){in, w.size[0], w.size[1], out / groups});
    Init init = initial_default(type);
    if (!initial_argument(e, call_arg(c, P_conv_transpose_init), type, &init))
        return value_poison();
    NodeId weight = parameter_new(e, c, "weight", type, init);
    NodeId made = conv_node(e, c, OP_conv_grad_input, &y, as_float(e, x->node),
                            weight, &w, groups);
    if (made != NO_NODE)
        note_padded(e, c, made, out);
    type.dim[0] = out; // its other dimensions are the fan of the bias, too
    return add_bias(e, c, made, type, call_flag(c, P_conv_transpose_bias),
                    call_arg(c, P_conv_transpose_bias_init));
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
    // max_pool and avg_pool have equal parameters.
    const Value *x = &c->arg[P_max_pool_x - FIRST_max_pool];
    const Value *stride = &c->arg[P_max_pool_stride - FIRST_max_pool];
    Window w = {.dilation = {1, 1}};
    call_pair(c, c->builtin->first + (P_max_pool_size - FIRST_max_pool),
              w.size);
    memcpy(w.stride, w.size, sizeof w.stride);
    if (stride->kind != VALUE_NONE)
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

// A pool whose only window is the whole image: [N, channels].
static Value global_pool(Expansion *e, const Call *c, Op op) {
    const Value *x = &c->arg[0];
    if (!expect_rank(e, c, x, 4))
        return value_poison();
    Type t = *node_type(e, x->node);
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
