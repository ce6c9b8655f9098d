// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Host device: the arena is ordinary memory, and each thread of the team runs a
// contiguous range of a grid's blocks.  The grid does not depend on the number
// of threads, so neither do the results.  Every call is synchronous.
#define _DEFAULT_SOURCE

#include "runtime/host/host.h"
#include "runtime/report/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

typedef struct {
    RtDevice device;
    const RtPlan *plan;
    int threads;
    char *arena;
    void *mapping;
    size_t mapped;
    RtContractions *contractions;
    RtPackedWeights *packed; // NULL: the device does not mainly predict
    RtHostTiles tiles;
    int64_t feeds, asked, told;
    float note[RT_MAX_READBACKS][RT_MAX_READBACK_VALUES];
    int noted[RT_MAX_READBACKS]; // numbers in each
    RtPhase phase;
    double since; // start of the phase
    RtTimes spent;
    const RtStep *step; // that runs
    int launches;       // of the step, so far
    RtTeamSize **size;  // for each launch of each step
    RtTrace *trace;     // NULL: no trace
    char description[128];
} Host;

static Host *host_of(RtDevice *d) {
    return (Host *)(void *)d; // device is its first field
}

static const char *describe(RtDevice *d) {
    return host_of(d)->description;
}

static size_t available(RtDevice *d) {
    (void)d;
    return rt_memory_available();
}

// Both functions that need it run before the first step.
static void packed_open(Host *h) {
    if (h->device.predicts && h->packed == NULL)
        h->packed = rt_packed_weights_new(h->plan, h->contractions);
}

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t needed(RtDevice *d) {
    Host *h = host_of(d);
    size_t bytes;
    RtRange absent[2];
    packed_open(h);
    if (__builtin_sub_overflow(rt_lockstep_arena_bytes(h->plan, d->shards),
                               rt_device_absent(d, page_bytes(), absent),
                               &bytes) ||
        __builtin_add_overflow(bytes, rt_contractions_bytes(h->contractions),
                               &bytes) ||
        __builtin_add_overflow(bytes, rt_packed_weights_bytes(h->packed),
                               &bytes) ||
        __builtin_add_overflow(bytes, rt_host_tiles_bytes(h->plan), &bytes) ||
        __builtin_add_overflow(bytes, HUGE_PAGE, &bytes))
        return SIZE_MAX;
    return bytes;
}

static bool open_range(const Host *h, size_t begin, size_t end) {
    return mprotect(h->arena + begin, end - begin, PROT_READ | PROT_WRITE) == 0;
}

// Addresses for all of the arena, and memory for the parts that are here.
static bool map_arena(Host *h, size_t bytes) {
    RtRange absent[2];
    size_t at = 0;
    h->mapped = bytes + HUGE_PAGE;
    rt_device_absent(&h->device, page_bytes(), absent);
    h->mapping =
        mmap(NULL, h->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (h->mapping == MAP_FAILED) {
        h->mapping = NULL;
        return false;
    }
    uintptr_t start = (uintptr_t)h->mapping;
    h->arena = (char *)h->mapping + (HUGE_PAGE - start % HUGE_PAGE) % HUGE_PAGE;
    for (int i = 0; i < 2; i++) {
        if (absent[i].begin == absent[i].end)
            continue;
        if (!open_range(h, at, absent[i].begin))
            return false;
        at = absent[i].end;
    }
    return open_range(h, at,
                      h->mapped - (size_t)(h->arena - (char *)h->mapping));
}

// Huge pages avoid most TLB misses; the system may decline.
static void reserve(RtDevice *d) {
    Host *h = host_of(d);
    size_t bytes = rt_lockstep_arena_bytes(h->plan, d->shards);
    if (!map_arena(h, bytes))
        rt_end(EXIT_MEMORY, "cannot allocate %zu bytes of memory: %s",
               needed(d), strerror(errno));
    madvise(h->arena, bytes, MADV_HUGEPAGE);
    rt_contractions_reserve(h->contractions);
    packed_open(h);
    rt_packed_weights_reserve(h->packed);
    rt_host_tiles_reserve(&h->tiles, h->plan, h->arena);
    h->since = rt_seconds();
}

static void write_bytes(RtDevice *d, size_t to, const void *from,
                        size_t bytes) {
    Host *h = host_of(d);
    rt_packed_weights_written(h->packed, to);
    memcpy(h->arena + to, from, bytes);
}

static void read_bytes(RtDevice *d, void *to, size_t from, size_t bytes) {
    memcpy(to, host_of(d)->arena + from, bytes);
}

static void sum(RtDevice *d, size_t to, const size_t *from, int terms,
                size_t count) {
    enum { FEW = 1 << 14 }; // numbers that one thread adds sooner than a team
    Host *h = host_of(d);
    rt_sum(h->arena, to, from, terms, count, count < FEW ? 1 : h->threads);
}

static int64_t submit_batch(RtDevice *d, const RtPiece *piece, int count) {
    Host *h = host_of(d);
    double begin = rt_seconds();
    for (int i = 0; i < count; i++)
        write_bytes(d, piece[i].to, piece[i].from, piece[i].bytes);
    if (h->trace != NULL)
        rt_trace_add(h->trace, &(RtSpan){.track = RT_TRACK_COPIES,
                                         .name = "copy batch",
                                         .begin = begin,
                                         .end = rt_seconds(),
                                         .number = h->feeds});
    return ++h->feeds;
}

static int64_t completed_batches(RtDevice *d, int64_t least) {
    (void)least; // submit_batch is synchronous
    return host_of(d)->feeds;
}

static void request_readback(RtDevice *d, const size_t *from, int count) {
    Host *h = host_of(d);
    int64_t slot = h->asked++ % RT_MAX_READBACKS;
    for (int i = 0; i < count; i++)
        read_bytes(d, &h->note[slot][i], from[i], sizeof(float));
    h->noted[slot] = count;
}

static bool poll_readback(RtDevice *d, float *to, bool wait) {
    Host *h = host_of(d);
    (void)wait;
    int64_t slot = h->told++ % RT_MAX_READBACKS;
    memcpy(to, h->note[slot], (size_t)h->noted[slot] * sizeof *to);
    return true;
}

typedef struct {
    RtHostKernel *kernel;
    char *arena;
    const size_t *arg;
    int grid, phase;
} Launch;

static void run_blocks(void *arg, int me, int members) {
    const Launch *l = arg;
    int first = (int)((int64_t)l->grid * me / members);
    int last = (int)((int64_t)l->grid * (me + 1) / members);
    if (first < last)
        l->kernel(l->arena, l->arg, first, last, l->grid, l->phase);
}

static void run(RtDevice *d, const RtStep *step) {
    Host *h = host_of(d);
    h->step = step;
    h->launches = d->segment != NULL ? d->segment->first : 0;
    rt_packed_weights_begin(h->packed, step, h->arena);
    rt_host_tiles_begin(&h->tiles, step);
    rt_step_launch(d, step);
    rt_host_tiles_begin(&h->tiles, NULL);
    h->step = NULL;
}

// Ends a launch.  Measuring costs a reading of the clock on each side.
static void spend(Host *h, const char *name, bool is_call, double begin) {
    double end = rt_seconds();
    const RtLaunch *launch = rt_launch_of(h->step, h->launches++);
    h->spent.work[rt_launch_work(launch, is_call)] += end - begin;
    if (h->trace != NULL)
        rt_trace_add(h->trace, &(RtSpan){.track = is_call ? RT_TRACK_CALLS
                                                          : RT_TRACK_KERNELS,
                                         .name = name,
                                         .begin = begin,
                                         .end = end,
                                         .launch = launch,
                                         .launches = launch != NULL,
                                         .number = -1});
}

// NULL: the launch is not in its step's list.
static RtTeamSize *size_of(const Host *h) {
    bool listed = rt_launch_of(h->step, h->launches) != NULL;
    return listed ? &h->size[h->step - h->plan->step][h->launches] : NULL;
}

// Ends a launch that is the work of tile kernels, if it is.
static bool is_tiled(Host *h, RtTileUse how, double begin) {
    RtWatch *watch = h->device.watch;
    if (how == RT_NO_TILE)
        return false;
    if (how == RT_TILE_HERE)
        spend(h, h->tiles.ran->name, false, begin);
    else
        h->launches++;
    if (watch != NULL) {
        watch->absent = how == RT_TILE_ELSEWHERE;
        if (how == RT_TILE_HERE && h->tiles.ran->call >= 0)
            watch->tile = h->tiles.ran;
    }
    return true;
}

static void launch(RtDevice *d, int kernel, int grid, const size_t *arg) {
    Host *h = host_of(d);
    const RtKernel *k = &h->plan->kernel[kernel];
    Launch l = {k->host, h->arena, arg, grid, 0};
    RtTeamSize *size = grid > 1 ? size_of(h) : NULL;
    int threads = grid == 1      ? 1
                  : size == NULL ? h->threads
                                 : rt_team_size(size, h->threads);
    double begin = rt_seconds();
    if (is_tiled(h,
                 rt_host_tiles_launch(&h->tiles, d, h->launches, kernel, arg),
                 begin))
        return;
    for (; l.phase < k->phases; l.phase++)
        rt_team_run(threads, run_blocks, &l);
    if (size != NULL)
        rt_team_measure(size, threads, rt_seconds() - begin);
    spend(h, k->name, false, begin);
}

static void library_call(RtDevice *d, int call, size_t a, size_t b,
                         size_t out) {
    Host *h = host_of(d);
    const RtCall *c = &h->plan->call[call];
    double begin = rt_seconds();
    const size_t arg[] = {a, b, out};
    if (is_tiled(h, rt_host_tiles_call(&h->tiles, d, call, arg), begin))
        return;
    if (c->kind == RT_SUM_OVER_SHARDS)
        rt_sum(h->arena, out, &a, 1, (size_t)c->k, 1);
    else
        rt_contractions_run(h->contractions, call, h->arena + a, h->arena + b,
                            rt_packed_weights_find(h->packed, call, b),
                            h->arena + out);
    spend(h, rt_call_name(c->kind), true, begin);
}

static void begin_phase(RtDevice *d, RtPhase phase) {
    Host *h = host_of(d);
    double now = rt_seconds();
    h->spent.phase[h->phase] += now - h->since;
    h->since = now;
    h->phase = phase;
}

static void sync_calls(RtDevice *d) {
    (void)d;
}

static void times(RtDevice *d, RtTimes *t) {
    Host *h = host_of(d);
    begin_phase(d, h->phase);
    *t = h->spent;
    h->spent = (RtTimes){0};
}

static void set_trace(RtDevice *d, RtTrace *trace) {
    host_of(d)->trace = trace;
}

static void close_host(RtDevice *d) {
    Host *h = host_of(d);
    rt_packed_weights_free(h->packed);
    rt_host_tiles_free(&h->tiles);
    if (h->contractions != NULL)
        rt_contractions_free(h->contractions);
    for (int i = 0; h->size != NULL && i < h->plan->num_steps; i++)
        free(h->size[i]);
    free(h->size);
    if (h->mapping != NULL)
        munmap(h->mapping, h->mapped);
    free(h);
}

static void write_description(Host *h) {
    char processor[96];
    rt_processor_name(processor, sizeof processor);
    snprintf(h->description, sizeof h->description, "%s, %d thread%s",
             processor, h->threads, h->threads == 1 ? "" : "s");
}

static void *zeroed(size_t count, size_t bytes) {
    void *p = calloc(count + 1, bytes);
    if (p == NULL)
        rt_end(EXIT_MEMORY, "out of memory");
    return p;
}

static void sizes_new(Host *h) {
    const RtPlan *plan = h->plan;
    h->size = zeroed((size_t)plan->num_steps, sizeof *h->size);
    for (int i = 0; i < plan->num_steps; i++)
        h->size[i] =
            zeroed((size_t)plan->step[i].num_launches, sizeof **h->size);
}

RtDevice *host_open(const RtPlan *plan, int threads) {
    Host *h = zeroed(1, sizeof *h);
    h->device = (RtDevice){
        .name = "host",
        .describe = describe,
        .available = available,
        .needed = needed,
        .reserve = reserve,
        .write = write_bytes,
        .read = read_bytes,
        .sum = sum,
        .submit_batch = submit_batch,
        .completed_batches = completed_batches,
        .request_readback = request_readback,
        .poll_readback = poll_readback,
        .run = run,
        .launch = launch,
        .library_call = library_call,
        .phase = begin_phase,
        .sync = sync_calls,
        .times = times,
        .trace = set_trace,
        .close = close_host,
    };
    h->plan = plan;
    if (rt_guard != NULL)
        rt_guard->opening = &h->device;
    sizes_new(h);
    h->phase = RT_OTHER;
    h->since = rt_seconds();
    // oneDNN plans for the current team, so that starts first.
    h->threads = rt_team_start(threads);
    h->device.threads = h->threads;
    rt_contractions_new(plan, h->threads, &h->contractions);
    write_description(h);
    return &h->device;
}
