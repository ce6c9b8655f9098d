// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Libraries: the library calls of a plan on a GPU.
//
// Convolutions are cuDNN's, which may do the work of neighbouring kernels
// (library fusions), and so are products, or these are cuBLASLt's.  Matrix
// factorizations run on the host.  Libraries are opened at run time.  After the
// first run of a call at some addresses it allocates nothing, so a step can be
// captured once it has run.
#ifndef RUNTIME_CUDA_LIBRARIES_H
#define RUNTIME_CUDA_LIBRARIES_H

#include "runtime/cuda/libraries/cudnn.h"
#include "runtime/cuda/memory/memory.h"

#include <pthread.h>

// ---- chosen.c ----

// The plan of a call and of equal calls.
typedef struct {
    int call;
    unsigned with;  // fusions: bits 1 << RtFusionKind
    int candidate;  // of the library's heuristics
    int64_t engine; // of that candidate; -1: the first that works from it on
} RtChosenPlan;

// The cuBLASLt algorithm of a product and of equal products.
typedef struct {
    int call, candidate;
    uint64_t digest; // of that candidate
} RtChosenAlgorithm;

// Everything that autotuning chooses for a plan.  Nothing else passes from
// tune/ to the other folders.
typedef struct {
    RtChosenPlan *plan;
    int num_plans;
    RtChosenAlgorithm *algorithm;
    int num_algorithms;
    bool *fused;      // for each of the plan's fusions
    bool *unmerged;   // for each of its merged launches
    int *tile; // for each of its tile kernels 1 + its configuration; 0: a
               // library call or a kernel does its work
    bool may_compile; // fusions without a choice may be compiled
} RtChosen;

bool rt_chosen_new(RtChosen *t, const RtPlan *plan, RtError *e);
void rt_chosen_free(RtChosen *t);
// Room for plans: as many as calls with each set of fusions.
size_t rt_chosen_room(const RtPlan *plan);
enum { RT_FUSION_SETS = 1 << (RT_FUSED_BACKWARD + 1) };

// ---- call.c ----

// Whether cuDNN can do a call as a convolution, which is *as: a product is a
// convolution of one-pixel images with the operands in the same places, unless
// both are transposed.  Empty calls are none.
bool rt_convolution_of(const RtCall *call, RtCall *as);
// Whether two calls are equal except for their layers.
bool rt_call_same(const RtCall *a, const RtCall *b);
// A call's layer, kind and shapes, for messages.
const char *rt_call_text(char *to, size_t room, const RtCall *call);

// ---- plan_cache.c ----

typedef struct {
    RtCall call;
    unsigned with;          // bits 1 << RtFusionKind
    RtChosenPlan requested; // its call is -1: nothing
    bool may_compile;
    bool missed; // the library no longer has the requested plan
    bool good;   // there is a plan
    RtCudnnPlan plan;
} RtCachedPlan;

// cuDNN's plans, one for all equal calls.
typedef struct RtPlanCache {
    const RtCudnn *c;
    const RtPlan *plan;
    const RtChosen *chosen;       // while planning; NULL: the heuristics'
    struct RtPlanCache *previous; // to take plans from; NULL: none
    bool missed;
    RtCachedPlan *made;
    int count, room;
} RtPlanCache;

// The index of a call's plan, planned when first requested; -1: none.
int rt_plan_cache_find(RtPlanCache *p, const RtCall *call, unsigned with,
                       RtError *e);
// The index of the next candidate after plan `before` with at most so many
// bytes of workspace; -1: none.  The plan before stays: captured steps may use
// it.
int rt_plan_cache_next(RtPlanCache *p, int before, int64_t max_workspace);
void rt_plan_cache_free(RtPlanCache *p);

// ---- workspace.c ----

// Bytes of workspace.  A call that needs little has its own slot: an engine may
// keep there what a later launch reads, such as a descriptor of tensors.  The
// other calls of a stream share one place, as they run one after the other.
typedef struct {
    size_t own;                    // of all slots
    size_t shared[RT_NUM_STREAMS]; // of the largest other workspace
} RtWorkspaceSize;

// Where a workspace is in device memory, aligned to 256 bytes.
typedef struct {
    uint64_t own, shared[RT_NUM_STREAMS];
    RtWorkspaceSize size;
} RtWorkspace;

typedef struct {
    size_t at, bytes; // among slots; 0 bytes: none
    RtStream stream;  // that the call may run on
} RtWorkspaceSlot;

// Makes room for a call's workspace; its slot has none if it is shared.
RtWorkspaceSlot rt_workspace_add(RtWorkspaceSize *w, int64_t bytes,
                                 RtStream stream);
// The address of a workspace of so many bytes: the slot, if it has as many.
uint64_t rt_workspace_at(const RtWorkspace *w, RtWorkspaceSlot slot,
                         size_t bytes);
// The most bytes at such an address.
size_t rt_workspace_room(const RtWorkspace *w, RtWorkspaceSlot slot);

// ---- fusions.c ----

// Whether a call has a plan with these fusions, bits 1 << RtFusionKind.
typedef bool RtCanFuse(void *arg, int call, unsigned with);
// Whether a norm has a plan of bn_finalize.
typedef bool RtCanFinalize(void *arg, int norm);

// Chooses fusions that work together: all in `allowed` (NULL: all) with a plan
// and with the fusions that they depend on.  taken has one for each.
void rt_fusions_choose(const RtPlan *plan, const bool *allowed,
                       RtCanFuse *can_fuse, RtCanFinalize *can_finalize,
                       void *arg, bool *taken);

// ---- bn_finalize.c ----

// bn_finalize turns the statistics of a batch_norm into rows that prologues and
// backward fusions read: its bn_params.
enum {
    RT_BN_MEAN,
    RT_BN_INV_STD,
    RT_BN_EQ_SCALE,
    RT_BN_EQ_BIAS,
    RT_BN_UNUSED,
};
// The offset of such a row in the arena.
size_t rt_bn_param_at(const RtNorm *n, int row);

typedef struct RtBnFinalize RtBnFinalize;

RtBnFinalize *rt_bn_finalize_new(const RtCudnn *c, const RtPlan *plan,
                                 RtError *e);
void rt_bn_finalize_free(RtBnFinalize *f);
// Whether there is a plan for a norm, planned when first requested.
bool rt_bn_finalize_can(RtBnFinalize *f, int norm);
// Adds its workspaces.
void rt_bn_finalize_size(RtBnFinalize *f, RtWorkspaceSize *size);
// Forgets addresses, as the arena or the workspace has changed.
void rt_bn_finalize_rebind(RtBnFinalize *f);
bool rt_bn_finalize_run(RtBnFinalize *f, int norm, uint64_t arena,
                        const RtWorkspace *w, RtError *e);

// ---- convolution.c ----

// cuDNN's plans for the calls of a plan, and the library fusions they take.
typedef struct RtConvolutions RtConvolutions;

bool rt_convolutions_needed(const RtPlan *plan);
// Plans all convolutions of a plan, and its products unless rt_matmuls_needed,
// as chosen.  Without a choice (NULL), or if the library no longer has it, as
// its heuristics propose.  NULL: *e names the layer without a plan.
RtConvolutions *rt_convolutions_new(const RtCudnn *c, const RtPlan *plan,
                                    const RtChosen *chosen, RtError *e);
// The same, but takes equal plans from `previous` (may be NULL) and frees it.
RtConvolutions *rt_convolutions_next(RtConvolutions *previous, const RtCudnn *c,
                                     const RtPlan *plan, const RtChosen *chosen,
                                     RtError *e);
void rt_convolutions_free(RtConvolutions *v);
// Whether the library had every chosen plan.
bool rt_convolutions_as_chosen(const RtConvolutions *v);

// Whether it does that call.
bool rt_convolutions_do(const RtConvolutions *v, int call);
// Adds the workspaces of calls as they are planned.  forked has one for each
// call.
void rt_convolutions_size(RtConvolutions *v, const bool *forked,
                          RtWorkspaceSize *size);
// Whether a call does no kernel's work.
bool rt_convolutions_alone(const RtConvolutions *v, int call);
// Sets the addresses of the arena and of the workspace, which was sized last.
void rt_convolutions_bind(RtConvolutions *v, uint64_t arena,
                          const RtWorkspace *w);
// For each fusion of the plan whether it is taken.
const bool *rt_convolutions_taken(const RtConvolutions *v);
// Whether a call does the work of a launch, counted in the step from 0.
bool rt_convolutions_fused(const RtConvolutions *v, int step, int launch);
// The index of a call's plan, as for rt_convolutions_plan_at; -1: none.
int rt_convolutions_plan_of(const RtConvolutions *v, int call);
// Whether bn_finalize follows a call.
bool rt_convolutions_finalize(const RtConvolutions *v, int call);
// The value of the kernels' variable sinter_squares.
void rt_convolutions_squares(const RtConvolutions *v, uint8_t *squares,
                             size_t count);
bool rt_convolutions_run(RtConvolutions *v, int call, RtStream on, size_t a,
                         size_t b, size_t out, RtError *e);
// Moves a call and equal calls to the next plan that fits the workspace; false:
// none.
bool rt_convolutions_fall_back(RtConvolutions *v, int call);

// A plan, for people and tests; false past the last.
typedef struct {
    const RtCall *call;
    unsigned with;           // bits 1 << RtFusionKind
    const RtCudnnPlan *plan; // NULL: the library has none
    int calls;               // of the plan that use it
    int first;               // of these; -1: none
} RtPlanned;
bool rt_convolutions_plan_at(const RtConvolutions *v, int i, RtPlanned *out);

// ---- matmul.c ----

// Matrix products by cuBLASLt.  It has 542 MB, takes half a second to open and
// plans only on a real GPU, so it is left to plans with batched products, such
// as attention's, and then does all products.  Otherwise products are
// convolutions, for which cuDNN is open anyway.
typedef struct RtMatmuls RtMatmuls;

bool rt_matmuls_needed(const RtPlan *plan);

// Opens the library for a GPU of this compute capability (0: any) and a driver
// of this CUDA version (times 1000), with its version function.  The caller
// calls rt_library_close.  NULL: *e has the reason.
void *rt_matmuls_library(int gpu, int driver, size_t (**version)(void),
                         RtError *e);

// Opens the library and queries the algorithms of each product, on the GPU of
// the current context; the first is chosen.  NULL: *e names the layer without.
RtMatmuls *rt_matmuls_new(const RtPlan *plan, const RtGpu *gpu,
                          const CUstream stream[RT_NUM_STREAMS], RtError *e);
void rt_matmuls_free(RtMatmuls *p);
size_t rt_matmuls_version(const RtMatmuls *p);

// The number of algorithms for a call; 0: it is not done here.
int rt_matmuls_candidates(const RtMatmuls *p, int call);
// Chooses one for a call and equal calls.
void rt_matmuls_choose(RtMatmuls *p, int call, int candidate);
// Chooses the next that fits the workspace; false: none.
bool rt_matmuls_fall_back(RtMatmuls *p, int call);
// Identifies an algorithm; below 2^62.
uint64_t rt_matmuls_digest(const RtMatmuls *p, int call, int candidate);
// Whether the library had every chosen algorithm.
bool rt_matmuls_as_chosen(RtMatmuls *p, const RtChosen *t);

// As for convolutions.
void rt_matmuls_size(RtMatmuls *p, const bool *forked, RtWorkspaceSize *size);
void rt_matmuls_bind(RtMatmuls *p, uint64_t arena, const RtWorkspace *w);
bool rt_matmuls_run(const RtMatmuls *p, int call, RtStream on, size_t a,
                    size_t b, size_t out, RtError *e);

// ---- preload.c ----

// A thread that opens the libraries of a plan while the device makes its
// context.  cuDNN and cuBLASLt have 1.2 GB, and opening them takes longer than
// planning.
typedef struct {
    const RtGpu *gpu;
    const RtPlan *plan;
    pthread_t thread;
    bool is_running;
} RtPreload;

// Needs no context.  Errors are left to the regular opening.
void rt_preload_start(RtPreload *a, const RtGpu *gpu, const RtPlan *plan);
void rt_preload_wait(RtPreload *a);

// ---- nvjpeg.c ----

// nvJPEG, for several threads.
typedef struct RtNvjpeg RtNvjpeg;
// The GPU's context is current.  NULL with *e filled.
RtNvjpeg *rt_nvjpeg_open(const RtGpu *gpu, RtError *e);
// RtDevice's decode_jpeg.
bool rt_nvjpeg_decode(RtNvjpeg *n, const RtJpegFile *f, bool *declined,
                      RtError *e);
void rt_nvjpeg_close(RtNvjpeg *n); // may be NULL; no thread decodes
// The path of the library for that GPU and driver.
bool rt_nvjpeg_find(int capability, int driver, char path[RT_MESSAGE_BYTES],
                    RtError *e);

// ---- library_calls.c ----

// All library calls of a plan.
typedef struct {
    const RtGpu *gpu;
    const RtPlan *plan;
    CUstream stream[RT_NUM_STREAMS]; // the second may be NULL
    bool *forked;                    // for each call: a fork of a step has it
    RtStaging *staging;
    CUdeviceptr arena, workspace;
    RtCudnn cudnn;
    RtConvolutions *convolutions; // NULL: none
    RtMatmuls *matmuls;           // NULL: cuBLASLt is not needed
} RtLibraryCalls;

// Opens the libraries for these streams; side: NULL, none.
bool rt_library_calls_open(RtLibraryCalls *c, const RtGpu *gpu,
                           const RtPlan *plan, CUstream stream, CUstream side,
                           RtStaging *staging, RtError *e);
// Plans all calls, as chosen (NULL: no choice); then the workspace is known.
// *as_chosen: the libraries had every choice.
bool rt_library_calls_plan(RtLibraryCalls *c, const RtChosen *chosen,
                           bool *as_chosen, RtError *e);
void rt_library_calls_close(RtLibraryCalls *c);

size_t rt_library_calls_workspace(RtLibraryCalls *c); // bytes
void rt_library_calls_bind(RtLibraryCalls *c, CUdeviceptr arena,
                           CUdeviceptr workspace);

// Tells the kernels which statistics calls compute, as sums of squares.
bool rt_library_calls_set_flags(const RtLibraryCalls *c, const RtKernels *k,
                                RtError *e);

// Whether a call does the work of a launch, counted in the step from 0.
bool rt_library_calls_fused(const RtLibraryCalls *c, int step, int launch);
// Whether a call runs on the host between launches.
bool rt_library_calls_on_host(const RtLibraryCalls *c, int call);
// Replaces the convolutions, and the workspace (0: its own); returns the
// previous ones.
RtConvolutions *rt_library_calls_use(RtLibraryCalls *c, RtConvolutions *v,
                                     CUdeviceptr workspace);
// Whether a call of a fork can run on the side stream.
bool rt_library_calls_may_fork(const RtLibraryCalls *c, int call);
// Queues a call.
bool rt_library_calls_run(RtLibraryCalls *c, int call, RtStream on, size_t a,
                          size_t b, size_t out, RtError *e);
// Moves a call that a library did not run to its next plan; false: none.
bool rt_library_calls_fall_back(RtLibraryCalls *c, int call);

#endif
