// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches of a step: kernels, joined ones and library calls are put on the
// stream, recorded or one by one, with what is told of them to profilers,
// traces and measurements, and by the error that one of them ends with.

#include "runtime/cuda/launch/launch.h"
#include "runtime/report/nvtx.h"

#include <stdio.h>
#include <stdlib.h>

// ---- what goes wrong ----

static const char *step_name(RtStepKind kind) {
    static const char *const name[] = {
        [RT_COLLECT] = "collect", [RT_INIT] = "init",
        [RT_DERIVE] = "derive",   [RT_TRAIN] = "train",
        [RT_GATHER] = "gather",   [RT_AVERAGE] = "average",
        [RT_PREPARE] = "prepare", [RT_EVAL] = "eval",
    };
    return name[kind];
}

// An error of a launch comes to light at some later call: what was put on the
// stream before it is told.
static void tell_where(const RtCuda *c) {
    const RtStepGraph *r = &c->replay[c->step];
    fprintf(stderr, "; in run %lld of step %s", (long long)r->runs,
            step_name(c->plan->step[c->step].kind));
    int64_t first = c->made > RECENT ? c->made - RECENT : 0;
    for (int64_t i = first; i < c->made; i++)
        fprintf(stderr, "%s%s", i == first ? ", which launched " : ", ",
                c->recent[i % RECENT]);
}

// Ends the program, but not by exit: threads that load may be writing to pinned
// memory, which the driver takes away there.
void rt_cuda_check(const RtCuda *c, bool good) {
    const RtError *e = &c->error;
    if (good)
        return;
    fprintf(stderr, "%serror: %s: %s", rt_wiped(), c->name, e->text);
    if (c->step >= 0)
        tell_where(c);
    fputc('\n', stderr);
    rt_trace_abandon(c->device.profile, c->trainer->model, e->text);
    rt_leave(e->status);
}

// What a step does must succeed, but while it is recorded, which may be refused
// in many ways: what is left of it is not asked for then.
static void step_must(RtCuda *c, bool good) {
    if (!c->is_captured) {
        rt_cuda_check(c, good);
    } else if (!good && !c->is_refused) {
        c->is_refused = true;
        c->why = c->error;
    }
}

static void refused(void *arg, bool marked, const RtError *why) {
    const RtCuda *c = arg;
    const char *step = step_name(c->plan->step[c->step].kind);
    rt_warn("%s: step %s %s: %s", c->name, step,
            marked ? "has no per-phase timing"
                   : "runs without a CUDA graph, which is slower",
            why->text);
}

// ---- steps ----

static void mark(RtCuda *c, RtPhase phase, RtWork work) {
    c->phase = phase;
    c->work = work;
    if (c->is_marked)
        step_must(c,
                  rt_timing_events_add(&c->replay[c->step].marks, phase, work,
                                       c->stream, c->is_captured, &c->error));
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

// What comes is a kernel or a call for launches first .. last of the step.
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

static bool make_step(void *arg, bool captured, bool marked, RtError *e) {
    RtCuda *c = arg;
    c->is_captured = captured;
    c->is_refused = false;
    c->is_marked = marked;
    rt_merging_begin(&c->joining, c->plan, c->joins, c->step);
    c->made = 0;
    mark(c, c->phase, RT_NUM_WORKS);
    c->plan->step[c->step].run(&c->device);
    mark(c, c->phase, RT_NUM_WORKS);
    name_phase(c, RT_OTHER);
    bool made = !c->is_refused;
    if (!made)
        *e = c->why;
    c->is_captured = c->is_refused = c->is_marked = false;
    return made;
}

RtMaker rt_cuda_maker(RtCuda *c) {
    return (RtMaker){&c->cu, c->stream, make_step, refused, c};
}

void rt_cuda_run(RtDevice *d, const RtStep *step) {
    RtCuda *c = rt_cuda_of(d);
    RtMaker maker = rt_cuda_maker(c);
    c->step = (int)(step - c->plan->step);
    if (d->watch == NULL && c->spans.trace == NULL) {
        rt_cuda_check(
            c, rt_step_graph_run(&c->replay[c->step], &maker, &c->error));
        return;
    }
    c->replay[c->step].runs++;
    rt_cuda_check(c, make_step(c, false, false, &c->error));
}

static void note(RtCuda *c, const char *launch) {
    c->recent[c->made++ % RECENT] = launch;
}

// A launch in phases waits for all of its blocks, so that there can be no more
// than there is room for at a time.  That may be fewer than the driver says, as
// where a tool has instrumented the kernel: half of them are tried then.
static CUresult launch_phases(const RtCuda *c, int kernel, int grid,
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

// What may have fewer blocks has none that wait for others to end: the last
// would run with most of the GPU idle.
static CUresult launch_kernel(const RtCuda *c, int kernel, int grid,
                              void **argument) {
    const RtKernel *k = &c->plan->kernel[kernel];
    const RtFunction *entry = &c->kernels.entry[kernel];
    if (k->phases > 1)
        return launch_phases(c, kernel, grid, argument);
    int blocks = k->fewer && grid > entry->resident ? entry->resident : grid;
    return c->cu.launch(entry->function, (unsigned)blocks, 1, 1,
                        (unsigned)k->threads, 1, 1, 0, c->stream, argument,
                        NULL);
}

// Before launch number `launch`, of a kernel (-1) or a call.
static void gauge(RtCuda *c, int launch, int call) {
    if (c->gauge != NULL)
        rt_cuda_check(c,
                      rt_cold_timer_record(c->gauge, launch, call, &c->error));
}

static void leave_out(RtDevice *d) {
    if (d->watch != NULL)
        d->watch->absent = true;
}

// Ahead of the libraries a call does so wherever one may, as by
// passes/plan/library.def those for capability 8 and 9 offer.
bool rt_cuda_is_fused(const RtCuda *c, int step, int launch) {
    if (!c->is_ahead)
        return rt_library_calls_fused(&c->calls, step, launch);
    bool can = c->gpu.major == 8 || c->gpu.major == 9;
    for (int i = 0; can && i < c->plan->num_fusions; i++)
        if (c->plan->fusion[i].step == step &&
            c->plan->fusion[i].launch == launch)
            return true;
    return false;
}

// Makes a launch, or one of kernels that are joined when the last of them
// comes.
void rt_cuda_launch(RtDevice *d, int kernel, int grid, const size_t *arg) {
    RtCuda *c = rt_cuda_of(d);
    gauge(c, c->joining.launch, -1);
    if (rt_cuda_is_fused(c, c->step, c->joining.launch)) {
        rt_merging_skip(&c->joining);
        leave_out(d);
        return;
    }
    int last = c->joining.launch;
    if (c->joining.num_args == 0)
        c->first = last;
    if (!rt_merging_add(&c->joining, &kernel, &grid, &arg)) {
        leave_out(d);
        return;
    }
    c->wanted[kernel] = true;
    if (c->is_listing || c->is_refused)
        return;
    const RtKernel *k = &c->plan->kernel[kernel];
    for (int i = 0; i < k->args; i++)
        c->at[i] = c->arena + arg[i];
    note(c, k->name);
    begin_launch(c, k->name, c->first, last, false);
    step_must(c, rt_driver_good(&c->cu,
                                launch_kernel(c, kernel, grid, c->argument),
                                &c->error, "launch kernel %s", k->name));
    end_launch(c);
}

// What a library offers it may refuse when it is run, as it is found out in the
// first run of a step.  On a GPU that has failed all would.
static bool try_others(RtCuda *c, int call, size_t a, size_t b, size_t out,
                       RtError *e) {
    bool good = false, can = c->gauge == NULL && !c->is_captured &&
                             c->cu.stream_sync(c->stream) == CUDA_SUCCESS;
    for (int i = 0; !good && can && rt_library_calls_fall_back(&c->calls, call);
         i++) {
        if (i == 0)
            rt_warn("%s: %s; trying other plans", c->name, e->text);
        good = rt_library_calls_run(&c->calls, call, a, b, out, e);
    }
    return good;
}

// A library's code comes to the GPU when it first runs, and has no room of its
// own there: a library need not say that this is what was missing.
static void tell_memory(const RtCuda *c, RtError *e) {
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
    int number = c->joining.launch;
    gauge(c, number, call);
    rt_merging_skip(&c->joining);
    if (c->is_listing || c->is_refused)
        return;
    note(c, c->plan->call[call].layer);
    if (rt_library_calls_on_host(&c->calls, call))
        c->replay[c->step].one_by_one = true;
    begin_launch(c, rt_call_name(c->plan->call[call].kind), number, number,
                 true);
    bool good = rt_library_calls_run(&c->calls, call, a, b, out, &c->error) ||
                try_others(c, call, a, b, out, &c->error);
    end_launch(c);
    if (!good && c->gauge != NULL) {
        c->gauge->failed[number] = true;
        return;
    }
    if (!good)
        tell_memory(c, &c->error);
    step_must(c, good);
}
