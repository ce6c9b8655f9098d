// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Resident data set: rows, and the gather kernel for their length.

#include "runtime/cuda/memory/memory.h"

#include "runtime/cuda/kernels/kernels.h"

#include <limits.h>

enum { THREADS = 256, WORDS_OF_THREAD = 4 };

static const RtKernel kernels[] = {
    {.name = "gather_8", .phases = 1, .threads = THREADS},
    {.name = "gather_4", .phases = 1, .threads = THREADS},
    {.name = "gather_1", .phases = 1, .threads = THREADS},
};
_Static_assert(sizeof kernels / sizeof kernels[0] == RT_GATHER_WORDS,
               "one for each word");

static const RtPlan plan = {
    .device = "cuda", .kernel = kernels, .num_kernels = RT_GATHER_WORDS};

// The kernel for the widest word that divides a row.
static int kernel_for(size_t row, size_t *bytes) {
    *bytes = row % 8 == 0 ? 8 : row % 4 == 0 ? 4 : 1;
    return *bytes == 8 ? 0 : *bytes == 4 ? 1 : 2;
}

// ---- kernels ----

// A trainer's embedded code has the gather kernels too.
void rt_gather_open(RtGather *g, const RtGpu *gpu, const RtTrainer *t) {
    *g = (RtGather){.gpu = gpu,
                    .trainer = {.kernels = rt_gather_text,
                                .code = t->code,
                                .code_end = t->code_end}};
}

static bool kernel_start(RtGather *g, int kernel, RtError *e) {
    bool likely[RT_GATHER_WORDS] = {false};
    likely[kernel] = true;
    return rt_kernels_start(&g->kernels[kernel], g->gpu, &g->trainer, &plan,
                            likely, &rt_private_files, e);
}

bool rt_gather_start(RtGather *g, size_t row, RtError *e) {
    size_t word;
    return kernel_start(g, kernel_for(row, &word), e);
}

// Loads a kernel, and compiles one that was not foreseen.
static bool kernel_open(RtGather *g, int kernel, RtError *e) {
    RtKernels *k = &g->kernels[kernel];
    bool needed[RT_GATHER_WORDS] = {false};
    needed[kernel] = true;
    return k->entry != NULL ||
           ((k->compiler != NULL || kernel_start(g, kernel, e)) &&
            rt_kernels_load(k, needed, NULL, e));
}

void rt_gather_close(RtGather *g) {
    for (int i = 0; i < RT_GATHER_WORDS; i++)
        rt_kernels_close(&g->kernels[i]);
}

// ---- rows ----

static bool copy_rows(RtResident *r, RtStaging *staging, const RtRows *rows,
                      RtError *e) {
    size_t bytes = rows->bytes * (size_t)rows->count;
    CUresult result = r->cu->memory_alloc(&r->at, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return rt_fail(e, EXIT_MEMORY,
                       "cannot allocate %.0f MiB in one piece for the data; "
                       "--resident=no streams it",
                       (double)bytes / (1 << 20));
    return rt_driver_good(r->cu, result, e, "allocate %zu bytes of memory",
                          bytes) &&
           rt_staging_write(staging, r->at, rows->from, bytes, e);
}

bool rt_resident_open(RtResident *r, RtGather *g, RtStaging *staging,
                      const RtRows *rows, int64_t taken, RtError *e) {
    size_t word;
    int all, kernel = kernel_for(rows->bytes, &word);
    *r = (RtResident){.cu = g->gpu->cu};
    // A thread's index runs past the last word by up to a quarter of all, and
    // must still be an int.
    if (__builtin_mul_overflow(rows->bytes / word, taken, &all) ||
        all > INT_MAX / 2)
        return rt_fail(e, EXIT_MEMORY,
                       "a batch of %lld rows of %zu bytes is too large for the "
                       "gather kernel; --resident=no streams it",
                       (long long)taken, rows->bytes);
    r->taken = (int)taken;
    r->words = (int)(rows->bytes / word);
    r->grid = (all - 1) / (THREADS * WORDS_OF_THREAD) + 1;
    if (!kernel_open(g, kernel, e))
        return false;
    r->gather = g->kernels[kernel].entry[kernel].function;
    return copy_rows(r, staging, rows, e);
}

void rt_resident_close(RtResident *r) {
    if (r->cu == NULL)
        return;
    if (r->at != 0)
        r->cu->memory_free(r->at);
    *r = (RtResident){0};
}

bool rt_resident_gather(const RtResident *r, CUdeviceptr index, CUdeviceptr to,
                        CUstream stream, RtError *e) {
    CUdeviceptr from = r->at;
    int taken = r->taken, words = r->words;
    void *argument[] = {&index, &from, &to, &taken, &words};
    return rt_driver_good(r->cu,
                          r->cu->launch(r->gather, (unsigned)r->grid, 1, 1,
                                        THREADS, 1, 1, 0, stream, argument,
                                        NULL),
                          e, "launch kernel gather");
}
