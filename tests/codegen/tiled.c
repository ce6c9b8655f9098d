// Tiled: see tiled.h.
//
// A kernel runs on a copy of the arena.
#define _GNU_SOURCE
#include "tests/codegen/tiled.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OF_CALL = 3, MAX_ARGUMENTS = 128, ALIGNMENT = 256 };

static TilingDevice *tiled_of(RtDevice *d) {
    return (TilingDevice *)(void *)d; // device is its first field
}

static void run_blocks(const TilingDevice *d, const char *kernel,
                       const char *part, void **argument, int grid) {
    char name[256];
    void (*blocks)(void **argument, int grid);
    snprintf(name, sizeof name, "%s%s_run", kernel, part);
    *(void **)&blocks = dlsym(d->kernels, name);
    if (blocks == NULL)
        abort();
    blocks(argument, grid);
}

// Runs a tile kernel with the arguments of its call, unless it has none, of its
// prologues and, if it replaces a kernel, of that; a workspace follows, without
// a call a number.
static void run(TilingDevice *d, const RtTile *tile, const size_t *of_call,
                const size_t *of_kernel, int args) {
    const int calls = of_call != NULL ? OF_CALL : 0;
    size_t bytes = (d->plan->arena_bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    size_t room = (tile->workspace / ALIGNMENT + 1) * ALIGNMENT;
    char *arena = aligned_alloc(ALIGNMENT, bytes);
    char *workspace = aligned_alloc(ALIGNMENT, room), *at[MAX_ARGUMENTS];
    void *argument[MAX_ARGUMENTS];
    int count = calls + tile->args + args, number = tile->number;
    if (count >= MAX_ARGUMENTS || arena == NULL || workspace == NULL)
        abort();
    memset(workspace, 0xff, room); // NaN
    d->host->read(d->host, arena, 0, d->plan->arena_bytes);
    for (int i = 0, own; i < count; i++) {
        own = i - calls - tile->args;
        at[i] = arena + (own >= 0     ? of_kernel[own]
                         : i >= calls ? tile->arg[i - calls]
                                      : of_call[i]);
        argument[i] = &at[i];
    }
    argument[count] = of_call != NULL ? (void *)&workspace : (void *)&number;
    run_blocks(d, tile->name, "", argument, tile->grid);
    if (tile->sum_grid > 0)
        run_blocks(d, tile->name, "_sums", argument, tile->sum_grid);
    d->host->write(d->host, 0, arena, d->plan->arena_bytes);
    free(arena);
    free(workspace);
    d->launched++;
}

static bool is_prologue(const RtPlan *p, int step, int launch) {
    for (int i = 0; i < p->num_prologues; i++)
        if (p->prologue[i].step == step && p->prologue[i].launch == launch)
            return true;
    return false;
}

// Whether tile kernels that belong to no call replace launch `number`.
static bool replaces(TilingDevice *d, int kernel, int number,
                     const size_t *arg) {
    const RtPlan *p = d->plan + 1;
    bool any = false;
    for (int i = 0; i < p->num_tiles; i++) {
        const RtTile *t = &p->tile[i];
        if (t->call >= 0 || t->step != d->step || t->launch != number)
            continue;
        run(d, t, NULL, arg, d->plan->kernel[kernel].args);
        any = true;
    }
    return any;
}

static void launch(RtDevice *device, int kernel, int grid, const size_t *arg) {
    TilingDevice *d = tiled_of(device);
    const RtTile *tile = d->pending;
    int number = d->launch++;
    if (is_prologue(d->plan + 1, d->step, number)) {
        d->skipped++;
        return;
    }
    if (replaces(d, kernel, number, arg))
        return;
    if (tile == NULL || tile->launch != number) {
        d->host->launch(d->host, kernel, grid, arg);
        return;
    }
    d->pending = NULL;
    run(d, tile, d->arg, arg, d->plan->kernel[kernel].args);
}

static const RtTile *tile_of(const RtPlan *p, int call) {
    for (int i = 0; i < p->num_tiles; i++)
        if (p->tile[i].call == call)
            return &p->tile[i];
    return NULL;
}

static void library_call(RtDevice *device, int call, size_t a, size_t b,
                         size_t out) {
    TilingDevice *d = tiled_of(device);
    const RtTile *tile = tile_of(d->plan + 1, call);
    const size_t arg[OF_CALL] = {a, b, out};
    d->launch++;
    if (tile == NULL) {
        d->host->library_call(d->host, call, a, b, out);
    } else if (tile->launch < 0) {
        run(d, tile, arg, NULL, 0);
    } else {
        if (d->pending != NULL)
            abort(); // a device holds one call
        d->pending = tile;
        for (int i = 0; i < OF_CALL; i++)
            d->arg[i] = arg[i];
    }
}

static void begin_phase(RtDevice *device, RtPhase phase) {
    RtDevice *host = tiled_of(device)->host;
    host->phase(host, phase);
}

TilingDevice tiled_device(RtDevice *host, const RtPlan *plan, void *kernels) {
    return (TilingDevice){.device = {.name = "tiled",
                                     .launch = launch,
                                     .library_call = library_call,
                                     .phase = begin_phase},
                          .host = host,
                          .plan = plan,
                          .kernels = kernels};
}

void tiled_begin(TilingDevice *d, int step) {
    d->step = step;
    d->launch = 0;
    d->pending = NULL;
}
