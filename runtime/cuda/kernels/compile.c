// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compile: each thread takes the next needed kernel, long ones first, so that
// no long one starts when the others are done.

#include "runtime/cuda/kernels/kernels.h"

#include "runtime/host/host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORKERS = 16, OPTION_BYTES = 48 };

struct RtCompiler {
    const RtGpu *gpu;
    const RtTrainer *trainer;
    const RtFiles *files;
    bool is_open; // NVRTC, cache and target are valid
    RtNvrtc nvrtc;
    RtCache cache;
    char target[RT_NVRTC_OPTION_BYTES]; // the option that names the GPU
    const RtPlan *plan;
    RtCode *code; // of each kernel; NULL bytes until it is compiled
    int *order;   // of the kernels
    pthread_t worker[MAX_WORKERS];
    int workers;
    pthread_mutex_t lock; // of the rest
    bool *needed;
    int next; // index into order
    bool failed;
    RtError error; // of the first that failed
};

// ---- one kernel ----

static bool text_compile(const RtCompiler *c, const char *text, int kernel,
                         RtCode *out, RtError *e) {
    const RtTrainer *t = c->trainer;
    char which[OPTION_BYTES];
    const char *option[RT_NVRTC_MAX_EXTRA] = {c->target, which};
    int num_options = 2;
    if (t->kernel_lines)
        option[num_options++] = "-lineinfo";
    RtSource s = {
        .text = text,
        .num_headers = RT_PRELUDE_FILES,
        .header = t->prelude != NULL ? t->prelude : rt_prelude_text,
        .include = rt_prelude_name,
        .num_options = num_options,
        .option = option,
    };
    snprintf(which, sizeof which, "-DSINTER_KERNEL=%d", kernel);
    RtCacheKey key = rt_cache_key(&c->nvrtc, &s);
    if (rt_cache_read(&c->cache, key, out))
        return true;
    if (!rt_nvrtc_compile(&c->nvrtc, &s, out, e))
        return false;
    rt_cache_write(&c->cache, key, out);
    return true;
}

// Compiles the whole text if a user has edited it, or if line numbers are
// needed.
static bool kernel_compile(const RtCompiler *c, int kernel, RtCode *out,
                           RtError *e) {
    const RtTrainer *t = c->trainer;
    bool whole = t->prelude != NULL || t->kernel_lines;
    char *own = whole ? NULL : rt_kernel_source(t->kernels, kernel);
    bool good = text_compile(c, own != NULL ? own : t->kernels, kernel, out, e);
    free(own);
    return good;
}

// ---- order ----

// Kernels with phases take longest, then kernels of many tensors.  A kernel's
// own text does not show this, as kernels share functions.
static bool takes_longer(const RtKernel *a, const RtKernel *b) {
    bool phased = a->phases > 1;
    return phased != (b->phases > 1) ? phased : a->args > b->args;
}

static void order_find(RtCompiler *c) {
    const RtKernel *kernel = c->plan->kernel;
    for (int i = 0; i < c->plan->num_kernels; i++) {
        int at = i;
        for (; at > 0 && takes_longer(&kernel[i], &kernel[c->order[at - 1]]);
             at--)
            c->order[at] = c->order[at - 1];
        c->order[at] = i;
    }
}

// ---- all needed kernels ----

// The next needed kernel without code; -1: none is left, or one has failed.
static int next_kernel(RtCompiler *c) {
    while (!c->failed && c->next < c->plan->num_kernels) {
        int kernel = c->order[c->next++];
        if (c->needed[kernel] && c->code[kernel].bytes == NULL)
            return kernel;
    }
    return -1;
}

static void *work(void *argument) {
    RtCompiler *c = argument;
    int kernel;
    pthread_mutex_lock(&c->lock);
    while ((kernel = next_kernel(c)) >= 0) {
        RtCode code = {0};
        RtError e;
        pthread_mutex_unlock(&c->lock);
        bool good = kernel_compile(c, kernel, &code, &e);
        pthread_mutex_lock(&c->lock);
        if (good) {
            c->code[kernel] = code;
        } else if (!c->failed) {
            c->failed = true;
            c->error = e;
        }
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static int count_missing(const RtCompiler *c) {
    int missing = 0;
    for (int i = 0; i < c->plan->num_kernels; i++)
        missing += c->needed[i] && c->code[i].bytes == NULL;
    return missing;
}

// Does without threads that do not start.
static void workers_start(RtCompiler *c, int most) {
    int cores = rt_team_largest();
    most = most < cores ? most : cores;
    most = most < MAX_WORKERS ? most : MAX_WORKERS;
    c->next = 0;
    c->failed = false;
    while (c->workers < most &&
           pthread_create(&c->worker[c->workers], NULL, work, c) == 0)
        c->workers++;
}

static void workers_end(RtCompiler *c) {
    while (c->workers > 0)
        pthread_join(c->worker[--c->workers], NULL);
}

void rt_compiler_start(RtCompiler *c, const bool *likely) {
    if (!c->is_open)
        return;
    memcpy(c->needed, likely, (size_t)c->plan->num_kernels);
    workers_start(c, count_missing(c));
}

// Cancels queued kernels that are not needed and helps the workers finish.  A
// second round compiles kernels that were not foreseen or have failed.
bool rt_compiler_finish(RtCompiler *c, const bool *needed, RtError *e) {
    pthread_mutex_lock(&c->lock);
    memcpy(c->needed, needed, (size_t)c->plan->num_kernels);
    pthread_mutex_unlock(&c->lock);
    if (c->workers > 0)
        work(c);
    workers_end(c);
    workers_start(c, count_missing(c) - 1);
    work(c);
    workers_end(c);
    if (c->failed)
        *e = c->error;
    return !c->failed;
}

const RtCode *rt_compiler_code(const RtCompiler *c, int kernel) {
    return &c->code[kernel];
}

// ---- opening ----

static bool allocate(RtCompiler *c) {
    size_t most = (size_t)c->plan->num_kernels + 1;
    c->code = calloc(most, sizeof *c->code);
    c->order = calloc(most, sizeof *c->order);
    c->needed = calloc(most, sizeof *c->needed);
    return c->code != NULL && c->order != NULL && c->needed != NULL;
}

RtCompiler *rt_compiler_new(const RtGpu *gpu, const RtTrainer *t,
                            const RtPlan *plan, const RtFiles *files,
                            RtError *e) {
    RtCompiler *c = calloc(1, sizeof *c);
    if (c != NULL) {
        *c = (RtCompiler){
            .gpu = gpu, .trainer = t, .files = files, .plan = plan};
        pthread_mutex_init(&c->lock, NULL);
    }
    if (c != NULL && allocate(c)) {
        order_find(c);
        return c;
    }
    rt_fail(e, EXIT_MEMORY, "out of memory");
    rt_compiler_free(c);
    return NULL;
}

void rt_compiler_free(RtCompiler *c) {
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->next = c->plan->num_kernels;
    pthread_mutex_unlock(&c->lock);
    workers_end(c);
    if (c->is_open) {
        rt_cache_close(&c->cache);
        rt_nvrtc_close(&c->nvrtc);
    }
    for (int i = 0; c->code != NULL && i < c->plan->num_kernels; i++)
        free(c->code[i].bytes);
    pthread_mutex_destroy(&c->lock);
    free(c->code);
    free(c->order);
    free(c->needed);
    free(c);
}

bool rt_compiler_open(RtCompiler *c, RtError *e) {
    int sm = rt_gpu_capability(c->gpu);
    if (c->is_open)
        return true;
    if (!rt_nvrtc_open(&c->nvrtc, sm, c->gpu->driver, e))
        return false;
    c->is_open = rt_nvrtc_target(&c->nvrtc, sm, c->target, e);
    if (c->is_open)
        rt_cache_open(&c->cache, c->files);
    else
        rt_nvrtc_close(&c->nvrtc);
    return c->is_open;
}
