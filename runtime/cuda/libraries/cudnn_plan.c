// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cuDNN plans: the first of those that the library's heuristics offer that can
// be had.

#include "runtime/cuda/libraries/cudnn.h"

enum { MAX_OFFERED = 128, MAX_NOTES = 16 };

// Which of the first 32 notes an engine has among its numerical or behavioural
// ones, as bits; false: it does not say, or has too many.  With room for some
// the library tells of no more, and counts them so.
static bool engine_notes(const RtCudnn *c, const void *engine, int attribute,
                         int type, unsigned *notes) {
    int note[MAX_NOTES];
    int64_t all = 0, count = 0;
    *notes = 0;
    if (c->get(engine, attribute, type, 0, &all, NULL) != 0 ||
        all > MAX_NOTES ||
        c->get(engine, attribute, type, MAX_NOTES, &count, note) != 0)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (note[i] >= 0 && note[i] < 32)
            *notes |= 1u << note[i];
    return true;
}

// Tensor cores read numbers of f32 with the digits of TF32.
static unsigned inexact_notes(RtType type) {
    unsigned notes = 1u << DNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    if (type == RT_F32)
        notes |= 1u << DNN_NUMERICAL_NOTE_TENSOR_CORE |
                 1u << DNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    return notes;
}

// What the engine of a configuration is like; of one that does not say, the
// worst.
static void describe(const RtCudnn *c, const void *config, RtType type,
                     RtCudnnPlan *p) {
    void *engine = NULL;
    int64_t count;
    unsigned numbers, behaviour;
    p->varies = p->inexact = p->compiled = true;
    if (c->create(DNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != 0)
        return;
    if (c->get(config, DNN_ATTR_ENGINECFG_ENGINE, DNN_TYPE_BACKEND_DESCRIPTOR,
               1, &count, &engine) == 0 &&
        c->get(engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64, 1, &count,
               &p->engine) == 0 &&
        engine_notes(c, engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE,
                     DNN_TYPE_NUMERICAL_NOTE, &numbers) &&
        engine_notes(c, engine, DNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                     DNN_TYPE_BEHAVIOR_NOTE, &behaviour)) {
        p->varies = numbers >> DNN_NUMERICAL_NOTE_NONDETERMINISTIC & 1;
        p->inexact = (numbers & inexact_notes(type)) != 0;
        p->compiled = behaviour >> DNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION & 1;
    }
    c->destroy(engine);
}

// Makes the plan of a configuration; false where it cannot be had or works in
// more room than there is for it.
static bool plan_make(const RtCudnn *c, void *config, int64_t within,
                      RtCudnnPlan *p) {
    int64_t count;
    void *plan = NULL;
    if (c->create(DNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) != 0)
        return false;
    bool good =
        (c->handle == NULL || c->set(plan, DNN_ATTR_EXECUTION_PLAN_HANDLE,
                                     DNN_TYPE_HANDLE, 1, &c->handle) == 0) &&
        c->set(plan, DNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
               DNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) == 0 &&
        c->finalize(plan) == 0 &&
        c->get(plan, DNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, DNN_TYPE_INT64, 1,
               &count, &p->workspace) == 0 &&
        (within == 0 || p->workspace <= within);
    if (good)
        p->plan = plan;
    else
        c->destroy(plan);
    return good;
}

// The configurations that a way of looking offers, best first, but for those
// behind so many, which there may be more of.
static int offered(const RtCudnn *c, const RtCudnnPlan *p, int mode, int most,
                   bool *more, void **config) {
    RtError ignored;
    RtDescriptors d = {.c = c, .error = &ignored};
    int64_t count = 0, got = 0;
    *more = false;
    void *look = rt_descriptor(&d, DNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    rt_descriptor_link(&d, look, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                       p->graph.graph);
    rt_descriptor_enum(&d, look, DNN_ATTR_ENGINEHEUR_MODE, DNN_TYPE_HEUR_MODE,
                       mode);
    if (c->device != NULL)
        rt_descriptor_link(&d, look, DNN_ATTR_ENGINEHEUR_DEVICEPROP, c->device);
    rt_descriptor_finalize(&d, look, "a query for plans");
    if (!d.failed &&
        c->get(look, DNN_ATTR_ENGINEHEUR_RESULTS, DNN_TYPE_BACKEND_DESCRIPTOR,
               0, &count, NULL) == 0) {
        *more = count > most;
        count = *more ? most : count;
        int64_t made = 0;
        while (made < count &&
               c->create(DNN_BACKEND_ENGINECFG_DESCRIPTOR, &config[made]) == 0)
            made++;
        if (made > 0)
            c->get(look, DNN_ATTR_ENGINEHEUR_RESULTS,
                   DNN_TYPE_BACKEND_DESCRIPTOR, made, &got, config);
        while (made > got)
            c->destroy(config[--made]);
    }
    rt_descriptors_free(&d);
    return (int)got;
}

static bool is_wished(const RtCudnnPlan *p, RtCudnnCriteria wish) {
    return (wish.allow_nondeterministic || !p->varies) && !p->inexact &&
           !(wish.precompiled_only && p->compiled);
}

// Makes the plan of the first that is as wished; returns how many there are.
static int offers_try(const RtCudnn *c, RtType type, int mode, int most,
                      int before, RtCudnnCriteria wish, RtCudnnPlan *p,
                      bool *more) {
    void *config[MAX_OFFERED];
    int count = offered(c, p, mode, most, more, config);
    for (int i = 0; i < count && p->plan == NULL; i++) {
        p->candidate = before + i;
        if (p->candidate < wish.first)
            continue;
        describe(c, config[i], type, p);
        if (is_wished(p, wish))
            plan_make(c, config[i], wish.within, p);
    }
    for (int i = 0; i < count; i++)
        c->destroy(config[i]);
    return count;
}

// Mostly the first will do.  The library looks at each that it is asked for,
// and at those of a fusion that it would have to compile so long that nearly
// all planning was that: so all are asked for only where the first will not.
static int looked_for(const RtCudnn *c, RtType type, int mode, int before,
                      RtCudnnCriteria wish, RtCudnnPlan *p) {
    bool more;
    int first = offers_try(c, type, mode, 1, before, wish, p, &more);
    if (p->plan != NULL || !more)
        return first;
    if (wish.first < before + first)
        wish.first = before + first;
    return offers_try(c, type, mode, MAX_OFFERED, before, wish, p, &more);
}

// A convolution alone has many engines, of which the first way of looking may
// miss those that are wanted; a fusion has one or none, and looking for it
// again takes a third of a second on some devices.
static bool plan_choose(const RtCudnn *c, RtType type, bool fusion,
                        RtCudnnCriteria wish, RtCudnnPlan *p) {
    static const int modes[] = {DNN_HEUR_MODE_A, DNN_HEUR_MODE_B,
                                DNN_HEUR_MODE_FALLBACK};
    int before = 0; // candidates of the ways of looking so far
    for (int m = 0; m < (fusion ? 1 : 3) && p->plan == NULL; m++)
        before += looked_for(c, type, modes[m], before, wish, p);
    return p->plan != NULL;
}

bool rt_cudnn_plan(const RtCudnn *c, const RtCall *call, unsigned with,
                   RtCudnnCriteria wish, RtCudnnPlan *out, RtError *e) {
    *out = (RtCudnnPlan){.own = {.c = c, .error = e}};
    if (rt_cudnn_graph(&out->own, call, with, &out->graph) &&
        (plan_choose(c, call->type, with != 0, wish, out) ||
         rt_fail(e, EXIT_DEVICE, "cuDNN has no plan for a convolution")))
        return true;
    rt_cudnn_plan_free(out);
    return false;
}

bool rt_cudnn_finalize_plan(const RtCudnn *c, int channels, RtCudnnPlan *out,
                            RtError *e) {
    *out = (RtCudnnPlan){.own = {.c = c, .error = e}};
    if (rt_cudnn_finalize_graph(&out->own, channels, &out->graph) &&
        (plan_choose(c, RT_F16, true, (RtCudnnCriteria){0}, out) ||
         rt_fail(e, EXIT_DEVICE,
                 "cuDNN has no plan for bn_finalize of a batch_norm")))
        return true;
    rt_cudnn_plan_free(out);
    return false;
}

void rt_cudnn_plan_free(RtCudnnPlan *p) {
    if (p->plan != NULL)
        p->own.c->destroy(p->plan);
    p->plan = NULL;
    rt_descriptors_free(&p->own);
}
