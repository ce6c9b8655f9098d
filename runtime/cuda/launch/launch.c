// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launch: puts a step's kernels, merged launches and library calls on the
// stream, captured or one by one, and reports them to profilers, traces, timers
// and, if one fails, in the error.

#include "runtime/cuda/launch/launch.h"
#include "runtime/report/nvtx.h"

#include <limits.h>
#include <stdio.h>

// ---- errors ----

const char *rt_cuda_step_name(const RtCuda *c) {
    return c->plan->step[c->step].name;
}

// An error of a launch appears at a later call, so the message names the last
// launches.
static void print_recent(const RtCuda *c) {
    fprintf(stderr, "; in run %lld of step %s", (long long)c->running->runs,
            rt_cuda_step_name(c));
    int64_t first = c->launches > RECENT ? c->launches - RECENT : 0;
    for (int64_t i = first; i < c->launches; i++)
        fprintf(stderr, "%s%s", i == first ? ", which launched " : ", ",
                c->recent[i % RECENT]);
}

// Does not call exit: threads that load may be writing to pinned memory, which
// the driver frees there.
void rt_cuda_check(const RtCuda *c, bool good) {
    const RtError *e = &c->error;
    if (good)
        return;
    rt_guard_end(e);
    fprintf(stderr, "%serror: %s: %s", rt_wiped(), c->name, e->text);
    if (c->step >= 0)
        print_recent(c);
    fputc('\n', stderr);
    rt_trace_abandon(c->device.profile, c->trainer->model, e->text);
    rt_leave(e->status);
}

// A capture may be refused in many ways; the rest of its step is skipped then.
void rt_cuda_check_launch(RtCuda *c, bool good) {
    if (!c->is_capturing) {
        rt_cuda_check(c, good);
    } else if (!good && !c->is_refused) {
        c->is_refused = true;
        c->why = c->error;
    }
}

// ---- phases ----

// The next work is of this phase and kind.
static void mark(RtCuda *c, RtPhase phase, RtWork work) {
    c->phase = phase;
    c->work = work;
    if (!c->is_timed)
        return;
    c->after_kernel = false;
    rt_cuda_check_launch(c, rt_timing_events_add(&c->running->events, phase,
                                                 work, c->stream,
                                                 c->is_capturing, &c->error));
}

static void name_phase(RtCuda *c, RtPhase phase) {
    static const char *const name[] = {[RT_FORWARD] = "forward",
                                       [RT_BACKWARD] = "backward",
                                       [RT_UPDATE] = "update"};
    if (c->names_phase)
        rt_nvtx_pop(c->device.nvtx);
    c->names_phase = phase != RT_OTHER && !c->is_listing;
    if (c->names_phase)
        rt_nvtx_push(c->device.nvtx, "%s", name[phase]);
}

void rt_cuda_phase(RtDevice *d, RtPhase phase) {
    RtCuda *c = rt_cuda_of(d);
    name_phase(c, phase);
    mark(c, phase, c->work);
}

// ---- kernels ----

// Begins a kernel or a call for launches first .. last of the step.
static void begin_launch(RtCuda *c, const char *name, int first, int last,
                         bool is_call) {
    const RtLaunch *launch = rt_launch_of(&c->plan->step[c->step], first);
    RtWork work = rt_launch_work(launch, is_call);
    RtSpan span = {.track = is_call ? RT_TRACK_CALLS : RT_TRACK_KERNELS,
                   .name = name,
                   .launch = launch,
                   .launches = launch != NULL ? last - first + 1 : 0,
                   .number = -1};
    rt_nvtx_push(c->device.nvtx, "%s  %s  %s", name,
                 launch != NULL ? launch->lines : "",
                 launch != NULL ? launch->path : "");
    if (work != c->work)
        mark(c, c->phase, work);
    rt_cuda_check(c,
                  rt_trace_spans_begin(&c->spans, &span, c->stream, &c->error));
}

static void end_launch(RtCuda *c) {
    rt_cuda_check(c, rt_trace_spans_end(&c->spans, c->stream, &c->error));
    rt_nvtx_pop(c->device.nvtx);
}

static void remember(RtCuda *c, const char *launch) {
    c->recent[c->launches++ % RECENT] = launch;
}

// All blocks of a cooperative launch must be resident.  Fewer may be than the
// driver reports, as with a tool that instruments the kernel, so half of them
// are tried next.
static CUresult launch_cooperative(const RtCuda *c, int kernel, int grid,
                                   void **argument) {
    const RtKernel *k = &c->plan->kernel[kernel];
    RtFunction *entry = &c->kernels.entry[kernel];
    for (;;) {
        int blocks = grid < entry->resident ? grid : entry->resident;
        CUresult result = c->cu.launch_cooperative(
            entry->function, (unsigned)blocks, 1, 1, (unsigned)k->threads, 1, 1,
            0, c->stream, argument);
        if (result != CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE || blocks == 1)
            return result;
        entry->resident = blocks / 2;
    }
}

// Lets the kernel start while the one before it runs; both wait as
// codegen/kernel/grid_dependency.c describes.  The same holds in a graph, whose
// edge between the two becomes programmatic.
static CUresult launch_early(const RtCuda *c, CUfunction function, int blocks,
                             int threads, void **argument) {
    CUlaunchAttribute early = {
        .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        .value = {.programmaticStreamSerializationAllowed = 1}};
    CUlaunchConfig config = {.gridDimX = (unsigned)blocks,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = (unsigned)threads,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = c->stream,
                             .attrs = &early,
                             .numAttrs = 1};
    return c->cu.launch_with(&config, function, argument, NULL);
}

// A kernel that works with fewer blocks gets no more than are resident: in a
// second wave most of the GPU would be idle.
static CUresult launch_kernel(const RtCuda *c, int kernel, int grid,
                              void **argument) {
    const RtKernel *k = &c->plan->kernel[kernel];
    const RtFunction *entry = &c->kernels.entry[kernel];
    if (k->phases > 1)
        return launch_cooperative(c, kernel, grid, argument);
    int blocks = k->fewer && grid > entry->resident ? entry->resident : grid;
    if (c->after_kernel)
        return launch_early(c, entry->function, blocks, k->threads, argument);
    return c->cu.launch(entry->function, (unsigned)blocks, 1, 1,
                        (unsigned)k->threads, 1, 1, 0, c->stream, argument,
                        NULL);
}

// Whether the kernel behind the last one may start early.  Only code for 9.0 or
// later waits for the kernel before.  Observers and hooks put other work
// between two kernels.
static bool overlaps(const RtCuda *c) {
    return c->is_programmatic && c->kernels.capability >= 90 &&
           c->device.watch == NULL && c->device.hooks == NULL &&
           c->spans.trace == NULL && c->timer == NULL;
}

static void time_launch(RtCuda *c, int launch, int call) {
    if (c->timer != NULL)
        rt_cuda_check(c, c->timer->before(c->timer, launch, call, &c->error));
}

static void report_absent(RtDevice *d) {
    if (d->watch != NULL)
        d->watch->absent = true;
}

// Before the libraries are open, guesses that every fusion is taken on the
// compute capabilities 8 and 9 that passes/plan/library.def lists.
bool rt_cuda_is_fused(const RtCuda *c, int step, int launch) {
    if (!c->is_guessing)
        return rt_library_calls_fused(&c->calls, step, launch);
    bool can = c->gpu.major == 8 || c->gpu.major == 9;
    for (int i = 0; can && i < c->plan->num_fusions; i++)
        if (c->plan->fusion[i].step == step &&
            c->plan->fusion[i].launch == launch)
            return true;
    return false;
}

// ---- tile kernels ----

// Launches a tile kernel for launches first .. last of the step, whose
// arguments are written.
static void launch_tile(RtCuda *c, const RtTile *tile, int first, int last) {
    if (c->is_listing || c->is_refused)
        return;
    c->after_kernel = false;
    remember(c, tile->name);
    rt_fork_join(c, last);
    begin_launch(c, tile->name, first, last, false);
    rt_cuda_check_launch(
        c, rt_driver_good(
               &c->cu, rt_tiles_launch(&c->tiles, tile, c->stream, c->argument),
               &c->error, "launch tile kernel %s", tile->name));
    end_launch(c);
}

// With the arguments of the call, of its prologues, and of the kernel that it
// replaces; NULL: none.
static void launch_pending(RtCuda *c, const RtPendingTile *p, int kernel,
                           const size_t *arg) {
    enum { OF_CALL = 3 };
    int args = arg != NULL ? c->plan->kernel[kernel].args : 0;
    CUdeviceptr *at = c->at;
    for (int i = 0; i < OF_CALL; i++)
        *at++ = c->arena + p->arg[i];
    for (int i = 0; i < p->tile->args; i++)
        *at++ = c->arena + rt_segment_address(&c->device, p->tile->arg[i]);
    for (int i = 0; i < args; i++)
        *at++ = c->arena + arg[i];
    *at = c->tiles.workspace;
    if (c->device.watch != NULL)
        c->device.watch->tile = p->tile;
    launch_tile(c, p->tile, p->number,
                arg != NULL ? p->tile->launch : p->number);
}

// Whether a tile kernel does the work of a call, now or at a later launch.
static bool takes_call(RtCuda *c, int number, int call, size_t a, size_t b,
                       size_t out) {
    const RtPendingTile p = {
        rt_tiles_find(&c->tiles, call), number, {a, b, out}};
    if (p.tile == NULL)
        return false;
    c->pending = p.tile->launch < 0 ? (RtPendingTile){0} : p;
    if (p.tile->launch < 0)
        launch_pending(c, &p, -1, NULL);
    else
        report_absent(&c->device);
    return true;
}

// Whether tile kernels that belong to no call do the work of a kernel.
static bool is_replaced(RtCuda *c, int number, int kernel, const size_t *arg) {
    int count, args = c->plan->kernel[kernel].args;
    const RtTile *tile = rt_tiles_replacing(&c->tiles, c->step, number, &count);
    for (int i = 0; tile != NULL && i < count; i++) {
        for (int k = 0; k < args; k++)
            c->at[k] = c->arena + arg[k];
        c->at[args] = (unsigned)tile[i].number; // its lower bytes are first
        launch_tile(c, &tile[i], number, number);
    }
    return tile != NULL;
}

static bool takes_kernel(RtCuda *c, int number, int kernel, const size_t *arg) {
    const RtPendingTile p = c->pending;
    if (is_replaced(c, number, kernel, arg))
        return true;
    if (p.tile == NULL || p.tile->launch != number)
        return false;
    c->pending = (RtPendingTile){0};
    launch_pending(c, &p, kernel, arg);
    return true;
}

// ---- kernels ----

// Launches a kernel, or with the last one of a merged launch all of them.
void rt_cuda_launch(RtDevice *d, int kernel, int grid, const size_t *arg) {
    RtCuda *c = rt_cuda_of(d);
    time_launch(c, c->merging.launch, -1);
    if (rt_cuda_is_fused(c, c->step, c->merging.launch) ||
        rt_tiles_skip(&c->tiles, c->step, c->merging.launch)) {
        rt_merging_skip(&c->merging);
        report_absent(d);
        return;
    }
    if (takes_kernel(c, c->merging.launch, kernel, arg)) {
        rt_merging_skip(&c->merging);
        return;
    }
    int last = c->merging.launch;
    if (c->merging.num_args == 0)
        c->first = last;
    if (!rt_merging_add(&c->merging, &kernel, &grid, &arg)) {
        report_absent(d);
        return;
    }
    c->needed[kernel] = true;
    if (c->is_listing || c->is_refused)
        return;
    const RtKernel *k = &c->plan->kernel[kernel];
    for (int i = 0; i < k->args; i++)
        c->at[i] = c->arena + arg[i];
    remember(c, k->name);
    rt_fork_join(c, last);
    begin_launch(c, k->name, c->first, last, false);
    rt_cuda_check_launch(
        c, rt_driver_good(&c->cu, launch_kernel(c, kernel, grid, c->argument),
                          &c->error, "launch kernel %s", k->name));
    c->after_kernel = overlaps(c);
    end_launch(c);
}

// ---- library calls ----

// A library may refuse a plan when it first runs, which is in the first run of
// a step.  If the GPU has failed, other plans would fail too.
static bool fall_back(RtCuda *c, int call, size_t a, size_t b, size_t out,
                      RtError *e) {
    bool good = false, can = c->timer == NULL && !c->is_capturing &&
                             c->cu.stream_sync(c->stream) == CUDA_SUCCESS;
    for (int i = 0; !good && can && rt_library_calls_fall_back(&c->calls, call);
         i++) {
        if (i == 0)
            rt_warn("%s: %s; trying other plans", c->name, e->text);
        good =
            rt_library_calls_run(&c->calls, call, RT_MAIN_STREAM, a, b, out, e);
    }
    return good;
}

// A library loads its kernels to the GPU when they first run, and need not
// report that memory was missing.
static void explain_memory(const RtCuda *c, RtError *e) {
    enum { LITTLE = 64 << 20 };
    const RtError why = *e;
    size_t left = 0, total = 0;
    if (c->cu.memory_info(&left, &total) == CUDA_SUCCESS && left < LITTLE)
        rt_fail(e, EXIT_MEMORY,
                "%s; only %.1f MiB of memory are free, and the library needs "
                "some to load a kernel: use a smaller batch",
                why.text, (double)left / (1 << 20));
}

void rt_cuda_library_call(RtDevice *d, int call, size_t a, size_t b,
                          size_t out) {
    RtCuda *c = rt_cuda_of(d);
    int number = c->merging.launch;
    time_launch(c, number, call);
    rt_merging_skip(&c->merging);
    if (takes_call(c, number, call, a, b, out) || c->is_listing ||
        c->is_refused)
        return;
    c->after_kernel = false;
    remember(c, c->plan->call[call].layer);
    if (rt_library_calls_on_host(&c->calls, call))
        c->running->one_by_one = true;
    rt_fork_join(c, number);
    const RtStream on =
        rt_fork_begin(c, number, call) ? RT_SIDE_STREAM : RT_MAIN_STREAM;
    begin_launch(c, rt_call_name(c->plan->call[call].kind), number, number,
                 true);
    bool good = true;
    if (c->plan->call[call].kind == RT_SUM_OVER_SHARDS)
        rt_cuda_sum(d, out, &a, 1, (size_t)c->plan->call[call].k);
    else
        good =
            rt_library_calls_run(&c->calls, call, on, a, b, out, &c->error) ||
            fall_back(c, call, a, b, out, &c->error);
    end_launch(c);
    if (!good && c->timer != NULL) {
        c->timer->failed[number] = true;
        return;
    }
    if (!good)
        explain_memory(c, &c->error);
    rt_cuda_check_launch(c, good);
}

// ---- a step ----

static bool is_ahead(const RtStep *s, int call, int launch) {
    for (int i = launch; s->launch != NULL && i < s->num_launches; i++)
        if (s->launch[i].call == call)
            return true;
    return false;
}

// A library call may do the work of a launch before it.
int rt_cuda_queued_launches(RtDevice *d) {
    RtCuda *c = rt_cuda_of(d);
    int next = c->merging.launch;
    int queued = c->merging.num_args > 0 ? c->first : next;
    if (c->pending.tile != NULL && c->pending.number < queued)
        queued = c->pending.number;
    for (int i = 0; i < c->plan->num_fusions; i++) {
        const RtFusion *f = &c->plan->fusion[i];
        if (f->step == c->step && f->launch >= 0 && f->launch < queued &&
            rt_cuda_is_fused(c, f->step, f->launch) &&
            is_ahead(&c->plan->step[c->step], f->call, next))
            queued = f->launch;
    }
    return queued;
}

void rt_cuda_launch_step(RtCuda *c, bool captured, bool timed) {
    c->is_capturing = captured;
    c->is_refused = false;
    c->is_timed = timed;
    c->after_kernel = false;
    c->launches = 0;
    c->pending = (RtPendingTile){0};
    rt_merging_begin(&c->merging, c->plan, c->merged, c->step);
    if (c->device.segment != NULL)
        c->merging.launch = c->device.segment->first;
    mark(c, c->phase, RT_NUM_WORKS);
    rt_step_launch(&c->device, &c->plan->step[c->step]);
    rt_fork_join(c, INT_MAX);
    mark(c, c->phase, RT_NUM_WORKS);
    name_phase(c, RT_OTHER);
    c->is_capturing = c->is_timed = false;
}
