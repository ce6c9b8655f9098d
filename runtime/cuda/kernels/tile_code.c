// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tile code: loads the tile kernels that the trainer carries for the GPU.  Its
// library does the work of those that the driver refuses.

#include "runtime/cuda/kernels/kernels.h"

#include "base/round_up.h"

#include <stdlib.h>

// One thread: the compiler chooses the threads of a block, and the driver asks
// for one.
enum { TILE_THREADS = 1 };

// ---- code ----

static bool find(RtTiles *k, CUmodule module, CUfunction *function,
                 const char *name, RtError *e) {
    const RtDriver *cu = k->gpu->cu;
    return rt_driver_good(cu, cu->module_function(function, module, name), e,
                          "find tile kernel %s", name);
}

static bool find_sums(RtTiles *k, RtTileCode *code, const RtTile *tile,
                      int config, RtError *e) {
    if (tile->config[config].sum_grid == 0)
        return true;
    char *name = rt_path("%s_sums", tile->name);
    bool good = name != NULL ? find(k, code->module, &code->sums, name, e)
                             : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(name);
    return good;
}

static void unload(const RtTiles *k, RtTileCode *code) {
    if (code->module != NULL)
        k->gpu->cu->module_unload(code->module);
    *code = (RtTileCode){.bytes = code->bytes};
}

// Equal kernels share code: the first loads it.
static void load(RtTiles *k, int i, int config) {
    const RtDriver *cu = k->gpu->cu;
    const RtTile *tile = &k->tile[i];
    RtTileCode *code = &k->code[tile->code + config];
    RtError e;
    if (code->module != NULL || code->bytes == NULL)
        return;
    if (rt_driver_good(
            cu, cu->module_load(&code->module, code->bytes, 0, NULL, NULL), &e,
            "load tile kernel %s", tile->name) &&
        find(k, code->module, &code->function, tile->name, &e) &&
        find_sums(k, code, tile, config, &e))
        return;
    unload(k, code);
    rt_warn("%s; %s does its work", e.text,
            tile->call < 0 ? "another kernel" : "a library call");
}

// Finds the code of each configuration, and the best of these.
static int find_code(const RtTiles *k, const RtTrainer *t, int i) {
    const RtTile *tile = &k->tile[i];
    const int gpu = rt_gpu_capability(k->gpu);
    int number = tile->code - 1, own;
    for (int c = 0; c < tile->num_configs; c++)
        k->code[tile->code + c].bytes =
            rt_embedded_tile(t, gpu, tile->code + c, 1, &own);
    rt_embedded_tile(t, gpu, tile->code, tile->num_configs, &number);
    return number - tile->code;
}

bool rt_tiles_open(RtTiles *k, const RtGpu *gpu, const RtTrainer *t,
                   const RtPlan *plan, RtError *e) {
    size_t count = (size_t)plan->num_tiles + 1;
    *k = (RtTiles){.gpu = gpu,
                   .tile = plan->tile,
                   .count = plan->num_tiles,
                   .fused = plan->fused,
                   .num_fused = plan->num_fused};
    for (int i = 0; i < k->count; i++)
        if (k->tile[i].code + k->tile[i].num_configs > k->num_codes)
            k->num_codes = k->tile[i].code + k->tile[i].num_configs;
    k->best = calloc(count, sizeof *k->best);
    k->config = calloc(count, sizeof *k->config);
    k->code = calloc((size_t)k->num_codes + 1, sizeof *k->code);
    if (k->best == NULL || k->config == NULL || k->code == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; i < k->count; i++)
        k->best[i] = k->config[i] = find_code(k, t, i);
    return true;
}

bool rt_tiles_carry(const RtTiles *k, int tile, int config) {
    return config >= 0 && k->code[k->tile[tile].code + config].bytes != NULL;
}

bool rt_tiles_has(const RtTiles *k, int tile, int config) {
    return config >= 0 && k->code[k->tile[tile].code + config].module != NULL;
}

void rt_tiles_choose(RtTiles *k, const int *tile) {
    for (int i = 0; i < k->count; i++)
        k->config[i] = tile != NULL ? tile[i] - 1 : k->best[i];
}

void rt_tiles_load(RtTiles *k, bool all) {
    for (int i = 0; i < k->count; i++) {
        for (int c = 0; c < k->tile[i].num_configs; c++)
            if (all || c == k->config[i])
                load(k, i, c);
        if (!rt_tiles_has(k, i, k->best[i]))
            k->best[i] = -1;
        if (!rt_tiles_has(k, i, k->config[i]))
            k->config[i] = -1;
    }
}

void rt_tiles_close(RtTiles *k) {
    for (int i = 0; k->code != NULL && i < k->num_codes; i++)
        unload(k, &k->code[i]);
    free(k->best);
    free(k->config);
    free(k->code);
    *k = (RtTiles){0};
}

// ---- launches ----

const RtTile *rt_tiles_find(const RtTiles *k, int call) {
    for (int i = 0; i < k->count; i++)
        if (k->tile[i].call == call)
            return k->config[i] >= 0 ? &k->tile[i] : NULL;
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
        usable = usable && k->config[i] >= 0;
        ++*count;
    }
    return usable ? first : NULL;
}

bool rt_tiles_skip(const RtTiles *k, int step, int launch) {
    bool found = false;
    for (int i = 0; i < k->num_fused; i++) {
        const RtFusedLaunch *p = &k->fused[i];
        if (p->step != step || p->launch != launch)
            continue;
        found = rt_tiles_find(k, p->call) != NULL;
        if (!found)
            return false;
    }
    return found;
}

bool rt_tiles_take(const RtTiles *k, int step, int launch) {
    int count;
    if (rt_tiles_skip(k, step, launch) ||
        rt_tiles_replacing(k, step, launch, &count) != NULL)
        return true;
    for (int i = 0; i < k->count; i++)
        if (k->tile[i].call >= 0 && k->config[i] >= 0 &&
            k->tile[i].step == step && k->tile[i].launch == launch)
            return true;
    return false;
}

size_t rt_tiles_workspace(const RtTiles *k) {
    enum { ALIGNMENT = 256 };
    size_t most = 0;
    for (int i = 0; i < k->count; i++)
        for (int c = 0; c < k->tile[i].num_configs; c++)
            if (rt_tiles_has(k, i, c) && k->tile[i].config[c].workspace > most)
                most = k->tile[i].config[c].workspace;
    return align_up(most, ALIGNMENT);
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
    const int config = k->config[tile - k->tile];
    const RtTileConfig *c = &tile->config[config];
    const RtTileCode *code = &k->code[tile->code + config];
    CUresult result = launch(k, code->function, c->grid, stream, argument);
    return c->sum_grid == 0 || result != CUDA_SUCCESS
               ? result
               : launch(k, code->sums, c->sum_grid, stream, argument);
}
