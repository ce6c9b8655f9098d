// cuDNN: declarations that its parts share.
#ifndef TESTS_DOUBLE_DNN_H
#define TESTS_DOUBLE_DNN_H

#include "tests/runtime/cuda/double/double.h"

#include <cudnn.h>

// A descriptor: its attributes as they were set.  A reference keeps its target
// alive.
typedef struct Attribute {
    struct Attribute *next;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    uint64_t value[]; // of any type
} Attribute;

typedef struct Descriptor {
    cudnnBackendDescriptorType_t kind;
    int users;
    bool final;
    bool has_run; // a plan, whose code is loaded when it first runs
    Attribute *first;
} Descriptor;

struct cudnnContext {
    cudaStream_t stream;
};

// ---- dnn.c ----

// Sets the text of cudnnGetLastErrorString; returns the status.
cudnnStatus_t dnn_fail(cudnnStatus_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// ---- dnn_descriptor.c ----

Descriptor *dnn_new(cudnnBackendDescriptorType_t kind);
void dnn_drop(Descriptor *d);
cudnnStatus_t dnn_set(Descriptor *d, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type, int64_t count,
                      const void *value);

// Whether all is set that is needed.
cudnnStatus_t dnn_complete(const Descriptor *d);
const Attribute *dnn_attribute(const Descriptor *d,
                               cudnnBackendAttributeName_t name);
// A number of any type; or otherwise.
int64_t dnn_integer(const Descriptor *d, cudnnBackendAttributeName_t name,
                    int64_t otherwise);
float dnn_float(const Descriptor *d, cudnnBackendAttributeName_t name,
                float otherwise);
// Descriptor number i of an attribute; or NULL.
Descriptor *dnn_link(const Descriptor *d, cudnnBackendAttributeName_t name,
                     int i);
int64_t dnn_count(const Descriptor *d, cudnnBackendAttributeName_t name);

// ---- dnn_shape.c ----

// A tensor's sizes and strides in the order n, c, h, w.
typedef struct {
    int64_t dim[4], stride[4];
    int64_t elements, id;
    cudnnDataType_t type;
    bool is_virtual, by_value;
} Tensor;

Tensor dnn_tensor(const Descriptor *d);
Number dnn_number(cudnnDataType_t type);
// Checks tensors, operations and graphs when they are finalized.
cudnnStatus_t dnn_check(const Descriptor *d);

// The operations of a graph that are convolutions, all alike.
typedef struct {
    cudnnBackendDescriptorType_t kind;
    const Descriptor *x, *w, *y, *conv;
    float alpha, beta;
} Convolution;

bool dnn_convolution(const Descriptor *op, Convolution *c);

// ---- dnn_engine.c ----

typedef struct {
    int64_t index;
    int numerical[20]; // notes; -1 ends them
    bool compiled, broken, varies;
    int64_t workspace;
    double speed;
    bool inexact; // numbers of f32 are read with the digits of TF32
} Engine;

// Finds the engines for a graph, best first; returns their number.
int dnn_offer(const Descriptor *graph, cudnnBackendHeurMode_t mode,
              const Engine **engine);
const Engine *dnn_engine(int64_t index);

// ---- dnn_run.c ----

// Puts a plan at addresses into the handle's stream.
cudnnStatus_t dnn_run(cudnnHandle_t handle, Descriptor *plan,
                      const Descriptor *pack);

#endif
