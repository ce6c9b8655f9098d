// Kernels: each is compiled for itself by worker threads, or read from the
// cache, then loaded in order.

#include "runtime/cuda/kernels.h"

#include "runtime/cuda/cache.h"
#include "runtime/cuda/embedded.h"
#include "runtime/cuda/prelude.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_WORKERS = 16, OPTION_BYTES = 48 };

// What is made of a kernel, or of all at once; where it is not wanted, nothing.
typedef struct {
    bool wanted;
    RtCode code;
} Part;

// What the workers share.  Each takes the next part until none is left.
typedef struct {
    const RtNvrtc *nvrtc;
    const RtCache *cache;
    const char *text;
    const char *const *prelude;
    const char *target; // the option that names the GPU
    bool lines;         // the code says which line it is from
    Part *part;
    int parts;
    pthread_mutex_t lock;
    int next;
    bool failed;
    RtError *error; // of the first that failed
} Work;

static int count_parts(const RtTrainer *t, const RtPlan *plan) {
    return t->kernels_apart && plan->num_kernels > 1 ? plan->num_kernels : 1;
}

// The part, or module, that has a kernel: its own, or the one that has all.
static int part_of(int parts, int kernel) {
    return parts > 1 ? kernel : 0;
}

static bool part_compile(const Work *w, int part, RtError *e) {
    char which[OPTION_BYTES];
    const char *option[RT_NVRTC_OPTIONS] = {w->target};
    int num_options = 1;
    if (w->parts > 1)
        option[num_options++] = which;
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
    snprintf(which, sizeof which, "-DSINTER_KERNEL=%d", part);
    RtCacheKey key = rt_cache_key(w->nvrtc, &s);
    if (rt_cache_read(w->cache, key, &w->part[part].code))
        return true;
    if (!rt_nvrtc_compile(w->nvrtc, &s, &w->part[part].code, e))
        return false;
    rt_cache_write(w->cache, key, &w->part[part].code);
    return true;
}

static void *parts_compile(void *argument) {
    Work *w = argument;
    pthread_mutex_lock(&w->lock);
    while (w->next < w->parts && !w->failed) {
        RtError e;
        int part = w->next++;
        pthread_mutex_unlock(&w->lock);
        bool good = !w->part[part].wanted || part_compile(w, part, &e);
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
    int wanted = w->parts < cores ? w->parts : cores;
    wanted = wanted < MOST_WORKERS ? wanted : MOST_WORKERS;
    pthread_mutex_init(&w->lock, NULL);
    while (started + 1 < wanted &&
           pthread_create(&worker[started], NULL, parts_compile, w) == 0)
        started++;
    parts_compile(w);
    while (started > 0)
        pthread_join(worker[--started], NULL);
    pthread_mutex_destroy(&w->lock);
    return !w->failed;
}

static bool part_load(RtKernels *k, int part, const RtCode *code, RtError *e) {
    const RtDriver *cu = k->gpu->cu;
    return rt_driver_good(
        cu, cu->module_load(&k->module[part], code->bytes, 0, NULL, NULL), e,
        "load the kernels on GPU %d", k->gpu->ordinal);
}

static bool parts_make(RtKernels *k, Work *w) {
    bool good = work_do(w);
    for (int i = 0; good && i < w->parts; i++)
        good =
            !w->part[i].wanted || part_load(k, i, &w->part[i].code, w->error);
    for (int i = 0; i < w->parts; i++)
        free(w->part[i].code.bytes);
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
                                k->module[part_of(k->num_modules, kernel)],
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
        .parts = count_parts(t, k->plan),
        .error = e,
    };
    if (!rt_nvrtc_target(nvrtc, k->gpu->major, k->gpu->minor, target, e))
        return false;
    w.part = calloc((size_t)w.parts, sizeof *w.part);
    k->module = calloc((size_t)w.parts, sizeof(CUmodule));
    k->num_modules = k->module != NULL ? w.parts : 0;
    k->entry = calloc((size_t)k->plan->num_kernels + 1, sizeof *k->entry);
    bool good = (w.part != NULL && k->module != NULL && k->entry != NULL) ||
                rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; good && i < k->plan->num_kernels; i++)
        if (wanted[i])
            w.part[part_of(w.parts, i)].wanted = true;
    good = good && parts_make(k, &w) && entries_find(k, wanted, e);
    free(w.part);
    return good;
}

// ---- code that the trainer carries ----

// What it has for the GPU, of its own text; NULL: nothing.
static const char *embedded_code(const RtTrainer *t, const RtGpu *g) {
    return t->prelude != NULL ? NULL : rt_embedded_find(t, g->major, g->minor);
}

// *refused: the driver does not take it, and it may be compiled instead.
static bool embedded_load(RtKernels *k, const char *code, const bool *wanted,
                          bool *refused, RtError *e) {
    const RtDriver *cu = k->gpu->cu;
    k->module = calloc(1, sizeof(CUmodule));
    k->entry = calloc((size_t)k->plan->num_kernels + 1, sizeof *k->entry);
    if (k->module == NULL || k->entry == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    k->num_modules = 1;
    CUresult result = cu->module_load(&k->module[0], code, 0, NULL, NULL);
    *refused = result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
               result == CUDA_ERROR_NO_BINARY_FOR_GPU;
    return rt_driver_good(cu, result, e, "load the kernels on GPU %d",
                          k->gpu->ordinal) &&
           entries_find(k, wanted, e);
}

static bool embedded_open(RtKernels *k, const char *code, const bool *wanted,
                          bool *refused, RtError *e) {
    bool good = embedded_load(k, code, wanted, refused, e);
    const RtKernels empty = {.gpu = k->gpu, .plan = k->plan};
    if (!good) {
        rt_kernels_close(k);
        *k = empty;
    }
    return good;
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

// ---- opening ----

bool rt_kernels_open(RtKernels *k, const RtGpu *gpu, const RtTrainer *t,
                     const RtPlan *plan, const bool *wanted,
                     const RtFiles *files, RtError *e) {
    RtNvrtc nvrtc;
    RtCache cache;
    *k = (RtKernels){.gpu = gpu, .plan = plan};
    const char *code = embedded_code(t, gpu);
    bool refused = false;
    if (code != NULL && embedded_open(k, code, wanted, &refused, e))
        return true;
    if (code != NULL && !refused)
        return false;
    if (!rt_nvrtc_open(&nvrtc, gpu->driver, e))
        return no_compiler(t, gpu, e);
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
