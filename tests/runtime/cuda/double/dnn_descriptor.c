// cuDNN's descriptors: which attributes each kind has, and their values.
#include "tests/runtime/cuda/double/dnn.h"

#include <stdlib.h>
#include <string.h>

// The type of an attribute, its most values, and whether it is required.
typedef struct {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t most;
    bool needed;
} Rule;

typedef struct {
    cudnnBackendDescriptorType_t kind;
    Rule rule[20];
} Rules;

// clang-format off
#define KIND(name) CUDNN_BACKEND_##name##_DESCRIPTOR
#define NEEDS(name, type, most) {CUDNN_ATTR_##name, CUDNN_TYPE_##type, most, true}
#define TAKES(name, type, most) {CUDNN_ATTR_##name, CUDNN_TYPE_##type, most, false}
#define LINK(name) NEEDS(name, BACKEND_DESCRIPTOR, 1)
#define MAY_LINK(name) TAKES(name, BACKEND_DESCRIPTOR, 1)
static const Rules rules[] = {
    {KIND(TENSOR), {
        NEEDS(TENSOR_DATA_TYPE, DATA_TYPE, 1),
        NEEDS(TENSOR_DIMENSIONS, INT64, 8),
        NEEDS(TENSOR_STRIDES, INT64, 8),
        NEEDS(TENSOR_UNIQUE_ID, INT64, 1),
        NEEDS(TENSOR_BYTE_ALIGNMENT, INT64, 1),
        TAKES(TENSOR_IS_VIRTUAL, BOOLEAN, 1),
        TAKES(TENSOR_IS_BY_VALUE, BOOLEAN, 1)}},
    {KIND(CONVOLUTION), {
        NEEDS(CONVOLUTION_COMP_TYPE, DATA_TYPE, 1),
        NEEDS(CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1),
        NEEDS(CONVOLUTION_SPATIAL_DIMS, INT64, 1),
        NEEDS(CONVOLUTION_PRE_PADDINGS, INT64, 2),
        NEEDS(CONVOLUTION_POST_PADDINGS, INT64, 2),
        NEEDS(CONVOLUTION_FILTER_STRIDES, INT64, 2),
        NEEDS(CONVOLUTION_DILATIONS, INT64, 2)}},
    {KIND(OPERATION_CONVOLUTION_FORWARD), {
        LINK(OPERATION_CONVOLUTION_FORWARD_CONV_DESC),
        LINK(OPERATION_CONVOLUTION_FORWARD_X),
        LINK(OPERATION_CONVOLUTION_FORWARD_W),
        LINK(OPERATION_CONVOLUTION_FORWARD_Y),
        TAKES(OPERATION_CONVOLUTION_FORWARD_ALPHA, FLOAT, 1),
        TAKES(OPERATION_CONVOLUTION_FORWARD_BETA, FLOAT, 1)}},
    {KIND(OPERATION_CONVOLUTION_BACKWARD_DATA), {
        LINK(OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC),
        LINK(OPERATION_CONVOLUTION_BWD_DATA_DX),
        LINK(OPERATION_CONVOLUTION_BWD_DATA_W),
        LINK(OPERATION_CONVOLUTION_BWD_DATA_DY),
        TAKES(OPERATION_CONVOLUTION_BWD_DATA_ALPHA, FLOAT, 1),
        TAKES(OPERATION_CONVOLUTION_BWD_DATA_BETA, FLOAT, 1)}},
    {KIND(OPERATION_CONVOLUTION_BACKWARD_FILTER), {
        LINK(OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC),
        LINK(OPERATION_CONVOLUTION_BWD_FILTER_X),
        LINK(OPERATION_CONVOLUTION_BWD_FILTER_DW),
        LINK(OPERATION_CONVOLUTION_BWD_FILTER_DY),
        TAKES(OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, FLOAT, 1),
        TAKES(OPERATION_CONVOLUTION_BWD_FILTER_BETA, FLOAT, 1)}},
    {KIND(POINTWISE), {
        NEEDS(POINTWISE_MODE, POINTWISE_MODE, 1),
        NEEDS(POINTWISE_MATH_PREC, DATA_TYPE, 1)}},
    {KIND(OPERATION_POINTWISE), {
        LINK(OPERATION_POINTWISE_PW_DESCRIPTOR),
        MAY_LINK(OPERATION_POINTWISE_XDESC),
        MAY_LINK(OPERATION_POINTWISE_BDESC),
        MAY_LINK(OPERATION_POINTWISE_YDESC),
        MAY_LINK(OPERATION_POINTWISE_DXDESC),
        MAY_LINK(OPERATION_POINTWISE_DYDESC)}},
    {KIND(OPERATION_GEN_STATS), {
        NEEDS(OPERATION_GENSTATS_MODE, GENSTATS_MODE, 1),
        NEEDS(OPERATION_GENSTATS_MATH_PREC, DATA_TYPE, 1),
        LINK(OPERATION_GENSTATS_XDESC),
        LINK(OPERATION_GENSTATS_SUMDESC),
        LINK(OPERATION_GENSTATS_SQSUMDESC)}},
    {KIND(OPERATION_BN_FINALIZE_STATISTICS), {
        NEEDS(OPERATION_BN_FINALIZE_STATS_MODE, BN_FINALIZE_STATS_MODE, 1),
        NEEDS(OPERATION_BN_FINALIZE_MATH_PREC, DATA_TYPE, 1),
        LINK(OPERATION_BN_FINALIZE_Y_SUM_DESC),
        LINK(OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC),
        LINK(OPERATION_BN_FINALIZE_SCALE_DESC),
        LINK(OPERATION_BN_FINALIZE_BIAS_DESC),
        LINK(OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC),
        LINK(OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC),
        LINK(OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC),
        LINK(OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC),
        LINK(OPERATION_BN_FINALIZE_SAVED_MEAN_DESC),
        LINK(OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC),
        LINK(OPERATION_BN_FINALIZE_EQ_SCALE_DESC),
        LINK(OPERATION_BN_FINALIZE_EQ_BIAS_DESC),
        LINK(OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC),
        LINK(OPERATION_BN_FINALIZE_EPSILON_DESC),
        LINK(OPERATION_BN_FINALIZE_EXP_AVERATE_FACTOR_DESC)}},
    {KIND(OPERATION_BN_BWD_WEIGHTS), {
        NEEDS(OPERATION_BN_BWD_WEIGHTS_MATH_PREC, DATA_TYPE, 1),
        LINK(OPERATION_BN_BWD_WEIGHTS_MEAN_DESC),
        LINK(OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC),
        LINK(OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC),
        LINK(OPERATION_BN_BWD_WEIGHTS_X_DESC),
        LINK(OPERATION_BN_BWD_WEIGHTS_DY_DESC),
        LINK(OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC),
        LINK(OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC),
        LINK(OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC),
        LINK(OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC),
        LINK(OPERATION_BN_BWD_WEIGHTS_EQ_BIAS)}},
    {KIND(OPERATIONGRAPH), {
        NEEDS(OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 32),
        TAKES(OPERATIONGRAPH_HANDLE, HANDLE, 1)}},
    {KIND(DEVICEPROP), {
        NEEDS(DEVICEPROP_JSON_REPRESENTATION, CHAR, 8192)}},
    {KIND(ENGINEHEUR), {
        LINK(ENGINEHEUR_OPERATION_GRAPH),
        NEEDS(ENGINEHEUR_MODE, HEUR_MODE, 1),
        MAY_LINK(ENGINEHEUR_DEVICEPROP)}},
    {KIND(ENGINE), {
        LINK(ENGINE_OPERATION_GRAPH),
        NEEDS(ENGINE_GLOBAL_INDEX, INT64, 1),
        MAY_LINK(ENGINE_DEVICEPROP)}},
    {KIND(ENGINECFG), {
        LINK(ENGINECFG_ENGINE)}},
    {KIND(EXECUTION_PLAN), {
        LINK(EXECUTION_PLAN_ENGINE_CONFIG),
        TAKES(EXECUTION_PLAN_HANDLE, HANDLE, 1)}},
    {KIND(VARIANT_PACK), {
        NEEDS(VARIANT_PACK_UNIQUE_IDS, INT64, 64),
        NEEDS(VARIANT_PACK_DATA_POINTERS, VOID_PTR, 64),
        TAKES(VARIANT_PACK_WORKSPACE, VOID_PTR, 1)}},
};
#undef KIND
#undef NEEDS
#undef TAKES
#undef LINK
#undef MAY_LINK
// clang-format on

static const Rules *rules_of(cudnnBackendDescriptorType_t kind) {
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].kind == kind)
            return &rules[i];
    return NULL;
}

static size_t size_of(cudnnBackendAttributeType_t type) {
    switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return sizeof(void *);
    case CUDNN_TYPE_INT64:
        return sizeof(int64_t);
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_CHAR:
        return 1;
    default:
        return 4; // floats and enumerations
    }
}

Descriptor *dnn_new(cudnnBackendDescriptorType_t kind) {
    Descriptor *d = take(sizeof *d);
    *d = (Descriptor){.kind = kind, .users = 1};
    return rules_of(kind) != NULL ? d : (free(d), NULL);
}

static void attribute_free(Attribute *a) {
    for (int64_t i = 0;
         a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < a->count; i++)
        dnn_drop((Descriptor *)(uintptr_t)a->value[i]);
    free(a);
}

void dnn_drop(Descriptor *d) {
    if (d == NULL || --d->users > 0)
        return;
    while (d->first != NULL) {
        Attribute *a = d->first;
        d->first = a->next;
        attribute_free(a);
    }
    free(d);
}

static cudnnStatus_t links_check(int64_t count, const void *value) {
    Descriptor *const *other = value;
    for (int64_t i = 0; i < count; i++) {
        if (other[i] == NULL)
            return dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                            "a descriptor is NULL");
        if (!other[i]->final)
            return dnn_fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                            "descriptor of kind %d is not finalized",
                            (int)other[i]->kind);
    }
    for (int64_t i = 0; i < count; i++)
        other[i]->users++;
    return CUDNN_STATUS_SUCCESS;
}

static void attribute_put(Descriptor *d, Attribute *a) {
    Attribute **at = &d->first;
    while (*at != NULL && (*at)->name != a->name)
        at = &(*at)->next;
    Attribute *was = *at;
    a->next = was != NULL ? was->next : NULL;
    *at = a;
    if (was != NULL)
        attribute_free(was);
}

cudnnStatus_t dnn_set(Descriptor *d, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type, int64_t count,
                      const void *value) {
    const Rule *r = rules_of(d->kind)->rule;
    while (r->most > 0 && r->name != name)
        r++;
    if (d->final || r->most == 0)
        return dnn_fail(CUDNN_STATUS_NOT_SUPPORTED,
                        "attribute %d of kind %d cannot be set", (int)name,
                        (int)d->kind);
    if (r->type != type)
        return dnn_fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                        "attribute %d is not of type %d", (int)name, (int)type);
    if (count < 1 || count > r->most || value == NULL)
        return dnn_fail(CUDNN_STATUS_BAD_PARAM,
                        "attribute %d cannot have %lld elements", (int)name,
                        (long long)count);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        cudnnStatus_t status = links_check(count, value);
        if (status != CUDNN_STATUS_SUCCESS)
            return status;
    }
    size_t bytes = (size_t)count * size_of(type);
    Attribute *a = take(sizeof *a + bytes + sizeof a->value[0]);
    *a = (Attribute){.name = name, .type = type, .count = count};
    memcpy(a->value, value, bytes);
    attribute_put(d, a);
    return CUDNN_STATUS_SUCCESS;
}

const Attribute *dnn_attribute(const Descriptor *d,
                               cudnnBackendAttributeName_t name) {
    const Attribute *a = d->first;
    while (a != NULL && a->name != name)
        a = a->next;
    return a;
}

int64_t dnn_integer(const Descriptor *d, cudnnBackendAttributeName_t name,
                    int64_t otherwise) {
    const Attribute *a = dnn_attribute(d, name);
    int64_t value = 0;
    if (a == NULL)
        return otherwise;
    memcpy(&value, a->value, size_of(a->type));
    return value;
}

float dnn_float(const Descriptor *d, cudnnBackendAttributeName_t name,
                float otherwise) {
    const Attribute *a = dnn_attribute(d, name);
    float value = otherwise;
    if (a != NULL)
        memcpy(&value, a->value, sizeof value);
    return value;
}

Descriptor *dnn_link(const Descriptor *d, cudnnBackendAttributeName_t name,
                     int i) {
    const Attribute *a = dnn_attribute(d, name);
    if (a == NULL || i >= a->count)
        return NULL;
    return (Descriptor *)(uintptr_t)a->value[i];
}

int64_t dnn_count(const Descriptor *d, cudnnBackendAttributeName_t name) {
    const Attribute *a = dnn_attribute(d, name);
    return a != NULL ? a->count : 0;
}

cudnnStatus_t dnn_complete(const Descriptor *d) {
    for (const Rule *r = rules_of(d->kind)->rule; r->most > 0; r++)
        if (r->needed && dnn_attribute(d, r->name) == NULL)
            return dnn_fail(CUDNN_STATUS_BAD_PARAM,
                            "attribute %d of kind %d is not set", (int)r->name,
                            (int)d->kind);
    return CUDNN_STATUS_SUCCESS;
}
