// cuDNN, of CUDA 13 or, with DOUBLE_CUDA=12, of that: the library's functions.
#include "tests/runtime/cuda/double/dnn.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_error[512];

enum { MAX_OFFERED = 16 };

cudnnStatus_t dnn_fail(cudnnStatus_t status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(last_error, sizeof last_error, format, list);
    va_end(list);
    return status;
}

#define DNN_CALL(...) CALL(cudnnStatus_t, __VA_ARGS__)

size_t cudnnGetVersion(void) {
    return CUDNN_VERSION;
}

size_t cudnnGetCudartVersion(void) {
    return DOUBLE_CUDA == 12 ? 12090 : 13010;
}

void cudnnGetLastErrorString(char *text, size_t room) {
    snprintf(text, room, "%s", last_error);
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
    return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS"
                                          : "a status of the stand-in";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *to) {
    DNN_CALL("%d", DOUBLE_CUDA);
    if (driver_refuses() != CUDA_SUCCESS || capture_forbids() != CUDA_SUCCESS)
        return dnn_fail(CUDNN_STATUS_NOT_INITIALIZED, "no device");
    if (driver_version() / 1000 < DOUBLE_CUDA ||
        (DOUBLE_CUDA == 13 && device_architecture() < 75))
        return dnn_fail(CUDNN_STATUS_NOT_INITIALIZED,
                        "cudaGetDeviceCount(&count) != cudaSuccess");
    *to = take(sizeof **to);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    DNN_CALL("%p", (void *)handle);
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    DNN_CALL("%p stream=%p", (void *)handle, (void *)stream);
    if (handle == NULL || !stream_known((CUstream)stream))
        return dnn_fail(CUDNN_STATUS_BAD_PARAM, "no such stream");
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind,
                                           cudnnBackendDescriptor_t *to) {
    DNN_CALL("kind=%d", (int)kind);
    Descriptor *d = dnn_new(kind);
    *to = d;
    return d != NULL ? CUDNN_STATUS_SUCCESS
                     : dnn_fail(CUDNN_STATUS_NOT_SUPPORTED,
                                "descriptors of kind %d", (int)kind);
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t of) {
    DNN_CALL("%p", of);
    dnn_drop(of);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t count, const void *value) {
    DNN_CALL("%p %d type=%d count=%lld", of, (int)name, (int)type,
             (long long)count);
    if (of == NULL)
        return dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor");
    return dnn_set(of, name, type, count, value);
}

// ---- finalizing ----

// The engine of a plan.
static const Engine *plan_engine(const Descriptor *plan) {
    const Descriptor *config =
        dnn_link(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0);
    const Descriptor *engine = dnn_link(config, CUDNN_ATTR_ENGINECFG_ENGINE, 0);
    return dnn_engine(dnn_integer(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1));
}

// Making a plan loads code, which a capture does not allow.
static cudnnStatus_t plan_check(const Descriptor *plan) {
    if (plan_engine(plan)->broken)
        return dnn_fail(CUDNN_STATUS_NOT_SUPPORTED,
                        "engine %lld does not support the graph after all",
                        (long long)plan_engine(plan)->index);
    return capture_forbids() == CUDA_SUCCESS
               ? CUDNN_STATUS_SUCCESS
               : dnn_fail(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER,
                          "a plan is made while a stream is being captured");
}

static cudnnStatus_t engine_check(const Descriptor *engine) {
    const Engine *offered[MAX_OFFERED];
    int64_t wanted = dnn_integer(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
    int count =
        dnn_offer(dnn_link(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0),
                  CUDNN_HEUR_MODE_A, offered);
    for (int i = 0; i < count; i++)
        if (offered[i]->index == wanted)
            return CUDNN_STATUS_SUCCESS;
    return dnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "no engine %lld for the graph",
                    (long long)wanted);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t of) {
    DNN_CALL("%p", of);
    Descriptor *d = of;
    if (d == NULL)
        return dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no descriptor");
    if (d->final)
        return dnn_fail(CUDNN_STATUS_BAD_PARAM, "a descriptor that is final");
    cudnnStatus_t status = dnn_complete(d);
    if (status == CUDNN_STATUS_SUCCESS)
        status = dnn_check(d);
    if (status == CUDNN_STATUS_SUCCESS &&
        d->kind == CUDNN_BACKEND_ENGINE_DESCRIPTOR)
        status = engine_check(d);
    if (status == CUDNN_STATUS_SUCCESS &&
        d->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        status = plan_check(d);
    d->final = status == CUDNN_STATUS_SUCCESS;
    return status;
}

// ---- asking ----

// A configuration of an engine for a graph, in a descriptor that is there.
static void config_fill(Descriptor *config, const Descriptor *graph,
                        const Engine *e) {
    Descriptor *engine = dnn_new(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    dnn_set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    dnn_set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
            &e->index);
    engine->final = true;
    config->final = false;
    dnn_set(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            1, &engine);
    dnn_drop(engine);
    config->final = true;
}

static cudnnStatus_t results_get(const Descriptor *look, int64_t most,
                                 int64_t *count, void *value) {
    const Engine *offered[MAX_OFFERED];
    const Descriptor *graph =
        dnn_link(look, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0);
    Descriptor **config = value;
    int found = dnn_offer(graph,
                          (cudnnBackendHeurMode_t)dnn_integer(
                              look, CUDNN_ATTR_ENGINEHEUR_MODE, 0),
                          offered);
    *count = value == NULL || found < most ? found : most;
    for (int i = 0; value != NULL && i < *count; i++)
        config_fill(config[i], graph, offered[i]);
    return CUDNN_STATUS_SUCCESS;
}

// A request for none returns the count.  Any other request returns as many as
// have room and does not mention the rest.
static cudnnStatus_t notes_get(const int *note, int64_t most, int64_t *count,
                               void *value) {
    int *to = value;
    *count = 0;
    for (; note[*count] >= 0 && (most == 0 || *count < most); ++*count)
        if (most > 0)
            to[*count] = note[*count];
    return CUDNN_STATUS_SUCCESS;
}

// An engine's descriptor that is there becomes that of a configuration.
static cudnnStatus_t engine_get(const Descriptor *config, int64_t *count,
                                void *value) {
    Descriptor *to = *(Descriptor **)value;
    const Descriptor *from = dnn_link(config, CUDNN_ATTR_ENGINECFG_ENGINE, 0);
    int64_t index = dnn_integer(from, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
    Descriptor *graph = dnn_link(from, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0);
    to->final = false;
    dnn_set(to, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    dnn_set(to, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    to->final = true;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}

// Attributes with many values, whose count a request for none returns.
static bool is_counted(cudnnBackendAttributeName_t name) {
    return name == CUDNN_ATTR_ENGINEHEUR_RESULTS ||
           name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE ||
           name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE;
}

// Refuses an attribute that is not readable, a request of another type, and one
// without room.
static cudnnStatus_t question_check(cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type,
                                    int64_t most) {
    static const struct {
        cudnnBackendAttributeName_t name;
        cudnnBackendAttributeType_t type;
    } readable[] = {
        {CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE},
        {CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE},
        {CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64},
    };
    for (size_t i = 0; i < sizeof readable / sizeof readable[0]; i++)
        if (readable[i].name == name && readable[i].type != type)
            return dnn_fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                            "attribute %d is not of type %d", (int)name,
                            (int)type);
    return most > 0 || is_counted(name)
               ? CUDNN_STATUS_SUCCESS
               : dnn_fail(CUDNN_STATUS_BAD_PARAM, "no room for attribute %d",
                          (int)name);
}

static cudnnStatus_t attribute_get(const Descriptor *d,
                                   cudnnBackendAttributeName_t name,
                                   int64_t most, int64_t *count, void *value) {
    static const int compiled[] = {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, -1};
    static const int nothing[] = {-1};
    const Engine *e;
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        return results_get(d, most, count, value);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        return engine_get(d, count, value);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)value = dnn_integer(d, name, -1);
        *count = 1;
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
        e = dnn_engine(dnn_integer(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1));
        return notes_get(name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE ? e->numerical
                         : e->compiled                            ? compiled
                                                                  : nothing,
                         most, count, value);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        *(int64_t *)value = plan_engine(d)->workspace;
        *count = 1;
        return CUDNN_STATUS_SUCCESS;
    default:
        return dnn_fail(CUDNN_STATUS_NOT_SUPPORTED,
                        "attribute %d of kind %d cannot be read", (int)name,
                        (int)d->kind);
    }
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t of,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t most, int64_t *count,
                                       void *value) {
    DNN_CALL("%p %d type=%d most=%lld", of, (int)name, (int)type,
             (long long)most);
    const Descriptor *d = of;
    int64_t ignored;
    if (d == NULL || !d->final)
        return dnn_fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                        "a descriptor that is not finalized");
    if (value == NULL && (most > 0 || !is_counted(name)))
        return dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no place");
    cudnnStatus_t status = question_check(name, type, most);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    return attribute_get(d, name, most, count != NULL ? count : &ignored,
                         value);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                  cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
    DNN_CALL("%p plan=%p pack=%p", (void *)handle, plan, pack);
    Descriptor *p = plan;
    const Descriptor *v = pack;
    if (driver_refuses() != CUDA_SUCCESS)
        return dnn_fail(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER,
                        "the driver returns error %d", (int)driver_refuses());
    if (handle == NULL || p == NULL || v == NULL || !p->final || !v->final ||
        p->kind != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
        v->kind != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
        return dnn_fail(CUDNN_STATUS_BAD_PARAM, "no plan at addresses");
    return dnn_run(handle, p, v);
}
