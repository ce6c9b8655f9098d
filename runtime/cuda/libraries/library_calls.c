// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Library calls: each goes to cuDNN, to cuBLASLt, to the host, or, if it sums
// over nothing, is a fill with zeros.

#include "runtime/cuda/libraries/libraries.h"

#include "runtime/host/host.h"

#include <stdlib.h>

static bool open_cudnn(RtLibraryCalls *c, RtError *e) {
    return !rt_convolutions_needed(c->plan) ||
           (rt_cudnn_open(&c->cudnn, e) &&
            rt_cudnn_compatible(&c->cudnn, rt_gpu_capability(c->gpu),
                                c->gpu->driver, e) &&
            rt_cudnn_attach(&c->cudnn, c->stream[RT_MAIN_STREAM],
                            c->stream[RT_SIDE_STREAM], e));
}

static bool open_matmuls(RtLibraryCalls *c, RtError *e) {
    if (!rt_matmuls_needed(c->plan))
        return true;
    c->matmuls = rt_matmuls_new(c->plan, c->gpu, c->stream, e);
    return c->matmuls != NULL;
}

static bool find_forked(RtLibraryCalls *c, RtError *e) {
    c->forked = calloc((size_t)c->plan->num_calls + 1, sizeof *c->forked);
    if (c->forked == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; i < c->plan->num_steps; i++) {
        const RtStep *step = &c->plan->step[i];
        for (int k = 0; k < step->num_forks; k++)
            c->forked[step->launch[step->fork[k].call].call] =
                c->stream[RT_SIDE_STREAM] != NULL;
    }
    return true;
}

bool rt_library_calls_open(RtLibraryCalls *c, const RtGpu *gpu,
                           const RtPlan *plan, CUstream stream, CUstream side,
                           RtStaging *staging, RtError *e) {
    *c = (RtLibraryCalls){
        .gpu = gpu, .plan = plan, .stream = {stream, side}, .staging = staging};
    return find_forked(c, e) && open_cudnn(c, e) && open_matmuls(c, e);
}

bool rt_library_calls_plan(RtLibraryCalls *c, const RtChosen *chosen,
                           bool *as_chosen, RtError *e) {
    *as_chosen = chosen == NULL || c->matmuls == NULL ||
                 rt_matmuls_as_chosen(c->matmuls, chosen);
    if (c->cudnn.library == NULL)
        return true;
    c->convolutions = rt_convolutions_new(&c->cudnn, c->plan, chosen, e);
    *as_chosen &=
        c->convolutions != NULL && rt_convolutions_as_chosen(c->convolutions);
    return c->convolutions != NULL;
}

void rt_library_calls_close(RtLibraryCalls *c) {
    if (c->convolutions != NULL)
        rt_convolutions_free(c->convolutions);
    if (c->cudnn.library != NULL)
        rt_cudnn_close(&c->cudnn);
    rt_matmuls_free(c->matmuls);
    free(c->forked);
    *c = (RtLibraryCalls){0};
}

static RtWorkspaceSize size_of(RtLibraryCalls *c) {
    RtWorkspaceSize size = {0};
    if (c->convolutions != NULL)
        rt_convolutions_size(c->convolutions, c->forked, &size);
    if (c->matmuls != NULL)
        rt_matmuls_size(c->matmuls, c->forked, &size);
    return size;
}

size_t rt_library_calls_workspace(RtLibraryCalls *c) {
    RtWorkspaceSize size = size_of(c);
    return size.own + size.shared[RT_MAIN_STREAM] + size.shared[RT_SIDE_STREAM];
}

static void bind_in(RtLibraryCalls *c, CUdeviceptr workspace) {
    RtWorkspaceSize size = size_of(c);
    const CUdeviceptr shared = workspace + size.own;
    const RtWorkspace w = {
        workspace, {shared, shared + size.shared[RT_MAIN_STREAM]}, size};
    if (c->convolutions != NULL)
        rt_convolutions_bind(c->convolutions, c->arena, &w);
    if (c->matmuls != NULL)
        rt_matmuls_bind(c->matmuls, c->arena, &w);
}

void rt_library_calls_bind(RtLibraryCalls *c, CUdeviceptr arena,
                           CUdeviceptr workspace) {
    c->arena = arena;
    c->workspace = workspace;
    bind_in(c, workspace);
}

RtConvolutions *rt_library_calls_use(RtLibraryCalls *c, RtConvolutions *v,
                                     CUdeviceptr workspace) {
    RtConvolutions *before = c->convolutions;
    c->convolutions = v;
    bind_in(c, workspace != 0 ? workspace : c->workspace);
    return before;
}

// One more than the highest number of statistics that a call may compute.
static size_t count_squares(const RtPlan *plan) {
    int most = -1;
    for (int i = 0; i < plan->num_fusions; i++) {
        int number = plan->norm[plan->fusion[i].norm].number;
        most = number > most ? number : most;
    }
    return (size_t)(most + 1);
}

bool rt_library_calls_set_flags(const RtLibraryCalls *c, const RtKernels *k,
                                RtError *e) {
    size_t count = count_squares(c->plan);
    if (c->convolutions == NULL || count == 0)
        return true;
    uint8_t *squares = malloc(count);
    if (squares == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    rt_convolutions_squares(c->convolutions, squares, count);
    bool good = rt_kernels_set_global(k, "sinter_squares", squares, count,
                                      c->stream[RT_MAIN_STREAM], e);
    free(squares);
    return good;
}

bool rt_library_calls_fused(const RtLibraryCalls *c, int step, int launch) {
    return c->convolutions != NULL &&
           rt_convolutions_fused(c->convolutions, step, launch);
}

bool rt_library_calls_on_host(const RtLibraryCalls *c, int call) {
    RtCallKind kind = c->plan->call[call].kind;
    return kind == RT_EIGH || kind == RT_ORTHOGONAL;
}

// ---- on the host ----

static bool factor(RtLibraryCalls *c, const RtCall *call, size_t from,
                   size_t to, void *work, float *a, float *out, RtError *e) {
    size_t rows = call->kind == RT_EIGH ? (size_t)call->n + 1 : (size_t)call->n;
    size_t in_bytes = (size_t)call->n * (size_t)call->k * sizeof *a;
    size_t out_bytes = rows * (size_t)call->k * sizeof *out;
    if (!rt_staging_read(c->staging, a, c->arena + from, in_bytes, e))
        return false;
    rt_factor(call, a, out, work);
    return rt_staging_write(c->staging, c->arena + to, out, out_bytes, e);
}

// Such a step runs once, so its memory is allocated when it runs.
static bool run_factorization(RtLibraryCalls *c, const RtCall *call,
                              size_t from, size_t to, RtError *e) {
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

static bool fill_zeros(RtLibraryCalls *c, const RtCall *call, size_t out,
                       RtError *e) {
    const RtDriver *cu = c->gpu->cu;
    size_t count[3];
    rt_call_count(call, count);
    if (call->accumulate || count[2] == 0)
        return true;
    return rt_driver_good(cu,
                          cu->fill(c->arena + out, 0,
                                   count[2] * rt_type_bytes(call->type),
                                   c->stream[RT_MAIN_STREAM]),
                          e, "fill a result with zeros");
}

bool rt_library_calls_may_fork(const RtLibraryCalls *c, int call) {
    return c->forked[call] && !rt_library_calls_on_host(c, call) &&
           !rt_call_of_nothing(&c->plan->call[call]) &&
           (c->convolutions == NULL ||
            rt_convolutions_alone(c->convolutions, call));
}

bool rt_library_calls_run(RtLibraryCalls *c, int call, RtStream on, size_t a,
                          size_t b, size_t out, RtError *e) {
    if (rt_library_calls_on_host(c, call))
        return run_factorization(c, &c->plan->call[call], a, out, e);
    if (rt_call_of_nothing(&c->plan->call[call]))
        return fill_zeros(c, &c->plan->call[call], out, e);
    if (c->convolutions != NULL && rt_convolutions_do(c->convolutions, call))
        return rt_convolutions_run(c->convolutions, call, on, a, b, out, e);
    return rt_matmuls_run(c->matmuls, call, on, a, b, out, e);
}

bool rt_library_calls_fall_back(RtLibraryCalls *c, int call) {
    if (rt_library_calls_on_host(c, call) ||
        rt_call_of_nothing(&c->plan->call[call]))
        return false;
    if (c->convolutions != NULL && rt_convolutions_do(c->convolutions, call))
        return rt_convolutions_fall_back(c->convolutions, call);
    return rt_matmuls_fall_back(c->matmuls, call);
}
