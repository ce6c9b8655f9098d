// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// bn_finalize: a plan of cuDNN for each number of channels, run after a
// batch_norm's statistics.

#include "runtime/cuda/libraries/libraries.h"

#include <stdlib.h>

// A plan for all norms with so many channels.
typedef struct {
    int64_t channels;
    bool good;
    RtCudnnPlan plan;
} Planned;

typedef struct {
    int planned; // -1: not requested yet
    int64_t count;
    float epsilon, factor;
    RtWorkspaceSlot slot;
    void *pack;
} Norm;

struct RtBnFinalize {
    const RtCudnn *c;
    const RtPlan *plan;
    Planned *planned;
    int num_planned;
    Norm *norm; // of each of the plan's norms
};

RtBnFinalize *rt_bn_finalize_new(const RtCudnn *c, const RtPlan *plan,
                                 RtError *e) {
    RtBnFinalize *f = calloc(1, sizeof *f);
    size_t norms = (size_t)plan->num_norms;
    if (f != NULL) {
        *f = (RtBnFinalize){.c = c, .plan = plan};
        f->planned = calloc(norms + 1, sizeof *f->planned);
        f->norm = calloc(norms + 1, sizeof *f->norm);
    }
    if (f == NULL || f->planned == NULL || f->norm == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory for convolution plans");
        rt_bn_finalize_free(f);
        return NULL;
    }
    for (int i = 0; i < plan->num_norms; i++)
        f->norm[i] = (Norm){.planned = -1,
                            .count = plan->norm[i].count,
                            .epsilon = (float)plan->norm[i].epsilon,
                            .factor = 1};
    return f;
}

void rt_bn_finalize_rebind(RtBnFinalize *f) {
    for (int i = 0; f->norm != NULL && i < f->plan->num_norms; i++) {
        if (f->norm[i].pack != NULL)
            f->c->destroy(f->norm[i].pack);
        f->norm[i].pack = NULL;
    }
}

void rt_bn_finalize_free(RtBnFinalize *f) {
    if (f == NULL)
        return;
    rt_bn_finalize_rebind(f);
    for (int i = 0; i < f->num_planned; i++)
        rt_cudnn_plan_free(&f->planned[i].plan);
    free(f->norm);
    free(f->planned);
    free(f);
}

bool rt_bn_finalize_can(RtBnFinalize *f, int norm) {
    RtError ignored;
    int64_t channels = f->plan->norm[norm].channels;
    int i = 0;
    while (i < f->num_planned && f->planned[i].channels != channels)
        i++;
    if (i == f->num_planned) {
        Planned *p = &f->planned[f->num_planned++];
        p->channels = channels;
        p->good =
            rt_cudnn_finalize_plan(f->c, (int)channels, &p->plan, &ignored);
    }
    f->norm[norm].planned = i;
    return f->planned[i].good;
}

void rt_bn_finalize_size(RtBnFinalize *f, RtWorkspaceSize *size) {
    for (int i = 0; i < f->plan->num_norms; i++)
        if (f->norm[i].planned >= 0 && f->planned[f->norm[i].planned].good)
            f->norm[i].slot = rt_workspace_add(
                size, f->planned[f->norm[i].planned].plan.workspace,
                RT_MAIN_STREAM);
}

size_t rt_bn_param_at(const RtNorm *n, int row) {
    return n->bn_params + (size_t)row * n->bn_param_bytes;
}

bool rt_bn_finalize_run(RtBnFinalize *f, int norm, uint64_t arena,
                        const RtWorkspace *w, RtError *e) {
    const RtNorm *n = &f->plan->norm[norm];
    Norm *own = &f->norm[norm];
    const RtCudnnPlan *plan = &f->planned[own->planned].plan;
    const uint64_t address[RT_NUM_ROLES] = {
        [RT_ROLE_SUM] = arena + n->sum,
        [RT_ROLE_SQUARES] = arena + n->var,
        [RT_ROLE_SCALE] = arena + n->scale,
        [RT_ROLE_BIAS] = arena + n->bias,
        [RT_ROLE_MEAN] = arena + rt_bn_param_at(n, RT_BN_MEAN),
        [RT_ROLE_INV_STD] = arena + rt_bn_param_at(n, RT_BN_INV_STD),
        [RT_ROLE_EQ_SCALE] = arena + rt_bn_param_at(n, RT_BN_EQ_SCALE),
        [RT_ROLE_EQ_BIAS] = arena + rt_bn_param_at(n, RT_BN_EQ_BIAS),
        [RT_ROLE_COUNT] = (uintptr_t)&own->count,
        [RT_ROLE_EPSILON] = (uintptr_t)&own->epsilon,
        [RT_ROLE_FACTOR] = (uintptr_t)&own->factor,
        [RT_ROLE_UNUSED] = arena + rt_bn_param_at(n, RT_BN_UNUSED),
        [RT_ROLE_UNUSED + 1] = arena + rt_bn_param_at(n, RT_BN_UNUSED + 1),
        [RT_ROLE_UNUSED + 2] = arena + rt_bn_param_at(n, RT_BN_UNUSED + 2),
        [RT_ROLE_UNUSED + 3] = arena + rt_bn_param_at(n, RT_BN_UNUSED + 3),
    };
    if (own->pack == NULL)
        own->pack = rt_cudnn_variant_pack(
            plan, address,
            rt_workspace_at(w, own->slot, (size_t)plan->workspace), e);
    return own->pack != NULL &&
           rt_cudnn_execute(plan, RT_MAIN_STREAM, own->pack, e);
}
