// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cuDNN graphs: a call and its fusions as the library's operations.
//
// A tensor's unique id is its role.  A virtual tensor, which lies between two
// operations and is never stored, has an id above all roles.

#include "runtime/cuda/libraries/cudnn.h"

typedef struct {
    RtDescriptors *d;
    const RtCall *call;
    RtCudnnGraph *graph;
    void *op[8];
    int num_ops;
    int64_t virtual_id;
} Builder;

enum { VIRTUAL_IDS = 1000 }; // above all roles

static int data_type(RtType type) {
    return type == RT_F16    ? DNN_DATA_HALF
           : type == RT_BF16 ? DNN_DATA_BFLOAT16
                             : DNN_DATA_FLOAT;
}

// ---- tensors ----

// Channels are innermost in memory, whatever a tensor holds.
static void *tensor(Builder *b, RtRole role, int type, const int64_t dim[4]) {
    RtDescriptors *d = b->d;
    void *t = rt_descriptor(d, DNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t stride[4] = {dim[1] * dim[2] * dim[3], 1, dim[1] * dim[3], dim[1]};
    bool virtual = role == RT_ROLE_NONE;
    rt_descriptor_enum(d, t, DNN_ATTR_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE,
                       type);
    rt_descriptor_set(d, t, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, 4, dim);
    rt_descriptor_set(d, t, DNN_ATTR_TENSOR_STRIDES, DNN_TYPE_INT64, 4, stride);
    rt_descriptor_int(d, t, DNN_ATTR_TENSOR_UNIQUE_ID,
                      virtual ? VIRTUAL_IDS + b->virtual_id++ : (int64_t)role);
    rt_descriptor_int(d, t, DNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
    rt_descriptor_set(d, t, DNN_ATTR_TENSOR_IS_VIRTUAL, DNN_TYPE_BOOLEAN, 1,
                      &virtual);
    if (role >= RT_ROLE_COUNT && role <= RT_ROLE_FACTOR)
        rt_descriptor_set(d, t, DNN_ATTR_TENSOR_IS_BY_VALUE, DNN_TYPE_BOOLEAN,
                          1, &(bool){true});
    rt_descriptor_finalize(d, t, "a tensor");
    if (!virtual)
        b->graph->role[b->graph->num_roles++] = role;
    return t;
}

static void *images(Builder *b, RtRole role, int type) {
    const RtCall *c = b->call;
    return tensor(b, role, type, (int64_t[]){c->n, c->c, c->h, c->w});
}

static void *results(Builder *b, RtRole role, int type) {
    const RtCall *c = b->call;
    return tensor(b, role, type, (int64_t[]){c->n, c->k, c->oh, c->ow});
}

static void *weight(Builder *b) {
    const RtCall *c = b->call;
    return tensor(b, RT_ROLE_WEIGHT, data_type(c->type),
                  (int64_t[]){c->k, c->c / c->groups, c->r, c->s});
}

static void *row(Builder *b, RtRole role, int type, int64_t channels) {
    return tensor(b, role, type, (int64_t[]){1, channels, 1, 1});
}

static void *scalar(Builder *b, RtRole role, int type) {
    return tensor(b, role, type, (int64_t[]){1, 1, 1, 1});
}

// ---- operations ----

static void op_add(Builder *b, void *op, const char *what) {
    rt_descriptor_finalize(b->d, op, what);
    b->op[b->num_ops++] = op;
}

static void *convolution(Builder *b) {
    RtDescriptors *d = b->d;
    const RtCall *c = b->call;
    void *conv = rt_descriptor(d, DNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const struct {
        int name;
        int64_t value[2];
    } list[] = {
        {DNN_ATTR_CONVOLUTION_PRE_PADDINGS, {c->pad[0], c->pad[2]}},
        {DNN_ATTR_CONVOLUTION_POST_PADDINGS, {c->pad[1], c->pad[3]}},
        {DNN_ATTR_CONVOLUTION_FILTER_STRIDES, {c->stride[0], c->stride[1]}},
        {DNN_ATTR_CONVOLUTION_DILATIONS, {c->dilation[0], c->dilation[1]}},
    };
    rt_descriptor_enum(d, conv, DNN_ATTR_CONVOLUTION_COMP_TYPE,
                       DNN_TYPE_DATA_TYPE, DNN_DATA_FLOAT);
    rt_descriptor_enum(d, conv, DNN_ATTR_CONVOLUTION_CONV_MODE,
                       DNN_TYPE_CONVOLUTION_MODE, DNN_CROSS_CORRELATION);
    rt_descriptor_int(d, conv, DNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        rt_descriptor_set(d, conv, list[i].name, DNN_TYPE_INT64, 2,
                          list[i].value);
    rt_descriptor_finalize(d, conv, "a convolution");
    return conv;
}

// The attributes of the operation for each kind of call.
// clang-format off
static const struct {
    int kind, conv, x, weight, y, alpha, beta;
} conv_op[] = {
    [RT_CONV] = {DNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                 DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                 DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                 DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                 DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                 DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                 DNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [RT_CONV_GRAD_INPUT] = {
                 DNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [RT_CONV_GRAD_WEIGHT] = {
                 DNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                 DNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};
// clang-format on

static void add_conv(Builder *b, void *x, void *w, void *y) {
    RtDescriptors *d = b->d;
    int kind = (int)b->call->kind;
    void *op = rt_descriptor(d, conv_op[kind].kind);
    float alpha = 1, beta = b->call->accumulate ? 1 : 0;
    rt_descriptor_link(d, op, conv_op[kind].conv, convolution(b));
    rt_descriptor_link(d, op, conv_op[kind].x, x);
    rt_descriptor_link(d, op, conv_op[kind].weight, w);
    rt_descriptor_link(d, op, conv_op[kind].y, y);
    rt_descriptor_set(d, op, conv_op[kind].alpha, DNN_TYPE_FLOAT, 1, &alpha);
    rt_descriptor_set(d, op, conv_op[kind].beta, DNN_TYPE_FLOAT, 1, &beta);
    op_add(b, op, "the operation of a convolution");
}

static void *pointwise(Builder *b, int mode) {
    RtDescriptors *d = b->d;
    void *how = rt_descriptor(d, DNN_BACKEND_POINTWISE_DESCRIPTOR);
    void *op = rt_descriptor(d, DNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    rt_descriptor_enum(d, how, DNN_ATTR_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE,
                       mode);
    rt_descriptor_enum(d, how, DNN_ATTR_POINTWISE_MATH_PREC, DNN_TYPE_DATA_TYPE,
                       DNN_DATA_FLOAT);
    rt_descriptor_finalize(d, how, "a pointwise function");
    rt_descriptor_link(d, op, DNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    return op;
}

// out = a (mode) other, or (mode) a where other is NULL.
static void *add_pointwise(Builder *b, int mode, void *a, void *other,
                           void *out) {
    RtDescriptors *d = b->d;
    void *op = pointwise(b, mode);
    rt_descriptor_link(d, op, DNN_ATTR_OPERATION_POINTWISE_XDESC, a);
    if (other != NULL)
        rt_descriptor_link(d, op, DNN_ATTR_OPERATION_POINTWISE_BDESC, other);
    rt_descriptor_link(d, op, DNN_ATTR_OPERATION_POINTWISE_YDESC, out);
    op_add(b, op, "a pointwise operation");
    return out;
}

static void add_relu_gradient(Builder *b, void *dy, void *x, void *dx) {
    RtDescriptors *d = b->d;
    void *op = pointwise(b, DNN_POINTWISE_RELU_BWD);
    rt_descriptor_link(d, op, DNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    rt_descriptor_link(d, op, DNN_ATTR_OPERATION_POINTWISE_DYDESC, dy);
    rt_descriptor_link(d, op, DNN_ATTR_OPERATION_POINTWISE_DXDESC, dx);
    op_add(b, op, "the gradient of relu");
}

// ---- fusions ----

static void add_statistics(Builder *b, void *y) {
    RtDescriptors *d = b->d;
    int64_t k = b->call->k;
    void *op = rt_descriptor(d, DNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    rt_descriptor_enum(d, op, DNN_ATTR_OPERATION_GENSTATS_MODE,
                       DNN_TYPE_GENSTATS_MODE, DNN_GENSTATS_SUM_SQSUM);
    rt_descriptor_enum(d, op, DNN_ATTR_OPERATION_GENSTATS_MATH_PREC,
                       DNN_TYPE_DATA_TYPE, DNN_DATA_FLOAT);
    rt_descriptor_link(d, op, DNN_ATTR_OPERATION_GENSTATS_XDESC, y);
    rt_descriptor_link(d, op, DNN_ATTR_OPERATION_GENSTATS_SUMDESC,
                       row(b, RT_ROLE_SUM, DNN_DATA_FLOAT, k));
    rt_descriptor_link(d, op, DNN_ATTR_OPERATION_GENSTATS_SQSUMDESC,
                       row(b, RT_ROLE_SQUARES, DNN_DATA_FLOAT, k));
    op_add(b, op, "statistics");
}

// relu(scale x + bias), not stored.
static void *add_prologue(Builder *b, void *x) {
    int half = data_type(b->call->type);
    int64_t c = b->call->c;
    void *scaled =
        add_pointwise(b, DNN_POINTWISE_MUL, x, row(b, RT_ROLE_SCALE, half, c),
                      images(b, RT_ROLE_NONE, DNN_DATA_FLOAT));
    void *moved = add_pointwise(b, DNN_POINTWISE_ADD, scaled,
                                row(b, RT_ROLE_BIAS, half, c),
                                images(b, RT_ROLE_NONE, DNN_DATA_FLOAT));
    return add_pointwise(b, DNN_POINTWISE_RELU_FWD, moved, NULL,
                         images(b, RT_ROLE_NONE, half));
}

// Recomputes batch_norm of x in f32.
static void *add_norm(Builder *b, void *x, void *mean, void *deviation,
                      void *scale) {
    void *bias = row(b, RT_ROLE_BIAS, DNN_DATA_FLOAT, b->call->c);
    const struct {
        int mode;
        void *by;
    } step[] = {
        {DNN_POINTWISE_SUB, mean},
        {DNN_POINTWISE_MUL, deviation},
        {DNN_POINTWISE_MUL, scale},
        {DNN_POINTWISE_ADD, bias},
    };
    for (size_t i = 0; i < sizeof step / sizeof step[0]; i++)
        x = add_pointwise(b, step[i].mode, x, step[i].by,
                          images(b, RT_ROLE_NONE, DNN_DATA_FLOAT));
    return x;
}

// From the virtual gradient: the gradient of relu, which is stored, and the
// sums for batch_norm's parameters.
static void add_backward(Builder *b, void *gradient) {
    RtDescriptors *d = b->d;
    const int f32 = DNN_DATA_FLOAT;
    int64_t c = b->call->c;
    void *x = images(b, RT_ROLE_NORM, data_type(b->call->type));
    void *mean = row(b, RT_ROLE_MEAN, f32, c);
    void *deviation = row(b, RT_ROLE_INV_STD, f32, c);
    void *scale = row(b, RT_ROLE_SCALE, f32, c);
    void *norm = add_norm(b, x, mean, deviation, scale);
    void *dz = images(b, RT_ROLE_X, data_type(b->call->type));
    add_relu_gradient(b, gradient, norm, dz);
    void *op =
        rt_descriptor(d, DNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
    const struct {
        int name;
        void *to;
    } link[] = {
        {DNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, x},
        {DNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, dz},
        {DNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, mean},
        {DNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, deviation},
        {DNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, scale},
        {DNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
         row(b, RT_ROLE_D_SCALE, f32, c)},
        {DNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
         row(b, RT_ROLE_D_BIAS, f32, c)},
        {DNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
         row(b, RT_ROLE_UNUSED, f32, c)},
        {DNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC,
         row(b, RT_ROLE_UNUSED + 1, f32, c)},
        {DNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS,
         row(b, RT_ROLE_UNUSED + 2, f32, c)},
    };
    rt_descriptor_enum(d, op, DNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC,
                       DNN_TYPE_DATA_TYPE, f32);
    for (size_t i = 0; i < sizeof link / sizeof link[0]; i++)
        rt_descriptor_link(d, op, link[i].name, link[i].to);
    op_add(b, op, "the reductions of batch_norm's gradient");
}

// ---- whole graphs ----

static bool graph_close(Builder *b) {
    RtDescriptors *d = b->d;
    b->graph->graph = rt_descriptor(d, DNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (d->c->handle != NULL)
        rt_descriptor_set(d, b->graph->graph, DNN_ATTR_OPERATIONGRAPH_HANDLE,
                          DNN_TYPE_HANDLE, 1, &d->c->handle);
    rt_descriptor_set(d, b->graph->graph, DNN_ATTR_OPERATIONGRAPH_OPS,
                      DNN_TYPE_BACKEND_DESCRIPTOR, b->num_ops, b->op);
    rt_descriptor_finalize(d, b->graph->graph, "a graph");
    return !d->failed;
}

static bool has(unsigned with, RtFusionKind kind) {
    return (with >> kind & 1) != 0;
}

bool rt_cudnn_graph(RtDescriptors *d, const RtCall *call, unsigned with,
                    RtCudnnGraph *out) {
    Builder b = {.d = d, .call = call, .graph = out};
    int type = data_type(call->type);
    bool backward = has(with, RT_FUSED_BACKWARD);
    *out = (RtCudnnGraph){0};
    void *x = backward ? images(&b, RT_ROLE_NONE, DNN_DATA_FLOAT)
                       : images(&b, RT_ROLE_X, type);
    void *y = results(&b, RT_ROLE_Y, type);
    if (has(with, RT_FUSED_PROLOGUE) || has(with, RT_FUSED_PROLOGUE_WEIGHT))
        x = add_prologue(&b, x);
    add_conv(&b, x, weight(&b), y);
    if (has(with, RT_FUSED_STATISTICS))
        add_statistics(&b, y);
    if (backward)
        add_backward(&b, x);
    return graph_close(&b);
}

bool rt_cudnn_finalize_graph(RtDescriptors *d, int channels,
                             RtCudnnGraph *out) {
    Builder b = {.d = d, .graph = out};
    *out = (RtCudnnGraph){0};
    // clang-format off
    static const struct {
        int name, role, type;
    } rows[] = {
        {DNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC, RT_ROLE_SUM, DNN_DATA_FLOAT},
        {DNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC, RT_ROLE_SQUARES,
         DNN_DATA_FLOAT},
        {DNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC, RT_ROLE_SCALE,
         DNN_DATA_FLOAT},
        {DNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC, RT_ROLE_BIAS,
         DNN_DATA_FLOAT},
        {DNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC, RT_ROLE_UNUSED,
         DNN_DATA_FLOAT},
        {DNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC,
         RT_ROLE_UNUSED + 1, DNN_DATA_FLOAT},
        {DNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC,
         RT_ROLE_UNUSED + 2, DNN_DATA_FLOAT},
        {DNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC,
         RT_ROLE_UNUSED + 3, DNN_DATA_FLOAT},
        {DNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC, RT_ROLE_MEAN,
         DNN_DATA_FLOAT},
        {DNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC, RT_ROLE_INV_STD,
         DNN_DATA_FLOAT},
        {DNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC, RT_ROLE_EQ_SCALE,
         DNN_DATA_HALF},
        {DNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC, RT_ROLE_EQ_BIAS,
         DNN_DATA_HALF},
    };
    // clang-format on
    void *op = rt_descriptor(
        d, DNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR);
    rt_descriptor_enum(d, op, DNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE,
                       DNN_TYPE_BN_FINALIZE_STATS_MODE,
                       DNN_BN_FINALIZE_STATISTICS_TRAINING);
    rt_descriptor_enum(d, op, DNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC,
                       DNN_TYPE_DATA_TYPE, DNN_DATA_FLOAT);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        rt_descriptor_link(
            d, op, rows[i].name,
            row(&b, (RtRole)rows[i].role, rows[i].type, channels));
    rt_descriptor_link(d, op, DNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC,
                       scalar(&b, RT_ROLE_COUNT, DNN_DATA_INT64));
    rt_descriptor_link(d, op, DNN_ATTR_OPERATION_BN_FINALIZE_EPSILON_DESC,
                       scalar(&b, RT_ROLE_EPSILON, DNN_DATA_FLOAT));
    rt_descriptor_link(d, op,
                       DNN_ATTR_OPERATION_BN_FINALIZE_EXP_AVERATE_FACTOR_DESC,
                       scalar(&b, RT_ROLE_FACTOR, DNN_DATA_FLOAT));
    op_add(&b, op, "bn_finalize of a batch_norm");
    return graph_close(&b);
}
