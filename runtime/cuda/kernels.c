// Kernels: each is compiled for itself by worker threads, or read from the
// cache, and then they are loaded in order.

#include "runtime/cuda/kernels.h"

#include "runtime/cuda/cache.h"
#include "runtime/cuda/embedded.h"
#include "runtime/cuda/prelude.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_WORKERS = 16, OPTION_BYTES = 48 };

// What the workers share.  Each takes the next kernel until none is left.
typedef struct {
    const RtNvrtc *nvrtc;
    const RtCache *cache;
    const char *text;
    const char *const *prelude;
    const char *target; // the option that names the GPU
    bool lines;         // the code says which line it is from
    const bool *wanted;
    RtCode *code; // of each kernel; nothing where it is not wanted
    int count;
    pthread_mutex_t lock;
    int next;
    bool failed;
    RtError *error; // of the first that failed
} Work;

static bool kernel_compile(const Work *w, int kernel, RtError *e) {
    char which[OPTION_BYTES];
    const char *option[RT_NVRTC_OPTIONS] = {w->target, which};
    int num_options = 2;
    if (w->lines)
        option[num_options++] = "-lineinfo";
    RtSource s = {
        .text = w->text,
        .num_headers = RT_PRELUDE_FILES,
        .header = w->prelude,
        .include = rt_prelude_name,
        .num_options = num_options,
        .option = option,
    };
    snprintf(which, sizeof which, "-DSINTER_KERNEL=%d", kernel);
    RtCacheKey key = rt_cache_key(w->nvrtc, &s);
    if (rt_cache_read(w->cache, key, &w->code[kernel]))
        return true;
    if (!rt_nvrtc_compile(w->nvrtc, &s, &w->code[kernel], e))
        return false;
    rt_cache_write(w->cache, key, &w->code[kernel]);
    return true;
}

static void *kernels_compile(void *argument) {
    Work *w = argument;
    pthread_mutex_lock(&w->lock);
    while (w->next < w->count && !w->failed) {
        RtError e;
        int kernel = w->next++;
        pthread_mutex_unlock(&w->lock);
        bool good = !w->wanted[kernel] || kernel_compile(w, kernel, &e);
        pthread_mutex_lock(&w->lock);
        if (!good && !w->failed) {
            w->failed = true;
            *w->error = e;
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

// This thread is one of the workers; those that do not start are not missed.
static bool work_do(Work *w) {
    pthread_t worker[MOST_WORKERS];
    int cores = rt_team_largest(), started = 0;
    int wanted = w->count < cores ? w->count : cores;
    wanted = wanted < MOST_WORKERS ? wanted : MOST_WORKERS;
    pthread_mutex_init(&w->lock, NULL);
    while (started + 1 < wanted &&
           pthread_create(&worker[started], NULL, kernels_compile, w) == 0)
        started++;
    kernels_compile(w);
    while (started > 0)
        pthread_join(worker[--started], NULL);
    pthread_mutex_destroy(&w->lock);
    return !w->failed;
}

static bool module_load(RtKernels *k, int kernel, const RtCode *code,
                        RtError *e) {
    const RtDriver *cu = k->gpu->cu;
    return rt_driver_good(
        cu, cu->module_load(&k->module[kernel], code->bytes, 0, NULL, NULL), e,
        "load the kernels on GPU %d", k->gpu->ordinal);
}

static bool kernels_make(RtKernels *k, Work *w) {
    bool good = work_do(w);
    for (int i = 0; good && i < w->count; i++)
        good = !w->wanted[i] || module_load(k, i, &w->code[i], w->error);
    for (int i = 0; i < w->count; i++)
        free(w->code[i].bytes);
    return good;
}

static bool entry_find(RtKernels *k, int kernel, RtError *e) {
    const RtGpu *g = k->gpu;
    const RtDriver *cu = g->cu;
    const RtKernel *is = &k->plan->kernel[kernel];
    RtEntry *entry = &k->entry[kernel];
    if (!rt_driver_good(
            cu,
            cu->module_function(&entry->function,
                                k->module[k->num_modules > 1 ? kernel : 0],
                                is->name),
            e, "find kernel %s", is->name) ||
        !rt_driver_good(cu,
                        cu->function_occupancy(&entry->resident,
                                               entry->function, is->threads, 0),
                        e, "find out how many blocks of %s fit", is->name))
        return false;
    entry->resident *= g->processors;
    return entry->resident > 0 ||
           rt_fail(e, EXIT_DEVICE, "%s has no room for a block of kernel %s",
                   g->name, is->name);
}

static bool entries_find(RtKernels *k, const bool *wanted, RtError *e) {
    for (int i = 0; i < k->plan->num_kernels; i++)
        if (wanted[i] && !entry_find(k, i, e))
            return false;
    return true;
}

static bool all_make(RtKernels *k, const RtTrainer *t, const bool *wanted,
                     const RtNvrtc *nvrtc, const RtCache *cache, RtError *e) {
    char target[RT_NVRTC_OPTION];
    Work w = {
        .nvrtc = nvrtc,
        .cache = cache,
        .text = t->kernels,
        .prelude = t->prelude != NULL ? t->prelude : rt_prelude_text,
        .target = target,
        .lines = t->kernel_lines,
        .wanted = wanted,
        .count = k->plan->num_kernels,
        .error = e,
    };
    if (!rt_nvrtc_target(nvrtc, rt_gpu_generation(k->gpu), target, e))
        return false;
    size_t most = (size_t)w.count + 1;
    w.code = calloc(most, sizeof *w.code);
    k->module = calloc(most, sizeof(CUmodule));
    k->num_modules = k->module != NULL ? w.count : 0;
    k->entry = calloc(most, sizeof *k->entry);
    bool good = (w.code != NULL && k->module != NULL && k->entry != NULL) ||
                rt_fail(e, EXIT_MEMORY, "out of memory");
    good = good && kernels_make(k, &w) && entries_find(k, wanted, e);
    free(w.code);
    return good;
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

static Carried code_load(RtKernels *k, const char *code, const bool *wanted,
                         RtError *e) {
    const RtDriver *cu = k->gpu->cu;
    k->module = calloc(1, sizeof(CUmodule));
    k->entry = calloc((size_t)k->plan->num_kernels + 1, sizeof *k->entry);
    if (k->module == NULL || k->entry == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return FAILED;
    }
    k->num_modules = 1;
    CUresult result = cu->module_load(&k->module[0], code, 0, NULL, NULL);
    if (!rt_driver_good(cu, result, e, "load the kernels on GPU %d",
                        k->gpu->ordinal))
        return is_refused(result) ? REFUSED : FAILED;
    return entries_find(k, wanted, e) ? LOADED : FAILED;
}

// One after another of what there is for the GPU until the driver takes one;
// nothing is for a text that is not the trainer's own.
static Carried carried_load(RtKernels *k, const RtTrainer *t,
                            const bool *wanted, RtError *e) {
    const RtKernels empty = *k;
    const int gpu = rt_gpu_generation(k->gpu);
    int rank = t->prelude == NULL ? RT_BEFORE_ALL : 0;
    const char *code = rt_embedded_next(t, gpu, &rank);
    Carried came = NONE;
    while (code != NULL && (came == NONE || came == REFUSED)) {
        came = code_load(k, code, wanted, e);
        if (came != LOADED) {
            rt_kernels_close(k);
            *k = empty;
        }
        code = rt_embedded_next(t, gpu, &rank);
    }
    return came;
}

// NVRTC is needed only as there is no code for this GPU.
static bool no_compiler(const RtTrainer *t, const RtGpu *g, RtError *e) {
    char names[80];
    RtError own = *e;
    if (t->code == NULL || t->prelude != NULL)
        return false;
    rt_embedded_names(t, names, sizeof names);
    return rt_fail(e, own.status,
                   "the trainer was built for compute capability %s, and the "
                   "GPU has %d.%d: %.400s",
                   names, g->major, g->minor, own.text);
}

// Where the driver has refused code, it is that which is told.
static bool compiler_open(RtNvrtc *n, const RtTrainer *t, const RtGpu *g,
                          bool refused, RtError *e) {
    RtError own;
    return rt_nvrtc_open(n, rt_gpu_generation(g), g->driver,
                         refused ? &own : e) ||
           (!refused && no_compiler(t, g, e));
}

// ---- opening ----

// Whether the GPU can launch what waits for all of its blocks, if any does.
static bool waits_possible(const RtKernels *k, const bool *wanted, RtError *e) {
    for (int i = 0; i < k->plan->num_kernels; i++)
        if (wanted[i] && k->plan->kernel[i].phases > 1 && !k->gpu->cooperates)
            return rt_fail(e, EXIT_DEVICE,
                           "GPU %d, %s, has no cooperative launches, in which "
                           "blocks wait for one another, and kernel %s needs "
                           "one",
                           k->gpu->ordinal, k->gpu->name,
                           k->plan->kernel[i].name);
    return true;
}

bool rt_kernels_open(RtKernels *k, const RtGpu *gpu, const RtTrainer *t,
                     const RtPlan *plan, const bool *wanted,
                     const RtFiles *files, RtError *e) {
    RtNvrtc nvrtc;
    RtCache cache;
    *k = (RtKernels){.gpu = gpu, .plan = plan};
    if (!waits_possible(k, wanted, e))
        return false;
    Carried came = carried_load(k, t, wanted, e);
    if (came == LOADED || came == FAILED)
        return came == LOADED;
    if (!compiler_open(&nvrtc, t, gpu, came == REFUSED, e))
        return false;
    rt_cache_open(&cache, files);
    bool good = all_make(k, t, wanted, &nvrtc, &cache, e);
    // A text of the trainer's own is our mistake, one that was given is not.
    if (!good && t->prelude != NULL && e->status == EXIT_FAULT)
        e->status = EXIT_USAGE;
    rt_cache_close(&cache);
    rt_nvrtc_close(&nvrtc);
    if (!good)
        rt_kernels_close(k);
    return good;
}

void rt_kernels_close(RtKernels *k) {
    for (int i = 0; i < k->num_modules; i++)
        if (k->module[i] != NULL)
            k->gpu->cu->module_unload(k->module[i]);
    free(k->module);
    free(k->entry);
    *k = (RtKernels){0};
}

bool rt_kernels_set(const RtKernels *k, const char *variable, const void *value,
                    size_t bytes, CUstream stream, RtError *e) {
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
            !rt_driver_good(cu, cu->copy_in(at, value, bytes, stream), e,
                            "write %s", variable))
            return false;
    }
    return rt_driver_good(cu, cu->stream_sync(stream), e, "write %s", variable);
}
