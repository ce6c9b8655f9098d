// cuDNN: checks of shapes.  Tensors are channels-last, shapes follow from each
// other, and an operation computes a virtual tensor before others read it.
#include "tests/runtime/cuda/double/dnn.h"

#include <string.h>

#define SHAPE CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH

Number dnn_number(cudnnDataType_t type) {
    return type == CUDNN_DATA_HALF       ? NUMBER_F16
           : type == CUDNN_DATA_BFLOAT16 ? NUMBER_BF16
                                         : NUMBER_F32;
}

Tensor dnn_tensor(const Descriptor *d) {
    Tensor t = {.elements = 1};
    const Attribute *dim = dnn_attribute(d, CUDNN_ATTR_TENSOR_DIMENSIONS);
    const Attribute *stride = dnn_attribute(d, CUDNN_ATTR_TENSOR_STRIDES);
    for (int i = 0; i < 4; i++) {
        t.dim[i] = i < dim->count ? (int64_t)dim->value[i] : 1;
        t.stride[i] = i < stride->count ? (int64_t)stride->value[i] : 1;
        t.elements *= t.dim[i];
    }
    t.id = dnn_integer(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    t.type = (cudnnDataType_t)dnn_integer(d, CUDNN_ATTR_TENSOR_DATA_TYPE, 0);
    t.is_virtual = dnn_integer(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0);
    t.by_value = dnn_integer(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0);
    return t;
}

static cudnnStatus_t tensor_check(const Descriptor *d) {
    Tensor t = dnn_tensor(d);
    const int64_t stride[4] = {t.dim[1] * t.dim[2] * t.dim[3], 1,
                               t.dim[1] * t.dim[3], t.dim[1]};
    if (dnn_count(d, CUDNN_ATTR_TENSOR_DIMENSIONS) != 4 ||
        dnn_count(d, CUDNN_ATTR_TENSOR_STRIDES) != 4)
        return dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                        "a tensor that has not four dimensions");
    for (int i = 0; i < 4; i++)
        if (t.dim[i] < 1 || t.stride[i] != stride[i])
            return dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
                            "dimension %d is %lld with stride %lld", i,
                            (long long)t.dim[i], (long long)t.stride[i]);
    if (t.type != CUDNN_DATA_FLOAT && t.type != CUDNN_DATA_HALF &&
        t.type != CUDNN_DATA_BFLOAT16 &&
        !(t.type == CUDNN_DATA_INT64 && t.by_value))
        return dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "type %d",
                        (int)t.type);
    int64_t alignment = dnn_integer(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
    if (alignment < 1 || (alignment & (alignment - 1)) != 0)
        return dnn_fail(CUDNN_STATUS_BAD_PARAM, "an alignment to %lld",
                        (long long)alignment);
    if (t.is_virtual && t.by_value)
        return dnn_fail(CUDNN_STATUS_BAD_PARAM,
                        "a tensor both virtual and by value");
    return CUDNN_STATUS_SUCCESS;
}

// ---- operations ----

bool dnn_convolution(const Descriptor *op, Convolution *c) {
#define FIELDS(name, X, W, Y)                                                  \
    *c = (Convolution) {                                                       \
        op->kind,                                                              \
            dnn_link(op, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##X, 0),    \
            dnn_link(op, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##W, 0),    \
            dnn_link(op, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_##Y, 0),    \
            dnn_link(op, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_CONV_DESC,  \
                     0),                                                       \
            dnn_float(op, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_ALPHA, 1), \
            dnn_float(op, CUDNN_ATTR_OPERATION_CONVOLUTION_##name##_BETA, 0)   \
    }
    switch (op->kind) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        FIELDS(FORWARD, X, W, Y);
        return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        FIELDS(BWD_DATA, DX, W, DY);
        return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        FIELDS(BWD_FILTER, X, DW, DY);
        return true;
    default:
        return false;
    }
#undef FIELDS
}

static int64_t of_conv(const Descriptor *conv, cudnnBackendAttributeName_t name,
                       int i) {
    return (int64_t)dnn_attribute(conv, name)->value[i];
}

static cudnnStatus_t window_check(const Descriptor *conv) {
    for (int i = 0; i < 2; i++)
        if (of_conv(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i) < 1 ||
            of_conv(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, i) < 1)
            return dnn_fail(CUDNN_STATUS_BAD_PARAM,
                            "a window whose strides or dilations are none");
    return CUDNN_STATUS_SUCCESS;
}

// How many places a window of `size` has along a side.
static int64_t places(const Descriptor *conv, int i, int64_t side,
                      int64_t size) {
    int64_t reach =
        (size - 1) * of_conv(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
    int64_t padded = side +
                     of_conv(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i) +
                     of_conv(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i);
    return (padded - reach - 1) /
               of_conv(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i) +
           1;
}

static cudnnStatus_t convolution_check(const Convolution *c) {
    Tensor x = dnn_tensor(c->x), w = dnn_tensor(c->w), y = dnn_tensor(c->y);
    bool good = x.dim[0] == y.dim[0] && w.dim[0] == y.dim[1] &&
                x.dim[1] % w.dim[1] == 0 &&
                w.dim[0] % (x.dim[1] / w.dim[1]) == 0;
    for (int i = 0; i < 2; i++)
        good = good &&
               y.dim[2 + i] == places(c->conv, i, x.dim[2 + i], w.dim[2 + i]);
    if (good)
        return CUDNN_STATUS_SUCCESS;
    return dnn_fail(SHAPE,
                    "a convolution of %lldx%lldx%lldx%lld to "
                    "%lldx%lldx%lldx%lld",
                    (long long)x.dim[0], (long long)x.dim[1],
                    (long long)x.dim[2], (long long)x.dim[3],
                    (long long)y.dim[0], (long long)y.dim[1],
                    (long long)y.dim[2], (long long)y.dim[3]);
}

// Whether b has the shape of a, or is a row of its channels.
static bool fits(const Descriptor *a, const Descriptor *b) {
    Tensor s = dnn_tensor(a), t = dnn_tensor(b);
    return memcmp(s.dim, t.dim, sizeof s.dim) == 0 ||
           (t.dim[1] == s.dim[1] && t.elements == t.dim[1]);
}

static cudnnStatus_t pointwise_check(const Descriptor *op) {
    const Descriptor *x = dnn_link(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0);
    const Descriptor *b = dnn_link(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 0);
    const Descriptor *y = dnn_link(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 0);
    const Descriptor *dx =
        dnn_link(op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, 0);
    const Descriptor *dy =
        dnn_link(op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, 0);
    int64_t mode = dnn_integer(
        dnn_link(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0),
        CUDNN_ATTR_POINTWISE_MODE, -1);
    bool two = mode == CUDNN_POINTWISE_ADD || mode == CUDNN_POINTWISE_MUL ||
               mode == CUDNN_POINTWISE_SUB;
    bool good = mode == CUDNN_POINTWISE_RELU_BWD
                    ? x && dx && dy && !b && !y && fits(x, dx) && fits(x, dy)
                    : x && y && !dx && !dy && (b != NULL) == two &&
                          fits(x, y) && (b == NULL || fits(x, b));
    if (!two && mode != CUDNN_POINTWISE_RELU_FWD &&
        mode != CUDNN_POINTWISE_RELU_BWD && mode != CUDNN_POINTWISE_IDENTITY)
        return dnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "pointwise mode %lld",
                        (long long)mode);
    return good ? CUDNN_STATUS_SUCCESS
                : dnn_fail(SHAPE, "operands of pointwise mode %lld",
                           (long long)mode);
}

// Every tensor of these operations but the first is a row of its channels.
static cudnnStatus_t rows_check(const Descriptor *op,
                                cudnnBackendAttributeName_t first) {
    const Descriptor *x = dnn_link(op, first, 0);
    for (const Attribute *a = op->first; a != NULL; a = a->next) {
        const Descriptor *t = dnn_link(op, a->name, 0);
        if (a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && !fits(x, t) &&
            !dnn_tensor(t).by_value)
            return dnn_fail(SHAPE, "attribute %d", (int)a->name);
    }
    return CUDNN_STATUS_SUCCESS;
}

// ---- graphs ----

enum { MAX_TENSORS = 128 };

typedef struct {
    const Descriptor *made[MAX_TENSORS], *known[MAX_TENSORS];
    int count, num_known;
} Made;

static bool is_made(const Made *m, const Descriptor *t) {
    for (int i = 0; i < m->count; i++)
        if (m->made[i] == t)
            return true;
    return false;
}

// A pack tells tensors apart by their identifiers.
static bool is_another(Made *m, const Descriptor *t) {
    for (int i = 0; i < m->num_known; i++)
        if (dnn_tensor(m->known[i]).id == dnn_tensor(t).id)
            return m->known[i] != t;
    if (m->num_known < MAX_TENSORS)
        m->known[m->num_known++] = t;
    return false;
}

static bool is_output(cudnnBackendAttributeName_t name) {
    switch (name) {
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW:
    case CUDNN_ATTR_OPERATION_POINTWISE_YDESC:
    case CUDNN_ATTR_OPERATION_POINTWISE_DXDESC:
        return true;
    default:
        return false;
    }
}

// An operation computes a virtual tensor before others read it.
static cudnnStatus_t graph_check(const Descriptor *g) {
    Made m = {.count = 0};
    for (int i = 0; i < dnn_count(g, CUDNN_ATTR_OPERATIONGRAPH_OPS); i++) {
        const Descriptor *op = dnn_link(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
        for (int k = 0; k < i; k++)
            if (dnn_link(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, k) == op)
                return dnn_fail(CUDNN_STATUS_BAD_PARAM,
                                "operation %d is operation %d again", i, k);
        for (const Attribute *a = op->first; a != NULL; a = a->next) {
            const Descriptor *t = dnn_link(op, a->name, 0);
            if (a->type != CUDNN_TYPE_BACKEND_DESCRIPTOR ||
                t->kind != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
                continue;
            if (is_another(&m, t))
                return dnn_fail(CUDNN_STATUS_BAD_PARAM,
                                "two tensors with identifier %lld",
                                (long long)dnn_tensor(t).id);
            if (is_output(a->name)) {
                m.made[m.count++] = t;
            } else if (dnn_tensor(t).is_virtual && !is_made(&m, t)) {
                return dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
                                "operation %d reads what nothing computes", i);
            }
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t pack_check(const Descriptor *pack) {
    return dnn_count(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) ==
                   dnn_count(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
               ? CUDNN_STATUS_SUCCESS
               : dnn_fail(CUDNN_STATUS_BAD_PARAM,
                          "not as many pointers as identifiers");
}

cudnnStatus_t dnn_check(const Descriptor *d) {
    Convolution c;
    if (dnn_convolution(d, &c))
        return convolution_check(&c);
    switch (d->kind) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        return tensor_check(d);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
        return window_check(d);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        return pack_check(d);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return pointwise_check(d);
    case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
        return rows_check(d, CUDNN_ATTR_OPERATION_GENSTATS_XDESC);
    case CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR:
        return rows_check(d, CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC);
    case CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR:
        return rows_check(d, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        return graph_check(d);
    default:
        return CUDNN_STATUS_SUCCESS;
    }
}
