// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Convolutions on a CUDA device: which plan of cuDNN each call of a trainer
// runs, and which kernels ride on it.
//
// Plans are made once, for a device that is there or one that is described.
// With a device, the first run of a call at some addresses makes what it needs
// to run there again; after that nothing is allocated, so a step can be
// captured once it has run.
#ifndef RUNTIME_CUDA_CONVOLUTION_H
#define RUNTIME_CUDA_CONVOLUTION_H

#include "runtime/cuda/tune/tuning.h"

// ---- call.c ----

// Whether cuDNN's convolutions can do a call; *as is it as one of them.  The
// product of two matrices is a convolution of images of one pixel, with the
// operands in the same places; only that of two transposed ones is not.  Of
// nothing it does none.
bool rt_convolution_of(const RtCall *call, RtCall *as);
// Whether two calls are alike but for their layers.
bool rt_call_same(const RtCall *a, const RtCall *b);
// A call's layer, kind and shapes, for messages.
const char *rt_call_text(char *to, size_t room, const RtCall *call);

// ---- rides.c ----

// Whether there is a plan for a call with these fusions, bits 1 <<
// RtFusionKind, on it.
typedef bool RtCanFuse(void *arg, int call, unsigned with);
// Whether the forms of a norm can be made.
typedef bool RtCanFinalize(void *arg, int norm);

// Which fusions of a plan are taken together: all that are wanted (NULL: all),
// that there are plans for and that what they need is taken for.  taken has one
// for each.
void rt_fusions_choose(const RtPlan *plan, const bool *wanted, RtCanFuse *can,
                       RtCanFinalize *form, void *arg, bool *taken);

// ---- forms.c ----

// The forms of batch_norms, which prologues and backward fusions read.
typedef struct RtBnFinalize RtBnFinalize;

RtBnFinalize *rt_bn_finalize_new(const RtCudnn *c, const RtPlan *plan,
                                 RtError *e);
void rt_bn_finalize_free(RtBnFinalize *f);
// Whether there is a plan for those of a norm; made when it is first asked.
bool rt_bn_finalize_can(RtBnFinalize *f, int norm);
int64_t rt_bn_finalize_workspace(const RtBnFinalize *f);
// They are made elsewhere, or in another workspace, from now on.
void rt_bn_finalize_rebind(RtBnFinalize *f);
// Makes them of the norm's statistics.
bool rt_bn_finalize_run(RtBnFinalize *f, int norm, uint64_t arena,
                        uint64_t workspace, RtError *e);
// Where one of them is, from the start of the arena.
size_t rt_bn_form_at(const RtNorm *n, int form);
enum {
    RT_BN_MEAN,
    RT_BN_INV_STD,
    RT_BN_EQ_SCALE,
    RT_BN_EQ_BIAS,
    RT_BN_UNUSED,
};

// ---- convolution.c ----

typedef struct RtConvolutions RtConvolutions;

// Whether a plan has calls that are done here.
bool rt_convolutions_needed(const RtPlan *plan);
// Plans all calls of a plan that are convolutions, and its products unless
// rt_matmuls_needed: as a tuning says, or without one (NULL), or where the
// library no longer has what it names, as the library's heuristics do.  NULL,
// with the layer that has no plan in e, if one has none.
RtConvolutions *rt_convolutions_new(const RtCudnn *c, const RtPlan *plan,
                                    const RtChosen *tuning, RtError *e);
// The same in place of `before` (NULL: there was nothing), which is freed: what
// was asked for in the same way is not planned again.
RtConvolutions *rt_convolutions_next(RtConvolutions *before, const RtCudnn *c,
                                     const RtPlan *plan, const RtChosen *tuning,
                                     RtError *e);
void rt_convolutions_free(RtConvolutions *v);
// Whether all that the tuning named was there.
bool rt_convolutions_as_chosen(const RtConvolutions *v);

// Whether that call of the plan is done here.
bool rt_convolutions_do(const RtConvolutions *v, int call);
// Bytes of the room that the calls share.
size_t rt_convolutions_workspace(const RtConvolutions *v);
// Where on the device the plan's arena and the shared room are.
void rt_convolutions_bind(RtConvolutions *v, uint64_t arena,
                          uint64_t workspace);
// For each of the plan's fusions whether it is taken.
const bool *rt_convolutions_taken(const RtConvolutions *v);
// Whether a call does what launch number `launch` of a step would: it counts
// kernels and calls from 0.
bool rt_convolutions_fused(const RtConvolutions *v, int step, int launch);
// Which plan a call runs, as rt_convolutions_plan_at counts; -1: none of these.
int rt_convolutions_plan_of(const RtConvolutions *v, int call);
// Whether the forms of a batch_norm are made after it.
bool rt_convolutions_finalize(const RtConvolutions *v, int call);
// What the kernels' sinter_squares must have before they run.
void rt_convolutions_squares(const RtConvolutions *v, uint8_t *squares,
                             size_t count);
// Puts a call on the stream of the library's handle.
bool rt_convolutions_run(RtConvolutions *v, int call, size_t a, size_t b,
                         size_t out, RtError *e);

// Has a call, and those that are alike, done by the next of the library's plans
// that works in the room there is; false: there is none.
bool rt_convolutions_fall_back(RtConvolutions *v, int call);

// What was asked of the library, for people and tests: false past the last.
typedef struct {
    const RtCall *call;
    unsigned with;           // bits 1 << RtFusionKind
    const RtCudnnPlan *plan; // NULL: it has none
    int calls;               // of the plan's, that do so
    int first;               // of them; -1: none
} RtPlanned;
bool rt_convolutions_plan_at(const RtConvolutions *v, int i, RtPlanned *out);

#endif
