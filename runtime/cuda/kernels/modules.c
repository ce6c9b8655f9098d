// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modules: loads embedded or compiled code, and finds its functions.

#include "runtime/cuda/kernels/kernels.h"

#include <stdlib.h>

static bool entry_find(RtKernels *k, int kernel, RtError *e) {
    const RtGpu *g = k->gpu;
    const RtDriver *cu = g->cu;
    const RtKernel *is = &k->plan->kernel[kernel];
    RtFunction *entry = &k->entry[kernel];
    if (!rt_driver_good(
            cu,
            cu->module_function(&entry->function,
                                k->module[k->num_modules > 1 ? kernel : 0],
                                is->name),
            e, "find kernel %s", is->name) ||
        !rt_driver_good(cu,
                        cu->function_occupancy(&entry->resident,
                                               entry->function, is->threads, 0),
                        e, "query the occupancy of %s", is->name))
        return false;
    entry->resident *= g->processors;
    return entry->resident > 0 ||
           rt_fail(e, EXIT_DEVICE, "%s cannot hold one block of kernel %s",
                   g->name, is->name);
}

static bool entries_find(RtKernels *k, const bool *needed, RtError *e) {
    for (int i = 0; i < k->plan->num_kernels; i++)
        if (needed[i] && !entry_find(k, i, e))
            return false;
    return true;
}

// ---- embedded code ----

// Whether the driver rejects this code but may accept other code.
static bool is_refused(CUresult result) {
    switch (result) {
    case CUDA_ERROR_INVALID_IMAGE: // of a newer CUDA
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
        return true;
    default:
        return false;
    }
}

// The result of loading embedded code.
typedef enum { NONE, LOADED, REFUSED, FAILED } Loading;

static void unload(RtKernels *k) {
    for (int i = 0; i < k->num_modules; i++)
        if (k->module[i] != NULL)
            k->gpu->cu->module_unload(k->module[i]);
    free(k->module);
    free(k->entry);
    k->module = NULL;
    k->num_modules = 0;
    k->entry = NULL;
}

static bool allocate(RtKernels *k, int modules, RtError *e) {
    k->module = calloc((size_t)modules + 1, sizeof(CUmodule));
    k->entry = calloc((size_t)k->plan->num_kernels + 1, sizeof *k->entry);
    if (k->module == NULL || k->entry == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    k->num_modules = modules;
    return true;
}

static Loading code_load(RtKernels *k, const char *code, const bool *needed,
                         RtError *e) {
    const RtDriver *cu = k->gpu->cu;
    if (!allocate(k, 1, e))
        return FAILED;
    CUresult result = cu->module_load(&k->module[0], code, 0, NULL, NULL);
    if (!rt_driver_good(cu, result, e, "load the kernels on GPU %d",
                        k->gpu->ordinal))
        return is_refused(result) ? REFUSED : FAILED;
    return entries_find(k, needed, e) ? LOADED : FAILED;
}

// A text from a folder has no embedded code.
static const char *embedded_next(const RtKernels *k, int *rank) {
    const RtTrainer *t = k->trainer;
    return t->prelude == NULL
               ? rt_embedded_code_next(t, rt_gpu_capability(k->gpu), rank)
               : NULL;
}

// Tries the embedded code for the GPU, best first, until the driver accepts
// one.
static Loading embedded_load(RtKernels *k, const bool *needed, RtError *e) {
    int rank = RT_BEFORE_ALL;
    const char *code = embedded_next(k, &rank);
    Loading loading = NONE;
    while (code != NULL && (loading == NONE || loading == REFUSED)) {
        k->capability = rt_embedded_code_capability(rank);
        loading = code_load(k, code, needed, e);
        if (loading != LOADED)
            unload(k);
        code = embedded_next(k, &rank);
    }
    return loading;
}

// ---- compiled code ----

// Adds the reason: NVRTC is needed because no embedded code is for this GPU.
static bool no_compiler(const RtKernels *k, RtError *e) {
    const RtTrainer *t = k->trainer;
    char names[80];
    RtError copy = *e;
    if (t->code == NULL || t->prelude != NULL)
        return false;
    rt_embedded_code_names(t, names, sizeof names);
    return rt_fail(e, copy.status,
                   "the trainer was built for compute capability %s, but the "
                   "GPU has %d.%d: %s",
                   names, k->gpu->major, k->gpu->minor, copy.text);
}

// If the driver refused embedded code, keeps that error.
static bool compiler_open(const RtKernels *k, bool refused, RtError *e) {
    RtError ignored;
    return rt_compiler_open(k->compiler, refused ? &ignored : e) ||
           (!refused && no_compiler(k, e));
}

// Text that does not compile is our mistake, unless a user gave it.
static bool compile(const RtKernels *k, const bool *needed, RtError *e) {
    bool good = rt_compiler_finish(k->compiler, needed, e);
    if (!good && k->trainer->prelude != NULL && e->status == EXIT_FAULT)
        e->status = EXIT_USAGE;
    return good;
}

static bool modules_load(RtKernels *k, const bool *needed, RtError *e) {
    const RtDriver *cu = k->gpu->cu;
    if (!allocate(k, k->plan->num_kernels, e))
        return false;
    for (int i = 0; i < k->num_modules; i++)
        if (needed[i] &&
            !rt_driver_good(
                cu,
                cu->module_load(&k->module[i],
                                rt_compiler_code(k->compiler, i)->bytes, 0,
                                NULL, NULL),
                e, "load the kernels on GPU %d", k->gpu->ordinal))
            return false;
    return entries_find(k, needed, e);
}

// ---- opening ----

bool rt_kernels_start(RtKernels *k, const RtGpu *gpu, const RtTrainer *t,
                      const RtPlan *plan, const bool *likely,
                      const RtFiles *files, RtError *e) {
    RtError ignored;
    int rank = RT_BEFORE_ALL;
    *k = (RtKernels){.gpu = gpu, .trainer = t, .plan = plan};
    k->compiler = rt_compiler_new(gpu, t, plan, files, e);
    if (k->compiler == NULL)
        return false;
    if (rt_compiler_open(k->compiler, &ignored) &&
        embedded_next(k, &rank) == NULL)
        rt_compiler_start(k->compiler, likely);
    return true;
}

// Whether the GPU supports cooperative launches, if a kernel needs one.
static bool can_cooperate(const RtKernels *k, const bool *needed, RtError *e) {
    for (int i = 0; i < k->plan->num_kernels; i++)
        if (needed[i] && k->plan->kernel[i].phases > 1 && !k->gpu->cooperates)
            return rt_fail(e, EXIT_DEVICE,
                           "GPU %d, %s, does not support cooperative launches, "
                           "but kernel %s needs one",
                           k->gpu->ordinal, k->gpu->name,
                           k->plan->kernel[i].name);
    return true;
}

static bool load(RtKernels *k, const bool *needed, RtLaps *laps, RtError *e) {
    if (!can_cooperate(k, needed, e))
        return false;
    Loading loading = embedded_load(k, needed, e);
    if (loading == LOADED || loading == FAILED)
        return loading == LOADED;
    k->capability = rt_gpu_capability(k->gpu);
    bool made =
        compiler_open(k, loading == REFUSED, e) && compile(k, needed, e);
    rt_lap(laps, RT_START_COMPILING);
    return made && modules_load(k, needed, e);
}

bool rt_kernels_load(RtKernels *k, const bool *needed, RtLaps *laps,
                     RtError *e) {
    bool good = load(k, needed, laps, e);
    rt_lap(laps, RT_START_LOADING);
    rt_compiler_free(k->compiler);
    k->compiler = NULL;
    k->trainer = NULL;
    if (!good)
        rt_kernels_close(k);
    return good;
}

void rt_kernels_close(RtKernels *k) {
    unload(k);
    rt_compiler_free(k->compiler);
    *k = (RtKernels){0};
}

bool rt_kernels_set_global(const RtKernels *k, const char *variable,
                           const void *value, size_t bytes, CUstream stream,
                           RtError *e) {
    const RtDriver *cu = k->gpu->cu;
    for (int i = 0; i < k->num_modules; i++) {
        CUdeviceptr at = 0;
        size_t room = 0;
        if (k->module[i] == NULL)
            continue;
        CUresult found = cu->module_global(&at, &room, k->module[i], variable);
        if (found == CUDA_ERROR_NOT_FOUND)
            continue;
        if (!rt_driver_good(cu, found, e, "find %s", variable) ||
            (room < bytes &&
             !rt_fail(e, EXIT_FAULT, "%s is too small", variable)) ||
            !rt_driver_good(cu, cu->copy_to_device(at, value, bytes, stream), e,
                            "write %s", variable))
            return false;
    }
    return rt_driver_good(cu, cu->stream_sync(stream), e, "write %s", variable);
}
