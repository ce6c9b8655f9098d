// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cuDNN plans: the first candidate of the library's heuristics that meets the
// criteria, and its execution.

#include "runtime/cuda/libraries/cudnn.h"

enum { MAX_CANDIDATES = 128, MAX_NOTES = 16 };

// An engine's numerical or behaviour notes, the first 32 as bits; false: the
// library does not report them, or there are too many.  With too little room it
// counts only those that fit, so the number is queried first.
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

// Tensor cores round f32 operands to TF32.
static unsigned reduced_precision_notes(RtType type) {
    unsigned notes = 1u << DNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    if (type == RT_F32)
        notes |= 1u << DNN_NUMERICAL_NOTE_TENSOR_CORE |
                 1u << DNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    return notes;
}

// Reads the properties of a configuration's engine; assumes the worst of one
// that does not report them.
static void describe(const RtCudnn *c, const void *config, RtType type,
                     RtCudnnPlan *p) {
    void *engine = NULL;
    int64_t count;
    unsigned numbers, behaviour;
    p->nondeterministic = p->reduced_precision = p->runtime_compiled = true;
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
        p->nondeterministic =
            numbers >> DNN_NUMERICAL_NOTE_NONDETERMINISTIC & 1;
        p->reduced_precision = (numbers & reduced_precision_notes(type)) != 0;
        p->runtime_compiled =
            behaviour >> DNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION & 1;
    }
    c->destroy(engine);
}

// Makes the plan of a configuration; false if the library cannot, or if its
// workspace is too large.
static bool plan_make(const RtCudnn *c, void *config, int64_t max_workspace,
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
        (max_workspace == 0 || p->workspace <= max_workspace);
    if (good)
        p->plan = plan;
    else
        c->destroy(plan);
    return good;
}

// The first `most` configurations that a heuristics mode proposes, best first;
// *more: there are others.
static int propose(const RtCudnn *c, const RtCudnnPlan *p, int mode, int most,
                   bool *more, void **config) {
    RtError ignored;
    RtDescriptors d = {.c = c, .error = &ignored};
    int64_t count = 0, got = 0;
    *more = false;
    void *heuristics = rt_descriptor(&d, DNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    rt_descriptor_link(&d, heuristics, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                       p->graph.graph);
    rt_descriptor_enum(&d, heuristics, DNN_ATTR_ENGINEHEUR_MODE,
                       DNN_TYPE_HEUR_MODE, mode);
    if (c->device != NULL)
        rt_descriptor_link(&d, heuristics, DNN_ATTR_ENGINEHEUR_DEVICEPROP,
                           c->device);
    rt_descriptor_finalize(&d, heuristics, "a query for plans");
    if (!d.failed &&
        c->get(heuristics, DNN_ATTR_ENGINEHEUR_RESULTS,
               DNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL) == 0) {
        *more = count > most;
        count = *more ? most : count;
        int64_t made = 0;
        while (made < count &&
               c->create(DNN_BACKEND_ENGINECFG_DESCRIPTOR, &config[made]) == 0)
            made++;
        if (made > 0)
            c->get(heuristics, DNN_ATTR_ENGINEHEUR_RESULTS,
                   DNN_TYPE_BACKEND_DESCRIPTOR, made, &got, config);
        while (made > got)
            c->destroy(config[--made]);
    }
    rt_descriptors_free(&d);
    return (int)got;
}

static bool meets(const RtCudnnPlan *p, RtCudnnCriteria criteria) {
    return (criteria.allow_nondeterministic || !p->nondeterministic) &&
           !p->reduced_precision &&
           !(criteria.precompiled_only && p->runtime_compiled);
}

// Makes the plan of the first that meets the criteria; returns how many the
// mode proposed.
static int try_candidates(const RtCudnn *c, RtType type, int mode, int most,
                          int before, RtCudnnCriteria criteria, RtCudnnPlan *p,
                          bool *more) {
    void *config[MAX_CANDIDATES];
    int count = propose(c, p, mode, most, more, config);
    for (int i = 0; i < count && p->plan == NULL; i++) {
        p->candidate = before + i;
        if (p->candidate < criteria.first)
            continue;
        describe(c, config[i], type, p);
        if (meets(p, criteria))
            plan_make(c, config[i], criteria.max_workspace, p);
    }
    for (int i = 0; i < count; i++)
        c->destroy(config[i]);
    return count;
}

// Mostly the first candidate suffices.  The library examines each candidate
// that is requested, and those of a fusion that needs runtime compilation took
// nearly all of the planning time, so the others are requested only if the
// first fails.
static int try_mode(const RtCudnn *c, RtType type, int mode, int before,
                    RtCudnnCriteria criteria, RtCudnnPlan *p) {
    bool more;
    int first = try_candidates(c, type, mode, 1, before, criteria, p, &more);
    if (p->plan != NULL || !more)
        return first;
    if (criteria.first < before + first)
        criteria.first = before + first;
    return try_candidates(c, type, mode, MAX_CANDIDATES, before, criteria, p,
                          &more);
}

// A plain convolution has many engines, and the first mode may miss those that
// meet the criteria.  A fusion has one or none, and each further mode takes a
// third of a second on some devices.
static bool plan_choose(const RtCudnn *c, RtType type, bool fusion,
                        RtCudnnCriteria criteria, RtCudnnPlan *p) {
    static const int modes[] = {DNN_HEUR_MODE_A, DNN_HEUR_MODE_B,
                                DNN_HEUR_MODE_FALLBACK};
    int before = 0; // candidates of earlier modes
    for (int m = 0; m < (fusion ? 1 : 3) && p->plan == NULL; m++)
        before += try_mode(c, type, modes[m], before, criteria, p);
    return p->plan != NULL;
}

bool rt_cudnn_plan(const RtCudnn *c, const RtCall *call, unsigned with,
                   RtCudnnCriteria criteria, RtCudnnPlan *out, RtError *e) {
    *out = (RtCudnnPlan){.own = {.c = c, .error = e}};
    if (rt_cudnn_graph(&out->own, call, with, &out->graph) &&
        (plan_choose(c, call->type, with != 0, criteria, out) ||
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

// ---- execution ----

void *rt_cudnn_variant_pack(const RtCudnnPlan *p,
                            const uint64_t address[RT_NUM_ROLES],
                            uint64_t workspace, RtError *e) {
    RtDescriptors d = {.c = p->own.c, .error = e};
    int64_t id[RT_NUM_ROLES];
    uint64_t at[RT_NUM_ROLES];
    for (int i = 0; i < p->graph.num_roles; i++) {
        id[i] = p->graph.role[i];
        at[i] = address[p->graph.role[i]];
    }
    void *pack = rt_descriptor(&d, DNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    rt_descriptor_set(&d, pack, DNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                      DNN_TYPE_INT64, p->graph.num_roles, id);
    rt_descriptor_set(&d, pack, DNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                      DNN_TYPE_VOID_PTR, p->graph.num_roles, at);
    rt_descriptor_set(&d, pack, DNN_ATTR_VARIANT_PACK_WORKSPACE,
                      DNN_TYPE_VOID_PTR, 1, &workspace);
    rt_descriptor_finalize(&d, pack, "the addresses of a convolution");
    if (!d.failed)
        return pack;
    rt_descriptors_free(&d);
    return NULL;
}

bool rt_cudnn_execute(const RtCudnnPlan *p, RtStream on, void *pack,
                      RtError *e) {
    char why[512] = "";
    const RtCudnn *c = p->own.c;
    void *handle = on == RT_SIDE_STREAM ? c->side_handle : c->handle;
    if (c->execute(handle, p->plan, pack) == 0)
        return true;
    c->last_error(why, sizeof why);
    return rt_fail(e, EXIT_DEVICE, "cuDNN cannot run a plan: %.200s", why);
}
