// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tile kernels on the host, in place of library calls and kernels.

#include "runtime/host/host.h"

#include "base/round_up.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OF_CALL = 3, ALIGNMENT = 256 };

static size_t workspace_bytes(const RtPlan *plan) {
    size_t most = 0;
    for (int i = 0; i < plan->num_tiles; i++)
        if (plan->tile[i].config->workspace > most)
            most = plan->tile[i].config->workspace;
    return align_up(most, ALIGNMENT);
}

// Arguments of any tile kernel, at most.
static size_t most_arguments(const RtPlan *plan) {
    int own = 0, kernels = 0;
    for (int i = 0; i < plan->num_tiles; i++)
        own = plan->tile[i].args > own ? plan->tile[i].args : own;
    for (int i = 0; i < plan->num_kernels; i++)
        kernels =
            plan->kernel[i].args > kernels ? plan->kernel[i].args : kernels;
    return (size_t)(OF_CALL + own + kernels + 1);
}

size_t rt_host_tiles_bytes(const RtPlan *plan) {
    return plan->num_tiles > 0 ? workspace_bytes(plan) : 0;
}

void rt_host_tiles_reserve(RtHostTiles *t, const RtPlan *plan, char *arena) {
    size_t bytes = rt_host_tiles_bytes(plan), most = most_arguments(plan);
    *t = (RtHostTiles){.plan = plan, .arena = arena};
    if (plan->num_tiles == 0)
        return;
    t->workspace = bytes > 0 ? aligned_alloc(ALIGNMENT, bytes) : NULL;
    t->at = calloc(most, sizeof *t->at);
    t->argument = calloc(most, sizeof *t->argument);
    if ((bytes > 0 && t->workspace == NULL) || t->at == NULL ||
        t->argument == NULL)
        rt_end(EXIT_MEMORY, "cannot allocate %zu bytes of memory: %s", bytes,
               strerror(errno));
    for (size_t i = 0; i < most; i++)
        t->argument[i] = &t->at[i];
}

void rt_host_tiles_free(RtHostTiles *t) {
    free(t->workspace);
    free(t->at);
    free(t->argument);
}

void rt_host_tiles_begin(RtHostTiles *t, const RtStep *step) {
    t->step =
        t->plan != NULL && step != NULL ? (int)(step - t->plan->step) : -1;
    t->pending = NULL;
}

static void add(RtHostTiles *t, int *count, size_t offset) {
    t->at[(*count)++] = t->arena + offset;
}

// With a call: its arguments, those of the prologues, of the pool and of the
// kernel that is replaced, and a workspace.  Without one: the kernel's
// arguments and a number.
static RtTileUse run(RtHostTiles *t, const RtTile *tile, const RtDevice *d,
                     int kernel, const size_t *arg) {
    const RtHostTile *host = &t->plan->host_tile[tile->code];
    int count = 0, args = kernel >= 0 ? t->plan->kernel[kernel].args : 0;
    int number = tile->number;
    for (int i = 0; tile->call >= 0 && i < OF_CALL; i++)
        add(t, &count, t->arg[i]);
    for (int i = 0; i < tile->args; i++)
        add(t, &count, rt_segment_address(d, tile->arg[i]));
    for (int i = 0; i < args; i++)
        add(t, &count, arg[i]);
    t->at[count] = t->workspace;
    if (tile->call < 0)
        memcpy(&t->at[count], &number, sizeof number);
    if (tile->config->workspace > 0) // NaN: a kernel writes it first
        memset(t->workspace, 0xff, tile->config->workspace);
    host->run(t->argument, tile->config->grid);
    if (tile->config->sum_grid > 0)
        host->sums(t->argument, tile->config->sum_grid);
    t->ran = tile;
    return RT_TILE_HERE;
}

RtTileUse rt_host_tiles_call(RtHostTiles *t, const RtDevice *d, int call,
                             const size_t arg[3]) {
    const RtTile *tile = NULL;
    for (int i = 0; t->step >= 0 && i < t->plan->num_tiles; i++)
        if (t->plan->tile[i].call == call)
            tile = &t->plan->tile[i];
    if (tile == NULL)
        return RT_NO_TILE;
    memcpy(t->arg, arg, sizeof t->arg);
    if (tile->launch < 0)
        return run(t, tile, d, -1, NULL);
    t->pending = tile;
    return RT_TILE_ELSEWHERE;
}

static bool is_fused(const RtHostTiles *t, int launch) {
    const RtPlan *p = t->plan;
    for (int i = 0; i < p->num_fused; i++)
        if (p->fused[i].step == t->step && p->fused[i].launch == launch)
            return true;
    return false;
}

RtTileUse rt_host_tiles_launch(RtHostTiles *t, const RtDevice *d, int launch,
                               int kernel, const size_t *arg) {
    RtTileUse how = RT_NO_TILE;
    const RtTile *pending = t->pending;
    if (t->step < 0 || t->plan->num_tiles == 0)
        return how;
    if (is_fused(t, launch))
        return RT_TILE_ELSEWHERE;
    for (int i = 0; i < t->plan->num_tiles; i++) {
        const RtTile *own = &t->plan->tile[i];
        if (own->call < 0 && own->step == t->step && own->launch == launch)
            how = run(t, own, d, kernel, arg);
    }
    if (pending == NULL || pending->launch != launch)
        return how;
    t->pending = NULL;
    return run(t, pending, d, kernel, arg);
}
