// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cuDNN: plans for library calls, alone or with the kernels that ride on them.
//
// The library is opened when it is needed.  A device may be one that is only
// described, so that what can be planned is known without one.
#ifndef RUNTIME_CUDNN_H
#define RUNTIME_CUDNN_H

#include "runtime/runtime.h"

enum {
#define DNN(name, value) DNN_##name = value,
#include "runtime/cuda/libraries/cudnn.def"
};

// The library's functions, and the device that plans are for.
typedef struct {
    void *library;
#define CUDNN(type, member, name, arguments) type(*member) arguments;
#include "runtime/cuda/libraries/cudnn.def"
    void *device; // a description, or NULL: that of `handle`
    void *handle;
} RtCudnn;

// ---- cudnn.c ----

// Opens the library; the device is still to be given.
bool rt_cudnn_open(RtCudnn *c, RtError *e);
// Has it open its own parts and what they need, for which it needs no device.
void rt_cudnn_preload(const RtCudnn *c);
// Whether it is of a CUDA that knows a GPU of this generation (0: any) and
// works with a driver that knows CUDA up to `driver`, which is a version times
// 1000.
bool rt_cudnn_compatible(const RtCudnn *c, int gpu, int driver, RtError *e);
// Plans are for the device that a JSON object describes.
bool rt_cudnn_describe(RtCudnn *c, const char *json, RtError *e);
// Plans are for the device of the current context, and run on a stream of it.
bool rt_cudnn_attach(RtCudnn *c, void *stream, RtError *e);
void rt_cudnn_close(RtCudnn *c);

// Descriptors made for one purpose, which live as long as it.
enum { RT_CUDNN_MAX_DESCRIPTORS = 96 };
typedef struct {
    const RtCudnn *c;
    RtError *error;
    void *made[RT_CUDNN_MAX_DESCRIPTORS];
    int count;
    bool failed; // the first failure is in error, and nothing more is done
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

// What a tensor of a graph is to it; also its identifier for the library.
typedef enum {
    RT_ROLE_NONE,
    RT_ROLE_X,      // what a convolution reads: images
    RT_ROLE_WEIGHT, // or its gradient
    RT_ROLE_Y,      // what it computes, or its gradient
    RT_ROLE_SUM,    // statistics of y
    RT_ROLE_SQUARES,
    RT_ROLE_SCALE, // f16 forms of a prologue; f32 for finalize and backward
    RT_ROLE_BIAS,
    RT_ROLE_MEAN,
    RT_ROLE_INV_STD,
    RT_ROLE_NORM,    // backward: what batch_norm read
    RT_ROLE_D_SCALE, // backward: gradients
    RT_ROLE_D_BIAS,
    RT_ROLE_EQ_SCALE, // finalize: the forms of a prologue
    RT_ROLE_EQ_BIAS,
    RT_ROLE_COUNT, // finalize: host scalars
    RT_ROLE_EPSILON,
    RT_ROLE_FACTOR,
    RT_ROLE_UNUSED, // and the three after it: rows that nothing reads
    RT_NUM_ROLES = RT_ROLE_UNUSED + 4
} RtRole;

typedef struct {
    void *graph;
    RtRole role[RT_NUM_ROLES]; // of its tensors in memory
    int num_roles;
} RtCudnnGraph;

// The graph of a convolution or one of its gradients with the fusions in
// `with`, bits 1 << RtFusionKind.
bool rt_cudnn_graph(RtDescriptors *d, const RtCall *call, unsigned with,
                    RtCudnnGraph *out);
// The graph that turns sums of so many channels into the forms that prologue
// and backward read.
bool rt_cudnn_finalize_graph(RtDescriptors *d, int channels, RtCudnnGraph *out);

// ---- cudnn_plan.c ----

// What an engine is like that sums in f32 what it reads as it is, in the same
// order each time, is taken; others may be asked for.
typedef struct {
    bool allow_nondeterministic; // sums in another order each time
    bool precompiled_only; // nothing that is compiled when the plan is made
    int64_t within;        // bytes of workspace at most; 0: any number
    int first; // candidate, from 0 in the library's order of preference
} RtCudnnCriteria;

typedef struct {
    RtDescriptors own; // the graph's and the plan's
    RtCudnnGraph graph;
    void *plan;
    int64_t workspace, engine;
    int candidate;
    bool varies;   // sums are in another order each time
    bool inexact;  // sums are not in f32, or of rounded operands
    bool compiled; // when the plan is made
} RtCudnnPlan;

// The first plan from wish->first on that the library's heuristics offer for a
// call and that is as wished.
bool rt_cudnn_plan(const RtCudnn *c, const RtCall *call, unsigned with,
                   RtCudnnCriteria wish, RtCudnnPlan *out, RtError *e);
bool rt_cudnn_finalize_plan(const RtCudnn *c, int channels, RtCudnnPlan *out,
                            RtError *e);
void rt_cudnn_plan_free(RtCudnnPlan *p);

// ---- cudnn_pack.c ----

// A plan at the address of each of its graph's roles; what stands for a number
// has it on the host, where it must stay.  NULL: *e says why.
void *rt_cudnn_variant_pack(const RtCudnnPlan *p,
                            const uint64_t address[RT_NUM_ROLES],
                            uint64_t workspace, RtError *e);
bool rt_cudnn_execute(const RtCudnnPlan *p, void *pack, RtError *e);

#endif
