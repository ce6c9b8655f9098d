// Calls: who does which.

#include "runtime/cuda/calls.h"

#include <stdlib.h>

bool rt_calls_open(RtCalls *c, const RtGpu *gpu, const RtPlan *plan,
                   CUstream stream, RtStaging *staging, RtError *e) {
    *c = (RtCalls){
        .gpu = gpu, .plan = plan, .stream = stream, .staging = staging};
    for (int i = 0; i < plan->num_calls; i++)
        if (!rt_calls_on_host(c, i))
            return rt_fail(e, EXIT_DEVICE,
                           "this build of the runtime has no convolutions and "
                           "products on CUDA devices yet; --device=host trains "
                           "on the processor");
    return true;
}

void rt_calls_close(RtCalls *c) {
    *c = (RtCalls){0};
}

size_t rt_calls_workspace(const RtCalls *c) {
    (void)c;
    return 0;
}

void rt_calls_place(RtCalls *c, CUdeviceptr arena, CUdeviceptr workspace) {
    c->arena = arena;
    c->workspace = workspace;
}

bool rt_calls_on_host(const RtCalls *c, int call) {
    RtCallKind kind = c->plan->call[call].kind;
    return kind == RT_EIGH || kind == RT_ORTHOGONAL;
}

// ---- on the host ----

static bool factor(RtCalls *c, const RtCall *call, size_t from, size_t to,
                   void *work, float *a, float *out, RtError *e) {
    size_t rows = call->kind == RT_EIGH ? (size_t)call->n + 1 : (size_t)call->n;
    size_t in_bytes = (size_t)call->n * (size_t)call->k * sizeof *a;
    size_t out_bytes = rows * (size_t)call->k * sizeof *out;
    if (!rt_staging_read(c->staging, a, c->arena + from, in_bytes, e))
        return false;
    rt_factor(call, a, out, work);
    return rt_staging_write(c->staging, c->arena + to, out, out_bytes, e);
}

// Such a step runs once, so room for it is taken when it does.
static bool factor_run(RtCalls *c, const RtCall *call, size_t from, size_t to,
                       RtError *e) {
    size_t values = ((size_t)call->n + 1) * (size_t)call->k;
    float *a = calloc(values, sizeof *a), *out = calloc(values, sizeof *out);
    void *work = malloc(rt_factor_bytes(call) + 1);
    bool good = a != NULL && out != NULL && work != NULL
                    ? factor(c, call, from, to, work, a, out, e)
                    : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(a);
    free(out);
    free(work);
    return good;
}

bool rt_calls_run(RtCalls *c, int call, size_t a, size_t b, size_t out,
                  RtError *e) {
    (void)b;
    return factor_run(c, &c->plan->call[call], a, out, e);
}
