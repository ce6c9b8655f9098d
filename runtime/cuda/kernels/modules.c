// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels: code that the trainer carries, or that is compiled, is loaded in
// order, and its functions are found.

#include "runtime/cuda/kernels/kernels.h"

#include "runtime/cuda/kernels/embedded_code.h"

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

static bool entries_find(RtKernels *k, const bool *wanted, RtError *e) {
    for (int i = 0; i < k->plan->num_kernels; i++)
        if (wanted[i] && !entry_find(k, i, e))
            return false;
    return true;
}

// ---- code that the trainer carries ----

// Whether the driver does not take code as it is, and may take other.
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

// What came of the code that a trainer carries.
typedef enum { NONE, LOADED, REFUSED, FAILED } Carried;

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

// Room for what a number of modules have.
static bool room_take(RtKernels *k, int modules, RtError *e) {
    k->module = calloc((size_t)modules + 1, sizeof(CUmodule));
    k->entry = calloc((size_t)k->plan->num_kernels + 1, sizeof *k->entry);
    if (k->module == NULL || k->entry == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    k->num_modules = modules;
    return true;
}

static Carried code_load(RtKernels *k, const char *code, const bool *wanted,
                         RtError *e) {
    const RtDriver *cu = k->gpu->cu;
    if (!room_take(k, 1, e))
        return FAILED;
    CUresult result = cu->module_load(&k->module[0], code, 0, NULL, NULL);
    if (!rt_driver_good(cu, result, e, "load the kernels on GPU %d",
                        k->gpu->ordinal))
        return is_refused(result) ? REFUSED : FAILED;
    return entries_find(k, wanted, e) ? LOADED : FAILED;
}

// Nothing is for a text that is not the trainer's own.
static const char *carried_next(const RtKernels *k, int *rank) {
    const RtTrainer *t = k->trainer;
    return t->prelude == NULL
               ? rt_embedded_code_next(t, rt_gpu_capability(k->gpu), rank)
               : NULL;
}

// One after another of what there is for the GPU until the driver takes one.
static Carried carried_load(RtKernels *k, const bool *wanted, RtError *e) {
    int rank = RT_BEFORE_ALL;
    const char *code = carried_next(k, &rank);
    Carried came = NONE;
    while (code != NULL && (came == NONE || came == REFUSED)) {
        came = code_load(k, code, wanted, e);
        if (came != LOADED)
            unload(k);
        code = carried_next(k, &rank);
    }
    return came;
}

// ---- code that is compiled ----

// NVRTC is needed only as there is no code for this GPU.
static bool no_compiler(const RtKernels *k, RtError *e) {
    const RtTrainer *t = k->trainer;
    char names[80];
    RtError own = *e;
    if (t->code == NULL || t->prelude != NULL)
        return false;
    rt_embedded_code_names(t, names, sizeof names);
    return rt_fail(e, own.status,
                   "the trainer was built for compute capability %s, but the "
                   "GPU has %d.%d: %s",
                   names, k->gpu->major, k->gpu->minor, own.text);
}

// Where the driver has refused code, it is that which is told.
static bool compiler_open(const RtKernels *k, bool refused, RtError *e) {
    RtError own;
    return rt_compiler_open(k->compiler, refused ? &own : e) ||
           (!refused && no_compiler(k, e));
}

// A text of the trainer's own is our mistake, one that was given is not.
static bool compile(const RtKernels *k, const bool *wanted, RtError *e) {
    bool good = rt_compiler_finish(k->compiler, wanted, e);
    if (!good && k->trainer->prelude != NULL && e->status == EXIT_FAULT)
        e->status = EXIT_USAGE;
    return good;
}

static bool modules_load(RtKernels *k, const bool *wanted, RtError *e) {
    const RtDriver *cu = k->gpu->cu;
    if (!room_take(k, k->plan->num_kernels, e))
        return false;
    for (int i = 0; i < k->num_modules; i++)
        if (wanted[i] &&
            !rt_driver_good(
                cu,
                cu->module_load(&k->module[i],
                                rt_compiler_code(k->compiler, i)->bytes, 0,
                                NULL, NULL),
                e, "load the kernels on GPU %d", k->gpu->ordinal))
            return false;
    return entries_find(k, wanted, e);
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
        carried_next(k, &rank) == NULL)
        rt_compiler_start(k->compiler, likely);
    return true;
}

// Whether the GPU can launch what waits for all of its blocks, if any does.
static bool waits_possible(const RtKernels *k, const bool *wanted, RtError *e) {
    for (int i = 0; i < k->plan->num_kernels; i++)
        if (wanted[i] && k->plan->kernel[i].phases > 1 && !k->gpu->cooperates)
            return rt_fail(e, EXIT_DEVICE,
                           "GPU %d, %s, does not support cooperative launches, "
                           "but kernel %s needs one",
                           k->gpu->ordinal, k->gpu->name,
                           k->plan->kernel[i].name);
    return true;
}

static bool load(RtKernels *k, const bool *wanted, RtLaps *laps, RtError *e) {
    if (!waits_possible(k, wanted, e))
        return false;
    Carried came = carried_load(k, wanted, e);
    if (came == LOADED || came == FAILED)
        return came == LOADED;
    bool made = compiler_open(k, came == REFUSED, e) && compile(k, wanted, e);
    rt_lap(laps, RT_START_COMPILING);
    return made && modules_load(k, wanted, e);
}

bool rt_kernels_load(RtKernels *k, const bool *wanted, RtLaps *laps,
                     RtError *e) {
    bool good = load(k, wanted, laps, e);
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
