// cuDNN's work: reads the inputs of a graph, computes it in f32 in plain loops,
// and rounds stored results to their types.
#include "tests/runtime/cuda/double/dnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 96 };

// A tensor of the graph while the graph runs.
typedef struct {
    const Descriptor *of;
    Tensor t;
    char *at;       // where it is stored; NULL: nowhere
    uint64_t value; // one by value, as it was when the plan was executed
    float *number;  // in memory's order; NULL until it is needed
} Value;

typedef struct {
    Work work;
    Descriptor *graph;
    const Engine *engine;
    int count;
    Value value[MAX_TENSORS];
} Job;

// ---- values ----

static Value *value_of(Job *j, const Descriptor *d) {
    for (int i = 0; i < j->count; i++)
        if (j->value[i].of == d)
            return &j->value[i];
    complain("cuDNN: a graph of more than %d tensors", MAX_TENSORS);
}

static Number stored_as(const Value *v) {
    return dnn_number(v->t.type);
}

// The numbers of a tensor that is read.
static float *numbers(Job *j, const Descriptor *d) {
    Value *v = value_of(j, d);
    if (v->number != NULL)
        return v->number;
    Number n = stored_as(v);
    if (n == NUMBER_F32 && j->engine->inexact && !v->t.by_value)
        n = NUMBER_TF32;
    v->number = take((size_t)v->t.elements * sizeof(float));
    const void *from = v->t.by_value ? (const void *)&v->value : v->at;
    for (int64_t i = 0; i < v->t.elements; i++)
        v->number[i] = v->t.type == CUDNN_DATA_INT64
                           ? (float)(int64_t)v->value
                           : number_get(n, from, (size_t)i);
    return v->number;
}

// Room for the numbers of a tensor that is computed.
static float *room(Job *j, const Descriptor *d) {
    Value *v = value_of(j, d);
    free(v->number);
    return v->number = take((size_t)v->t.elements * sizeof(float));
}

// Rounds a result and stores it.
static void keep(Job *j, const Descriptor *d) {
    Value *v = value_of(j, d);
    for (int64_t i = 0; i < v->t.elements; i++) {
        v->number[i] = number_round(stored_as(v), v->number[i]);
        if (v->at != NULL)
            number_put(stored_as(v), v->at, (size_t)i, v->number[i]);
    }
}

// ---- convolutions ----

// Where a window lies: numbers of one channel of x and w, side by side.
typedef struct {
    Tensor x, w, y;
    int64_t stride[2], dilation[2], pad[2];
} Window;

static void pair_get(int64_t to[2], const Descriptor *conv,
                     cudnnBackendAttributeName_t name) {
    memcpy(to, dnn_attribute(conv, name)->value, 2 * sizeof *to);
}

static Window window_of(const Convolution *c) {
    Window w = {
        .x = dnn_tensor(c->x), .w = dnn_tensor(c->w), .y = dnn_tensor(c->y)};
    pair_get(w.stride, c->conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    pair_get(w.dilation, c->conv, CUDNN_ATTR_CONVOLUTION_DILATIONS);
    pair_get(w.pad, c->conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    return w;
}

// Updates a row of channels of x or of w, or a number of y, from the other two.
typedef void Row(float *restrict x, float *restrict w, float *restrict y,
                 int64_t channels);

static void row_forward(float *restrict x, float *restrict w, float *restrict y,
                        int64_t channels) {
    float sum = 0;
    _Pragma("omp simd reduction(+ : sum)") for (int64_t c = 0; c < channels;
                                                c++) sum += x[c] * w[c];
    *y += sum;
}

static void row_data(float *restrict x, float *restrict w, float *restrict y,
                     int64_t channels) {
    for (int64_t c = 0; c < channels; c++)
        x[c] += w[c] * *y;
}

static void row_filter(float *restrict x, float *restrict w, float *restrict y,
                       int64_t channels) {
    for (int64_t c = 0; c < channels; c++)
        w[c] += x[c] * *y;
}

// One place of y: every row of its window that lies in the image.
static void place_run(const Window *g, Row *row, int64_t n, const int64_t at[2],
                      float *x, float *w, float *y) {
    const int64_t *size = &g->w.dim[2], *side = &g->x.dim[2];
    int64_t channels = g->w.dim[1], groups = g->x.dim[1] / channels;
    int64_t each = g->w.dim[0] / groups;
    for (int64_t r = 0; r < size[0]; r++)
        for (int64_t s = 0; s < size[1]; s++) {
            int64_t h = at[0] * g->stride[0] + r * g->dilation[0] - g->pad[0];
            int64_t v = at[1] * g->stride[1] + s * g->dilation[1] - g->pad[1];
            if (h < 0 || v < 0 || h >= side[0] || v >= side[1])
                continue;
            float *from = x + ((n * side[0] + h) * side[1] + v) * g->x.dim[1];
            for (int64_t k = 0; k < g->w.dim[0]; k++)
                row(from + k / each * channels,
                    w + ((k * size[0] + r) * size[1] + s) * channels, y + k,
                    channels);
        }
}

static void convolution_sum(const Window *g, Row *row, float *x, float *w,
                            float *y) {
    for (int64_t n = 0; n < g->y.dim[0]; n++)
        for (int64_t i = 0; i < g->y.dim[2]; i++)
            for (int64_t k = 0; k < g->y.dim[3]; k++) {
                place_run(g, row, n, (int64_t[]){i, k}, x, w, y);
                y += g->w.dim[0];
            }
}

// An engine whose sums come in another order each time.
static void vary(float *number, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        number[i] *= 1 + 0x1p-18f * (float)random_below(3);
}

static void convolution_run(Job *j, const Convolution *c) {
    Window g = window_of(c);
    bool data =
        c->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    bool filter =
        c->kind ==
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
    const Descriptor *out = data ? c->x : filter ? c->w : c->y;
    const int64_t count = dnn_tensor(out).elements;
    float *before = NULL, *x, *w, *y;
    if (c->beta != 0) {
        before = numbers(j, out);
        value_of(j, out)->number = NULL;
    }
    float *to = room(j, out);
    x = data ? to : numbers(j, c->x);
    w = filter ? to : numbers(j, c->w);
    y = data || filter ? numbers(j, c->y) : to;
    convolution_sum(&g,
                    data     ? row_data
                    : filter ? row_filter
                             : row_forward,
                    x, w, y);
    if (j->engine->varies)
        vary(to, count);
    for (int64_t i = 0; i < count; i++)
        to[i] = c->alpha * to[i] + (before ? c->beta * before[i] : 0);
    free(before);
    keep(j, out);
}

// ---- other operations ----

#define OF(name) dnn_link(op, CUDNN_ATTR_OPERATION_##name, 0)

// The library does not promise that NaN passes relu: of its engines only one
// says so (STRICT_NAN_PROP), and that fuses nothing.
static float apply(int64_t mode, float x, float b) {
    switch (mode) {
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_RELU_FWD:
        return x > 0 ? x : 0;
    case CUDNN_POINTWISE_RELU_BWD:
        return x > 0 ? b : 0;
    default:
        return x;
    }
}

// A row of channels stands beside each place.
static void pointwise_run(Job *j, const Descriptor *op) {
    int64_t mode =
        dnn_integer(OF(POINTWISE_PW_DESCRIPTOR), CUDNN_ATTR_POINTWISE_MODE, 0);
    bool backward = mode == CUDNN_POINTWISE_RELU_BWD;
    const Descriptor *other =
        backward ? OF(POINTWISE_DYDESC) : OF(POINTWISE_BDESC);
    const Descriptor *out =
        backward ? OF(POINTWISE_DXDESC) : OF(POINTWISE_YDESC);
    const float *x = numbers(j, OF(POINTWISE_XDESC));
    const float *b = other != NULL ? numbers(j, other) : NULL;
    const int64_t elements = b != NULL ? dnn_tensor(other).elements : 1;
    float *y = room(j, out);
    for (int64_t i = 0; i < dnn_tensor(out).elements; i++)
        y[i] = apply(mode, x[i], b != NULL ? b[i % elements] : 0);
    keep(j, out);
}

static void statistics_run(Job *j, const Descriptor *op) {
    const Descriptor *from = OF(GENSTATS_XDESC);
    Tensor t = dnn_tensor(from);
    const float *x = numbers(j, from);
    float *sum = room(j, OF(GENSTATS_SUMDESC));
    float *squares = room(j, OF(GENSTATS_SQSUMDESC));
    for (int64_t i = 0; i < t.elements; i++) {
        sum[i % t.dim[1]] += x[i];
        squares[i % t.dim[1]] += x[i] * x[i];
    }
    keep(j, OF(GENSTATS_SUMDESC));
    keep(j, OF(GENSTATS_SQSUMDESC));
}

// Averages the old values and the new ones.
static void average_run(Job *j, const Descriptor *before,
                        const Descriptor *after, const float *now,
                        float factor) {
    const float *was = numbers(j, before);
    float *to = room(j, after);
    for (int64_t c = 0; c < dnn_tensor(after).elements; c++)
        to[c] = (1 - factor) * was[c] + factor * now[c];
    keep(j, after);
}

static void forms_run(Job *j, const Descriptor *op) {
    const int64_t channels = dnn_tensor(OF(BN_FINALIZE_Y_SUM_DESC)).dim[1];
    const float *sum = numbers(j, OF(BN_FINALIZE_Y_SUM_DESC));
    const float *squares = numbers(j, OF(BN_FINALIZE_Y_SQ_SUM_DESC));
    const float *scale = numbers(j, OF(BN_FINALIZE_SCALE_DESC));
    const float *bias = numbers(j, OF(BN_FINALIZE_BIAS_DESC));
    const float count = *numbers(j, OF(BN_FINALIZE_ACCUM_COUNT_DESC));
    const float epsilon = *numbers(j, OF(BN_FINALIZE_EPSILON_DESC));
    const float factor = *numbers(j, OF(BN_FINALIZE_EXP_AVERATE_FACTOR_DESC));
    float *mean = room(j, OF(BN_FINALIZE_SAVED_MEAN_DESC));
    float *deviation = room(j, OF(BN_FINALIZE_SAVED_INV_STD_DESC));
    float *by = room(j, OF(BN_FINALIZE_EQ_SCALE_DESC));
    float *plus = room(j, OF(BN_FINALIZE_EQ_BIAS_DESC));
    float *variance = take((size_t)channels * sizeof *variance);
    for (int64_t c = 0; c < channels; c++) {
        mean[c] = sum[c] / count;
        variance[c] = fmaxf(squares[c] / count - mean[c] * mean[c], 0);
        deviation[c] = 1 / sqrtf(variance[c] + epsilon);
        by[c] = scale[c] * deviation[c];
        plus[c] = bias[c] - mean[c] * by[c];
        variance[c] *= count / (count - 1);
    }
    average_run(j, OF(BN_FINALIZE_PREV_RUNNING_MEAN_DESC),
                OF(BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC), mean, factor);
    average_run(j, OF(BN_FINALIZE_PREV_RUNNING_VAR_DESC),
                OF(BN_FINALIZE_UPDATED_RUNNING_VAR_DESC), variance, factor);
    keep(j, OF(BN_FINALIZE_SAVED_MEAN_DESC));
    keep(j, OF(BN_FINALIZE_SAVED_INV_STD_DESC));
    keep(j, OF(BN_FINALIZE_EQ_SCALE_DESC));
    keep(j, OF(BN_FINALIZE_EQ_BIAS_DESC));
    free(variance);
}

static void backward_run(Job *j, const Descriptor *op) {
    const Tensor t = dnn_tensor(OF(BN_BWD_WEIGHTS_X_DESC));
    const int64_t channels = t.dim[1];
    const float *x = numbers(j, OF(BN_BWD_WEIGHTS_X_DESC));
    const float *dy = numbers(j, OF(BN_BWD_WEIGHTS_DY_DESC));
    const float *mean = numbers(j, OF(BN_BWD_WEIGHTS_MEAN_DESC));
    const float *deviation = numbers(j, OF(BN_BWD_WEIGHTS_INVSTD_DESC));
    const float *scale = numbers(j, OF(BN_BWD_WEIGHTS_BN_SCALE_DESC));
    float *d_scale = room(j, OF(BN_BWD_WEIGHTS_DBN_SCALE_DESC));
    float *d_bias = room(j, OF(BN_BWD_WEIGHTS_DBN_BIAS_DESC));
    float *by_dy = room(j, OF(BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC));
    float *by_x = room(j, OF(BN_BWD_WEIGHTS_EQ_X_SCALE_DESC));
    float *plus = room(j, OF(BN_BWD_WEIGHTS_EQ_BIAS));
    const float count = (float)(t.elements / channels);
    for (int64_t i = 0; i < t.elements; i++) {
        int64_t c = i % channels;
        d_scale[c] += dy[i] * (x[i] - mean[c]) * deviation[c];
        d_bias[c] += dy[i];
    }
    for (int64_t c = 0; c < channels; c++) {
        by_dy[c] = scale[c] * deviation[c];
        by_x[c] = -by_dy[c] * deviation[c] * d_scale[c] / count;
        plus[c] = -by_dy[c] * d_bias[c] / count - by_x[c] * mean[c];
    }
    keep(j, OF(BN_BWD_WEIGHTS_DBN_SCALE_DESC));
    keep(j, OF(BN_BWD_WEIGHTS_DBN_BIAS_DESC));
    keep(j, OF(BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC));
    keep(j, OF(BN_BWD_WEIGHTS_EQ_X_SCALE_DESC));
    keep(j, OF(BN_BWD_WEIGHTS_EQ_BIAS));
}

#undef OF

// ---- jobs ----

static void operation_run(Job *j, const Descriptor *op) {
    Convolution c;
    if (dnn_convolution(op, &c))
        convolution_run(j, &c);
    else if (op->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        pointwise_run(j, op);
    else if (op->kind == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR)
        statistics_run(j, op);
    else if (op->kind == CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR)
        backward_run(j, op);
    else
        forms_run(j, op);
}

// The workspace is used, all of it, before anything is read.
static void job_run(Work *w) {
    Job *j = (Job *)(void *)w;
    for (int i = 0; i < j->count; i++) {
        const Value *v = &j->value[i];
        if (v->at != NULL)
            device_must_hold(w->what, v->at,
                             (size_t)v->t.elements *
                                 number_bytes(stored_as(v)));
    }
    if (w->workspace_bytes > 0) {
        device_must_hold("a workspace", w->workspace, w->workspace_bytes);
        memset(w->workspace, 0xff, w->workspace_bytes);
    }
    for (int i = 0; i < dnn_count(j->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS); i++)
        operation_run(j, dnn_link(j->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i));
    for (int i = 0; i < j->count; i++) {
        free(j->value[i].number);
        j->value[i].number = NULL;
    }
}

static void job_release(Work *w) {
    dnn_drop(((Job *)(void *)w)->graph);
}

// ---- executing ----

// The pointer that a pack has for an identifier; false: none.
static bool pack_get(const Descriptor *pack, int64_t id, char **to) {
    const Attribute *ids =
        dnn_attribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const Attribute *at =
        dnn_attribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (int64_t i = 0; i < ids->count; i++)
        if ((int64_t)ids->value[i] == id) {
            *to = (char *)(uintptr_t)at->value[i];
            return *to != NULL;
        }
    return false;
}

static cudnnStatus_t value_add(Job *j, const Descriptor *of,
                               const Descriptor *pack) {
    for (int i = 0; i < j->count; i++)
        if (j->value[i].of == of)
            return CUDNN_STATUS_SUCCESS;
    if (j->count == MAX_TENSORS)
        complain("cuDNN: a graph of more than %d tensors", MAX_TENSORS);
    Value *v = &j->value[j->count++];
    *v = (Value){.of = of, .t = dnn_tensor(of)};
    if (v->t.is_virtual)
        return CUDNN_STATUS_SUCCESS;
    if (!pack_get(pack, v->t.id, &v->at))
        return dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                        "no address for tensor %lld", (long long)v->t.id);
    if (v->t.by_value) {
        memcpy(&v->value, v->at, v->t.type == CUDNN_DATA_INT64 ? 8 : 4);
        v->at = NULL;
    } else if ((uintptr_t)v->at % 16 != 0) {
        return dnn_fail(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                        "tensor %lld at %p", (long long)v->t.id, (void *)v->at);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t values_add(Job *j, const Descriptor *pack) {
    for (int i = 0; i < dnn_count(j->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
         i++) {
        const Descriptor *op =
            dnn_link(j->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
        for (const Attribute *a = op->first; a != NULL; a = a->next) {
            const Descriptor *t = dnn_link(op, a->name, 0);
            if (a->type != CUDNN_TYPE_BACKEND_DESCRIPTOR ||
                t->kind != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
                continue;
            cudnnStatus_t status = value_add(j, t, pack);
            if (status != CUDNN_STATUS_SUCCESS)
                return status;
        }
    }
    return CUDNN_STATUS_SUCCESS;
}

// By how many products the stand-in's clock goes on.
static double job_seconds(const Job *j) {
    double products = 0;
    for (int i = 0; i < dnn_count(j->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
         i++) {
        Convolution c;
        if (dnn_convolution(
                dnn_link(j->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, i), &c))
            products += (double)dnn_tensor(c.y).elements *
                        (double)dnn_tensor(c.w).elements /
                        (double)dnn_tensor(c.w).dim[0];
    }
    return (3e-6 + products / 1e14) * j->engine->speed;
}

static Job *job_new(const Descriptor *plan) {
    const Descriptor *engine =
        dnn_link(dnn_link(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0),
                 CUDNN_ATTR_ENGINECFG_ENGINE, 0);
    Job *j = take(sizeof *j);
    j->graph = dnn_link(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0);
    j->engine =
        dnn_engine(dnn_integer(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1));
    j->graph->users++;
    j->work = (Work){.users = 1,
                     .what = "a plan of cuDNN",
                     .run = job_run,
                     .release = job_release};
    j->work.seconds = job_seconds(j);
    return j;
}

cudnnStatus_t dnn_run(cudnnHandle_t handle, Descriptor *plan,
                      const Descriptor *pack) {
    if (handle->stream == NULL)
        complain("cuDNN: a plan in the legacy default stream");
    if (dnn_attribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE) == NULL)
        return dnn_fail(CUDNN_STATUS_BAD_PARAM, "a plan that has no handle");
    if (!plan->has_run && capture_forbids() != CUDA_SUCCESS)
        return dnn_fail(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER,
                        "code is loaded while a stream is being captured");
    if (!plan->has_run && !code_take())
        return dnn_fail(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER,
                        "code cannot be loaded");
    plan->has_run = true;
    Job *j = job_new(plan);
    j->work.workspace = (char *)(uintptr_t)dnn_integer(
        pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0);
    j->work.workspace_bytes = (size_t)j->engine->workspace;
    cudnnStatus_t status = values_add(j, pack);
    if (status == CUDNN_STATUS_SUCCESS && j->work.workspace_bytes > 0 &&
        j->work.workspace == NULL)
        status = dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no workspace");
    if (status != CUDNN_STATUS_SUCCESS) {
        work_drop(&j->work);
        return status;
    }
    return stream_add((CUstream)handle->stream, &j->work) == CUDA_SUCCESS
               ? CUDNN_STATUS_SUCCESS
               : dnn_fail(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER,
                          "the stream takes no work");
}
