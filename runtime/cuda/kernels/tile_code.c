// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tile code: loads the tile kernels that the trainer carries for the GPU.  Its
// library does the work of those that the driver refuses.

#include "runtime/cuda/kernels/kernels.h"

#include <stdlib.h>

// One thread: the compiler chooses the threads of a block, and the driver asks
// for one.
enum { TILE_THREADS = 1 };

static bool find(RtTiles *k, int i, CUfunction *function, const char *name,
                 RtError *e) {
    const RtDriver *cu = k->gpu->cu;
    return rt_driver_good(cu, cu->module_function(function, k->module[i], name),
                          e, "find tile kernel %s", name);
}

static bool find_sums(RtTiles *k, int i, RtError *e) {
    if (k->tile[i].sum_grid == 0)
        return true;
    char *name = rt_path("%s_sums", k->tile[i].name);
    bool good = name != NULL ? find(k, i, &k->sums[i], name, e)
                             : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(name);
    return good;
}

static bool load(RtTiles *k, int i, const char *code) {
    const RtDriver *cu = k->gpu->cu;
    const char *name = k->tile[i].name;
    RtError e;
    if (rt_driver_good(cu, cu->module_load(&k->module[i], code, 0, NULL, NULL),
                       &e, "load tile kernel %s", name) &&
        find(k, i, &k->function[i], name, &e) && find_sums(k, i, &e))
        return true;
    rt_warn("%s; %s does its work", e.text,
            k->tile[i].call < 0 ? "another kernel" : "a library call");
    return false;
}

bool rt_tiles_open(RtTiles *k, const RtGpu *gpu, const RtTrainer *t,
                   const RtPlan *plan, RtError *e) {
    size_t count = (size_t)plan->num_tiles + 1;
    *k = (RtTiles){.gpu = gpu, .tile = plan->tile, .count = plan->num_tiles};
    k->module = calloc(count, sizeof *k->module);
    k->function = calloc(count, sizeof *k->function);
    k->sums = calloc(count, sizeof *k->sums);
    k->usable = calloc(count, sizeof *k->usable);
    if (k->module == NULL || k->function == NULL || k->sums == NULL ||
        k->usable == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; i < k->count; i++)
        k->usable[i] = rt_embedded_tile(t, rt_gpu_capability(gpu),
                                        k->tile[i].code) != NULL;
    return true;
}

static int equal_before(const RtTiles *k, int i) {
    int first = 0;
    while (k->tile[first].code != k->tile[i].code)
        first++;
    return first;
}

void rt_tiles_load(RtTiles *k, const RtTrainer *t) {
    for (int i = 0; i < k->count; i++) {
        int first = equal_before(k, i);
        if (first == i)
            k->usable[i] = k->usable[i] &&
                           load(k, i,
                                rt_embedded_tile(t, rt_gpu_capability(k->gpu),
                                                 k->tile[i].code));
        k->usable[i] = k->usable[first];
        k->function[i] = k->function[first];
        k->sums[i] = k->sums[first];
    }
}

const RtTile *rt_tiles_find(const RtTiles *k, int call) {
    for (int i = 0; i < k->count; i++)
        if (k->tile[i].call == call)
            return k->usable[i] ? &k->tile[i] : NULL;
    return NULL;
}

const RtTile *rt_tiles_replacing(const RtTiles *k, int step, int launch,
                                 int *count) {
    const RtTile *first = NULL;
    bool usable = true;
    *count = 0;
    for (int i = 0; i < k->count; i++) {
        const RtTile *t = &k->tile[i];
        if (t->call >= 0 || t->step != step || t->launch != launch)
            continue;
        first = *count == 0 ? t : first;
        usable = usable && k->usable[i];
        ++*count;
    }
    return usable ? first : NULL;
}

size_t rt_tiles_workspace(const RtTiles *k) {
    enum { ALIGNMENT = 256 };
    size_t most = 0;
    for (int i = 0; i < k->count; i++)
        if (k->usable[i] && k->tile[i].workspace > most)
            most = k->tile[i].workspace;
    return (most + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void rt_tiles_bind(RtTiles *k, CUdeviceptr workspace) {
    k->workspace = workspace;
}

static CUresult launch(const RtTiles *k, CUfunction function, int grid,
                       CUstream stream, void **argument) {
    return k->gpu->cu->launch(function, (unsigned)grid, 1, 1, TILE_THREADS, 1,
                              1, 0, stream, argument, NULL);
}

CUresult rt_tiles_launch(const RtTiles *k, const RtTile *tile, CUstream stream,
                         void **argument) {
    const ptrdiff_t i = tile - k->tile;
    CUresult result = launch(k, k->function[i], tile->grid, stream, argument);
    return tile->sum_grid == 0 || result != CUDA_SUCCESS
               ? result
               : launch(k, k->sums[i], tile->sum_grid, stream, argument);
}

void rt_tiles_close(RtTiles *k) {
    for (int i = 0; k->module != NULL && i < k->count; i++)
        if (k->module[i] != NULL)
            k->gpu->cu->module_unload(k->module[i]);
    free(k->module);
    free(k->function);
    free(k->sums);
    free(k->usable);
    *k = (RtTiles){0};
}
