// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cuDNN: its functions, operation graphs and plans.
//
// The library is opened at run time.  Plans can be made for a device that is
// only described.
#ifndef RUNTIME_CUDA_CUDNN_H
#define RUNTIME_CUDA_CUDNN_H

#include "runtime/runtime.h"

// ---- cudnn.c ----

enum {
#define DNN(name, value) DNN_##name = value,
#include "runtime/cuda/libraries/cudnn.def"
};

// The library's functions, and the device that plans are for, which may be
// only described.
typedef struct {
    void *library;
#define CUDNN(type, member, name, arguments) type(*member) arguments;
#include "runtime/cuda/libraries/cudnn.def"
    void *device;               // a description; NULL: the device of `handle`
    void *handle, *side_handle; // for each of a step's streams; NULL: none
} RtCudnn;

// Opens the library, without a device.
bool rt_cudnn_open(RtCudnn *c, RtError *e);
// Makes it load its own parts and their dependencies; needs no device.
void rt_cudnn_preload(const RtCudnn *c);
// Whether its CUDA version supports a GPU of this compute capability (0: any)
// and a driver of this CUDA version (times 1000).
bool rt_cudnn_compatible(const RtCudnn *c, int gpu, int driver, RtError *e);
// Plans are for the device that a JSON object describes.
bool rt_cudnn_describe(RtCudnn *c, const char *json, RtError *e);
// The streams of a step; forked calls run on the side stream.
typedef enum { RT_MAIN_STREAM, RT_SIDE_STREAM, RT_NUM_STREAMS } RtStream;
// Plans are for the device of the current context, and run on these streams;
// side: NULL, none.
bool rt_cudnn_attach(RtCudnn *c, void *stream, void *side, RtError *e);
void rt_cudnn_close(RtCudnn *c);

// Backend descriptors that are destroyed together.
enum { RT_CUDNN_MAX_DESCRIPTORS = 96 };
typedef struct {
    const RtCudnn *c;
    RtError *error;
    void *made[RT_CUDNN_MAX_DESCRIPTORS];
    int count;
    bool failed; // *error has the first failure; later calls do nothing
} RtDescriptors;

void *rt_descriptor(RtDescriptors *d, int kind);
void rt_descriptor_set(RtDescriptors *d, void *of, int name, int type,
                       int64_t count, const void *value);
void rt_descriptor_int(RtDescriptors *d, void *of, int name, int64_t value);
void rt_descriptor_enum(RtDescriptors *d, void *of, int name, int type,
                        int value);
void rt_descriptor_link(RtDescriptors *d, void *of, int name, void *other);
void rt_descriptor_finalize(RtDescriptors *d, void *of, const char *what);
void rt_descriptors_free(RtDescriptors *d);

// ---- cudnn_graph.c ----

// The role of a tensor in an operation graph, which is also its unique id.
typedef enum {
    RT_ROLE_NONE,   // virtual
    RT_ROLE_X,      // input of a convolution, or its gradient
    RT_ROLE_WEIGHT, // weight or its gradient
    RT_ROLE_Y,      // result or its gradient
    RT_ROLE_SUM,    // statistics of y
    RT_ROLE_SQUARES,
    RT_ROLE_SCALE, // f16 in a prologue, f32 in finalize and backward
    RT_ROLE_BIAS,
    RT_ROLE_MEAN,
    RT_ROLE_INV_STD,
    RT_ROLE_NORM,    // backward: the input of batch_norm
    RT_ROLE_D_SCALE, // backward: gradients
    RT_ROLE_D_BIAS,
    RT_ROLE_EQ_SCALE, // finalize: scale and bias of a prologue
    RT_ROLE_EQ_BIAS,
    RT_ROLE_COUNT, // finalize: host scalars
    RT_ROLE_EPSILON,
    RT_ROLE_FACTOR,
    RT_ROLE_UNUSED, // four rows that nothing reads
    RT_NUM_ROLES = RT_ROLE_UNUSED + 4
} RtRole;

typedef struct {
    void *graph;
    RtRole role[RT_NUM_ROLES]; // of its tensors in memory
    int num_roles;
} RtCudnnGraph;

// A convolution or one of its gradients with the fusions in `with`, bits
// 1 << RtFusionKind.
bool rt_cudnn_graph(RtDescriptors *d, const RtCall *call, unsigned with,
                    RtCudnnGraph *out);
// bn_finalize of so many channels.
bool rt_cudnn_finalize_graph(RtDescriptors *d, int channels, RtCudnnGraph *out);

// ---- cudnn_plan.c ----

// Conditions on an engine.  It must sum in f32, read operands unrounded, and be
// deterministic unless allowed otherwise.
typedef struct {
    bool allow_nondeterministic;
    bool precompiled_only; // no runtime compilation
    int64_t max_workspace; // bytes; 0: no limit
    int first;             // candidate to begin with, in the heuristics' order
} RtCudnnCriteria;

typedef struct {
    RtDescriptors own; // of graph and plan
    RtCudnnGraph graph;
    void *plan;
    int64_t workspace, engine; // workspace: bytes
    int candidate;
    bool nondeterministic;
    bool reduced_precision; // sums not in f32, or rounded operands
    bool runtime_compiled;
} RtCudnnPlan;

// The first candidate of the library's heuristics that meets the criteria.
bool rt_cudnn_plan(const RtCudnn *c, const RtCall *call, unsigned with,
                   RtCudnnCriteria criteria, RtCudnnPlan *out, RtError *e);
bool rt_cudnn_finalize_plan(const RtCudnn *c, int channels, RtCudnnPlan *out,
                            RtError *e);
void rt_cudnn_plan_free(RtCudnnPlan *p);

// A variant pack: an address for each role of a plan's graph.  A scalar's is on
// the host and must stay valid.  NULL: *e has the reason.
void *rt_cudnn_variant_pack(const RtCudnnPlan *p,
                            const uint64_t address[RT_NUM_ROLES],
                            uint64_t workspace, RtError *e);
bool rt_cudnn_execute(const RtCudnnPlan *p, RtStream on, void *pack,
                      RtError *e);

#endif
