// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Convolutions: a plan of cuDNN for each call with its fusions, and the
// addresses that it runs at.

#include "runtime/cuda/libraries/libraries.h"

#include <stdlib.h>

// A variant pack and the offsets that it is for.
typedef struct Pack {
    struct Pack *next;
    size_t a, b, out;
    void *pack;
} Pack;

enum { NUM_KINDS = RT_FUSED_BACKWARD + 1 };

typedef struct {
    bool is_ours; // not cuBLASLt's
    RtCall as;
    const RtFusion *fusion[NUM_KINDS];
    int planned;
    int finalize; // the norm whose bn_finalize follows; -1: none
    RtWorkspaceSlot slot;
    Pack *pack;
} Call;

struct RtConvolutions {
    const RtCudnn *c;
    const RtPlan *plan;
    RtPlanCache plans;
    Call *call;             // of each of the plan's calls
    bool *taken;            // for each of its fusions
    RtBnFinalize *finalize; // of its norms
    uint64_t arena;
    RtWorkspace workspace;
};

static bool can_fuse(void *arg, int call, unsigned with) {
    RtConvolutions *v = arg;
    RtError ignored;
    return v->call[call].is_ours &&
           rt_plan_cache_find(&v->plans, &v->call[call].as, with, &ignored) >=
               0;
}

static bool can_finalize(void *arg, int norm) {
    RtConvolutions *v = arg;
    return rt_bn_finalize_can(v->finalize, norm);
}

// ---- planning ----

static bool fail_for_layer(const RtCall *call, RtError *e) {
    char text[256];
    RtError why = *e;
    return rt_fail(e, why.status, "%s: %.250s",
                   rt_call_text(text, sizeof text, call), why.text);
}

static void assign_fusions(RtConvolutions *v) {
    for (int i = 0; i < v->plan->num_calls; i++)
        v->call[i].finalize = -1;
    for (int i = 0; i < v->plan->num_fusions; i++)
        if (v->taken[i]) {
            const RtFusion *f = &v->plan->fusion[i];
            v->call[f->call].fusion[f->kind] = f;
        }
    // bn_finalize follows the statistics if anything reads its bn_params.
    for (int i = 0; i < v->plan->num_fusions; i++)
        for (int j = 0; j < v->plan->num_fusions; j++) {
            const RtFusion *f = &v->plan->fusion[i], *s = &v->plan->fusion[j];
            if (v->taken[i] && v->taken[j] && f->norm == s->norm &&
                f->kind != RT_FUSED_STATISTICS &&
                s->kind == RT_FUSED_STATISTICS)
                v->call[s->call].finalize = f->norm;
        }
}

static bool plan_calls(RtConvolutions *v, RtError *e) {
    for (int i = 0; i < v->plan->num_calls; i++) {
        Call *call = &v->call[i];
        unsigned with = 0;
        if (!call->is_ours)
            continue;
        for (int k = 0; k < NUM_KINDS; k++)
            if (call->fusion[k] != NULL)
                with |= 1u << k;
        call->planned = rt_plan_cache_find(&v->plans, &call->as, with, e);
        if (call->planned < 0)
            return fail_for_layer(&v->plan->call[i], e);
    }
    return true;
}

static bool allocate(RtConvolutions *v, RtError *e) {
    v->call = calloc((size_t)v->plan->num_calls + 1, sizeof *v->call);
    v->taken = calloc((size_t)v->plan->num_fusions + 1, sizeof *v->taken);
    if (v->call == NULL || v->taken == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory for convolution plans");
    v->finalize = rt_bn_finalize_new(v->c, v->plan, e);
    return v->finalize != NULL;
}

static bool is_ours(const RtPlan *plan, int call, RtCall *as) {
    return rt_convolution_of(&plan->call[call], as) &&
           (plan->call[call].kind != RT_MATMUL || !rt_matmuls_needed(plan));
}

bool rt_convolutions_needed(const RtPlan *plan) {
    RtCall as;
    for (int i = 0; i < plan->num_calls; i++)
        if (is_ours(plan, i, &as))
            return true;
    return false;
}

static bool plan_all(RtConvolutions *v, RtError *e) {
    for (int i = 0; i < v->plan->num_calls; i++)
        v->call[i].is_ours = is_ours(v->plan, i, &v->call[i].as);
    const RtChosen *chosen = v->plans.chosen;
    rt_fusions_choose(v->plan, chosen != NULL ? chosen->fused : NULL, can_fuse,
                      can_finalize, v, v->taken);
    assign_fusions(v);
    return plan_calls(v, e);
}

RtConvolutions *rt_convolutions_next(RtConvolutions *previous, const RtCudnn *c,
                                     const RtPlan *plan, const RtChosen *chosen,
                                     RtError *e) {
    RtConvolutions *v = calloc(1, sizeof *v);
    bool good = v != NULL ||
                rt_fail(e, EXIT_MEMORY, "out of memory for convolution plans");
    if (good) {
        *v = (RtConvolutions){
            .c = c,
            .plan = plan,
            .plans = {.c = c,
                      .plan = plan,
                      .chosen = chosen,
                      .previous = previous != NULL ? &previous->plans : NULL}};
        good = allocate(v, e) && plan_all(v, e);
        v->plans.chosen = NULL;
        v->plans.previous = NULL;
    }
    rt_convolutions_free(previous);
    if (good)
        return v;
    rt_convolutions_free(v);
    return NULL;
}

RtConvolutions *rt_convolutions_new(const RtCudnn *c, const RtPlan *plan,
                                    const RtChosen *chosen, RtError *e) {
    return rt_convolutions_next(NULL, c, plan, chosen, e);
}

bool rt_convolutions_as_chosen(const RtConvolutions *v) {
    return !v->plans.missed;
}

static void packs_free(const RtCudnn *c, Pack *p) {
    while (p != NULL) {
        Pack *next = p->next;
        if (p->pack != NULL)
            c->destroy(p->pack);
        free(p);
        p = next;
    }
}

void rt_convolutions_free(RtConvolutions *v) {
    if (v == NULL)
        return;
    for (int i = 0; v->call != NULL && i < v->plan->num_calls; i++)
        packs_free(v->c, v->call[i].pack);
    rt_plan_cache_free(&v->plans);
    rt_bn_finalize_free(v->finalize);
    free(v->call);
    free(v->taken);
    free(v);
}

// ---- queries ----

static RtCudnnPlan *plan_of(const RtConvolutions *v, const Call *call) {
    return &v->plans.made[call->planned].plan;
}

bool rt_convolutions_do(const RtConvolutions *v, int call) {
    return v->call[call].is_ours;
}

void rt_convolutions_size(RtConvolutions *v, const bool *forked,
                          RtWorkspaceSize *size) {
    for (int i = 0; i < v->plan->num_calls; i++)
        if (v->call[i].is_ours)
            v->call[i].slot =
                rt_workspace_add(size, plan_of(v, &v->call[i])->workspace,
                                 forked[i] ? RT_SIDE_STREAM : RT_MAIN_STREAM);
    rt_bn_finalize_size(v->finalize, size);
}

static void packs_forget(const RtConvolutions *v, Call *call) {
    packs_free(v->c, call->pack);
    call->pack = NULL;
}

bool rt_convolutions_alone(const RtConvolutions *v, int call) {
    for (int k = 0; k < NUM_KINDS; k++)
        if (v->call[call].fusion[k] != NULL)
            return false;
    return true;
}

// Forgets the packs of other addresses.
static void forget_packs(RtConvolutions *v) {
    for (int i = 0; i < v->plan->num_calls; i++)
        packs_forget(v, &v->call[i]);
    rt_bn_finalize_rebind(v->finalize);
}

void rt_convolutions_bind(RtConvolutions *v, uint64_t arena,
                          const RtWorkspace *w) {
    if (v->arena != arena || v->workspace.own != w->own ||
        v->workspace.shared[RT_MAIN_STREAM] != w->shared[RT_MAIN_STREAM] ||
        v->workspace.shared[RT_SIDE_STREAM] != w->shared[RT_SIDE_STREAM])
        forget_packs(v);
    v->arena = arena;
    v->workspace = *w;
}

const bool *rt_convolutions_taken(const RtConvolutions *v) {
    return v->taken;
}

bool rt_convolutions_fused(const RtConvolutions *v, int step, int launch) {
    for (int i = 0; i < v->plan->num_fusions; i++)
        if (v->taken[i] && v->plan->fusion[i].step == step &&
            v->plan->fusion[i].launch == launch)
            return true;
    return false;
}

void rt_convolutions_squares(const RtConvolutions *v, uint8_t *squares,
                             size_t count) {
    for (size_t i = 0; i < count; i++)
        squares[i] = 0;
    for (int i = 0; i < v->plan->num_fusions; i++) {
        const RtFusion *f = &v->plan->fusion[i];
        int number = v->plan->norm[f->norm].number;
        if (v->taken[i] && f->kind == RT_FUSED_STATISTICS && number >= 0 &&
            (size_t)number < count)
            squares[number] = 1;
    }
}

// ---- running ----

// The addresses of the operands and the result.
static void address_operands(const RtConvolutions *v, const Call *call,
                             size_t a, size_t b, size_t out,
                             uint64_t address[RT_NUM_ROLES]) {
    static const RtRole roles[][3] = {
        [RT_CONV] = {RT_ROLE_X, RT_ROLE_WEIGHT, RT_ROLE_Y},
        [RT_CONV_GRAD_INPUT] = {RT_ROLE_Y, RT_ROLE_WEIGHT, RT_ROLE_X},
        [RT_CONV_GRAD_WEIGHT] = {RT_ROLE_Y, RT_ROLE_X, RT_ROLE_WEIGHT},
    };
    address[roles[call->as.kind][0]] = v->arena + a;
    address[roles[call->as.kind][1]] = v->arena + b;
    address[roles[call->as.kind][2]] = v->arena + out;
}

static const RtNorm *norm_of(const RtConvolutions *v, const RtFusion *f) {
    return &v->plan->norm[f->norm];
}

static void address_statistics(const RtConvolutions *v, const RtFusion *f,
                               uint64_t address[RT_NUM_ROLES]) {
    address[RT_ROLE_SUM] = v->arena + norm_of(v, f)->sum;
    address[RT_ROLE_SQUARES] = v->arena + norm_of(v, f)->var;
}

// Reads the input of batch_norm in place of its result.
static void address_prologue(const RtConvolutions *v, const RtFusion *f,
                             uint64_t address[RT_NUM_ROLES]) {
    const RtNorm *n = norm_of(v, f);
    address[RT_ROLE_X] = v->arena + n->x;
    address[RT_ROLE_SCALE] = v->arena + rt_bn_param_at(n, RT_BN_EQ_SCALE);
    address[RT_ROLE_BIAS] = v->arena + rt_bn_param_at(n, RT_BN_EQ_BIAS);
}

static void address_backward(const RtConvolutions *v, const RtFusion *f,
                             uint64_t address[RT_NUM_ROLES]) {
    const RtNorm *n = norm_of(v, f);
    address[RT_ROLE_NORM] = v->arena + n->x;
    address[RT_ROLE_MEAN] = v->arena + rt_bn_param_at(n, RT_BN_MEAN);
    address[RT_ROLE_INV_STD] = v->arena + rt_bn_param_at(n, RT_BN_INV_STD);
    address[RT_ROLE_SCALE] = v->arena + n->scale;
    address[RT_ROLE_BIAS] = v->arena + n->bias;
    address[RT_ROLE_D_SCALE] = v->arena + f->d_scale;
    address[RT_ROLE_D_BIAS] = v->arena + f->d_bias;
    for (int i = 0; i < 3; i++)
        address[RT_ROLE_UNUSED + i] =
            v->arena + rt_bn_param_at(n, RT_BN_UNUSED + i);
}

static void *pack_make(const RtConvolutions *v, const Call *call, size_t a,
                       size_t b, size_t out, RtError *e) {
    static void (*const add[NUM_KINDS])(
        const RtConvolutions *v, const RtFusion *f, uint64_t *address) = {
        [RT_FUSED_STATISTICS] = address_statistics,
        [RT_FUSED_PROLOGUE] = address_prologue,
        [RT_FUSED_PROLOGUE_WEIGHT] = address_prologue,
        [RT_FUSED_BACKWARD] = address_backward,
    };
    uint64_t address[RT_NUM_ROLES] = {0};
    address_operands(v, call, a, b, out, address);
    for (int k = 0; k < NUM_KINDS; k++)
        if (call->fusion[k] != NULL)
            add[k](v, call->fusion[k], address);
    const RtCudnnPlan *plan = plan_of(v, call);
    return rt_cudnn_variant_pack(
        plan, address,
        rt_workspace_at(&v->workspace, call->slot, (size_t)plan->workspace), e);
}

static Pack *pack_at(const RtConvolutions *v, Call *call, size_t a, size_t b,
                     size_t out, RtError *e) {
    for (Pack *p = call->pack; p != NULL; p = p->next)
        if (p->a == a && p->b == b && p->out == out)
            return p;
    Pack *p = calloc(1, sizeof *p);
    if (p == NULL) {
        rt_fail(e, EXIT_MEMORY,
                "out of memory for the addresses of a convolution");
        return NULL;
    }
    *p = (Pack){.a = a, .b = b, .out = out, .next = call->pack};
    p->pack = pack_make(v, call, a, b, out, e);
    if (p->pack == NULL) {
        free(p);
        return NULL;
    }
    return call->pack = p;
}

bool rt_convolutions_run(RtConvolutions *v, int number, RtStream on, size_t a,
                         size_t b, size_t out, RtError *e) {
    Call *call = &v->call[number];
    Pack *pack = pack_at(v, call, a, b, out, e);
    if (pack != NULL && rt_cudnn_execute(plan_of(v, call), on, pack->pack, e) &&
        (call->finalize < 0 || rt_bn_finalize_run(v->finalize, call->finalize,
                                                  v->arena, &v->workspace, e)))
        return true;
    return fail_for_layer(&v->plan->call[number], e);
}

// Packs have the address of the workspace, which depends on its size.
bool rt_convolutions_fall_back(RtConvolutions *v, int call) {
    const int before = v->call[call].planned;
    int other = rt_plan_cache_next(
        &v->plans, before,
        (int64_t)rt_workspace_room(&v->workspace, v->call[call].slot));
    for (int i = 0; other >= 0 && i < v->plan->num_calls; i++)
        if (v->call[i].is_ours && v->call[i].planned == before) {
            v->call[i].planned = other;
            packs_forget(v, &v->call[i]);
        }
    return other >= 0;
}

int rt_convolutions_plan_of(const RtConvolutions *v, int call) {
    return v->call[call].is_ours ? v->call[call].planned : -1;
}

bool rt_convolutions_finalize(const RtConvolutions *v, int call) {
    return v->call[call].finalize >= 0;
}

bool rt_convolutions_plan_at(const RtConvolutions *v, int i, RtPlanned *out) {
    if (i >= v->plans.count)
        return false;
    const RtCachedPlan *p = &v->plans.made[i];
    *out = (RtPlanned){.call = &p->call,
                       .with = p->with,
                       .plan = p->good ? &p->plan : NULL,
                       .first = -1};
    for (int k = v->plan->num_calls - 1; k >= 0; k--)
        if (rt_convolutions_plan_of(v, k) == i) {
            out->calls++;
            out->first = k;
        }
    return true;
}
