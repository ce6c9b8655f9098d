// CUDA device: one GPU, one stream, one allocation for the arena and what the
// libraries work in.  Steps are put on the stream and not waited for.

#include "runtime/cuda/device.h"
#include "runtime/cuda/ahead.h"
#include "runtime/cuda/join.h"
#include "runtime/cuda/lane.h"
#include "runtime/cuda/notes.h"
#include "runtime/cuda/peak.h"
#include "runtime/cuda/trial.h"
#include "runtime/report/nvtx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Marks of a step beside those of its launches: of its phases, and its ends.
enum { RECENT = 4, ALIGNMENT = 256, BESIDE_LAUNCHES = 8 };

typedef struct {
    RtDevice device;
    const RtTrainer *trainer;
    const RtPlan *plan;
    RtPlan unjoined; // it without its joins, for a GPU that cannot take any
    RtDriver cu;
    RtGpu gpu;
    RtKernels kernels;
    RtCalls calls;
    RtStaging staging;
    RtGather gather;
    RtLane lane;
    RtNotes notes;
    RtSpans spans;
    CUstream stream;
    CUdeviceptr arena;
    RtReplay *replay;           // one for each step
    int step;                   // that runs, or ran last; -1: none has
    bool is_captured;           // it is being recorded
    bool is_refused;            // and cannot be
    RtError why;                // as this says
    RtError error;              // of the last call that failed
    bool is_marked;             // its phases are
    RtPhase phase;              // that now is
    bool names_phase;           // a range of it is open for a profiler
    RtWork work;                // and what is done; RT_NUM_WORKS: nothing
    int first;                  // launch of those that are joined
    bool *joins;                // that are taken
    RtJoining joining;          // launches of the step on their way
    CUdeviceptr *at;            // room for the arguments of any kernel
    void **argument;            // where each of them is
    bool *wanted;               // kernels that are launched
    bool is_listing;            // which are, and none is yet
    bool is_ahead;              // of the libraries, which are not open yet
    const char *recent[RECENT]; // the last that were made, in a ring
    int64_t made;
    RtGauge *gauge; // of launches that are measured; NULL: none are
    char name[16], description[192];
    char *tuned; // what came of measuring
} Cuda;

static Cuda *cuda_of(RtDevice *d) {
    return (Cuda *)(void *)d; // device is its first field
}

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
static void tell_where(const Cuda *c) {
    const RtReplay *r = &c->replay[c->step];
    fprintf(stderr, "; in run %lld of step %s", (long long)r->runs,
            step_name(c->plan->step[c->step].kind));
    int64_t first = c->made > RECENT ? c->made - RECENT : 0;
    for (int64_t i = first; i < c->made; i++)
        fprintf(stderr, "%s%s", i == first ? ", which launched " : ", ",
                c->recent[i % RECENT]);
}

// Ends the program, but not by exit: threads that load may be writing to pinned
// memory, which the driver takes away there.
static void must(const Cuda *c, bool good) {
    const RtError *e = &c->error;
    if (good)
        return;
    fprintf(stderr, "%serror: %s: %s", rt_wiped(), c->name, e->text);
    if (c->step >= 0)
        tell_where(c);
    fputc('\n', stderr);
    rt_trace_abandon(c->device.profile, c->trainer->model, e->text);
    fflush(NULL);
    _Exit(e->status);
}

// What a step does must succeed, but while it is recorded, which may be refused
// in many ways: what is left of it is not asked for then.
static void step_must(Cuda *c, bool good) {
    if (!c->is_captured) {
        must(c, good);
    } else if (!good && !c->is_refused) {
        c->is_refused = true;
        c->why = c->error;
    }
}

static void refused(void *arg, bool marked, const RtError *why) {
    const Cuda *c = arg;
    const char *step = step_name(c->plan->step[c->step].kind);
    rt_warn("%s: step %s %s: %s", c->name, step,
            marked ? "is not divided in the table of times"
                   : "is launched one by one, which is slower",
            why->text);
}

// ---- memory ----

static size_t arena_bytes(const Cuda *c) {
    size_t bytes;
    if (__builtin_add_overflow(c->plan->arena_bytes, ALIGNMENT - 1, &bytes))
        return SIZE_MAX;
    return bytes / ALIGNMENT * ALIGNMENT;
}

static size_t needed(RtDevice *d) {
    Cuda *c = cuda_of(d);
    size_t bytes;
    if (__builtin_add_overflow(arena_bytes(c), rt_lane_bytes(&c->lane),
                               &bytes) ||
        __builtin_add_overflow(bytes, rt_calls_workspace(&c->calls), &bytes))
        return SIZE_MAX;
    return bytes;
}

static size_t available(RtDevice *d) {
    Cuda *c = cuda_of(d);
    size_t left = 0, total = 0;
    must(c, rt_driver_good(&c->cu, c->cu.memory_left(&left, &total), &c->error,
                           "find out how much memory is left"));
    return left;
}

static bool take_memory(Cuda *c, RtError *e) {
    const double mib = 1 << 20;
    size_t bytes = needed(&c->device);
    CUresult result = c->cu.memory_take(&c->arena, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return rt_fail(e, EXIT_MEMORY,
                       "there are no %.0f MiB of memory in one piece, of the "
                       "%.0f MiB that %s has; nvidia-smi shows what else takes "
                       "it",
                       (double)bytes / mib, (double)c->gpu.memory / mib,
                       c->gpu.name);
    return rt_driver_good(&c->cu, result, e, "take %zu bytes of memory",
                          bytes) &&
           rt_driver_good(&c->cu, c->cu.fill(c->arena, 0, bytes, c->stream), e,
                          "clear the memory");
}

static void reserve(RtDevice *d) {
    Cuda *c = cuda_of(d);
    must(c, take_memory(c, &c->error));
    CUdeviceptr slots = c->arena + arena_bytes(c);
    must(c, rt_lane_place(&c->lane, slots, &c->error));
    rt_calls_place(&c->calls, c->arena, slots + rt_lane_bytes(&c->lane));
    must(c, rt_calls_tell(&c->calls, &c->kernels, &c->error));
}

static void write_bytes(RtDevice *d, size_t to, const void *from,
                        size_t bytes) {
    Cuda *c = cuda_of(d);
    must(c,
         rt_staging_write(&c->staging, c->arena + to, from, bytes, &c->error));
}

static void read_bytes(RtDevice *d, void *to, size_t from, size_t bytes) {
    Cuda *c = cuda_of(d);
    must(c,
         rt_staging_read(&c->staging, to, c->arena + from, bytes, &c->error));
}

// ---- batches ----

static void *lend(RtDevice *d, size_t bytes) {
    Cuda *c = cuda_of(d);
    void *lent = NULL;
    CUresult result = c->cu.pinned_take(&lent, bytes, 0);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return NULL;
    must(c, rt_driver_good(&c->cu, result, &c->error,
                           "take %zu bytes of pinned memory", bytes));
    return lent;
}

static void take_back(RtDevice *d, void *lent) {
    Cuda *c = cuda_of(d);
    must(c, rt_lane_finish(&c->lane, &c->error));
    must(c, rt_driver_good(&c->cu, c->cu.pinned_free(lent), &c->error,
                           "give pinned memory back"));
}

static bool keep(RtDevice *d, const RtRows *rows, int64_t taken, RtError *e) {
    Cuda *c = cuda_of(d);
    return rt_lane_keep(&c->lane, &c->gather, &c->staging, rows, taken, e);
}

static int64_t feed(RtDevice *d, const RtPiece *piece, int count) {
    Cuda *c = cuda_of(d);
    must(c, rt_lane_give(&c->lane, c->arena, piece, count, &c->error));
    return c->lane.given;
}

static int64_t fed(RtDevice *d, int64_t least) {
    Cuda *c = cuda_of(d);
    must(c, rt_lane_done(&c->lane, least, &c->error));
    return c->lane.done;
}

// ---- metrics ----

static void ask(RtDevice *d, const size_t *from, int count) {
    Cuda *c = cuda_of(d);
    must(c, rt_notes_ask(&c->notes, c->arena, from, count, &c->error));
}

static bool tell(RtDevice *d, float *to, bool wait) {
    Cuda *c = cuda_of(d);
    bool there;
    must(c, rt_notes_tell(&c->notes, to, wait, &there, &c->error));
    return there;
}

static double peak(RtDevice *d, RtType type) {
    return rt_peak(&cuda_of(d)->gpu, type);
}

// ---- steps ----

static void mark(Cuda *c, RtPhase phase, RtWork work) {
    c->phase = phase;
    c->work = work;
    if (c->is_marked)
        step_must(c, rt_marks_add(&c->replay[c->step].marks, phase, work,
                                  c->stream, c->is_captured, &c->error));
}

static void name_phase(Cuda *c, RtPhase phase) {
    static const char *const name[] = {[RT_FORWARD] = "forward",
                                       [RT_BACKWARD] = "backward",
                                       [RT_UPDATE] = "update"};
    if (c->names_phase)
        rt_nvtx_pop(c->device.nvtx);
    c->names_phase = phase != RT_OTHER && !c->is_listing;
    if (c->names_phase)
        rt_nvtx_push(c->device.nvtx, "%s", name[phase]);
}

static void begin_phase(RtDevice *d, RtPhase phase) {
    Cuda *c = cuda_of(d);
    name_phase(c, phase);
    mark(c, phase, c->work);
}

// What comes is a kernel or a call for launches first .. last of the step.
static void begin_launch(Cuda *c, const char *name, int first, int last,
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
    must(c, rt_spans_begin(&c->spans, &span, c->stream, &c->error));
}

static void end_launch(Cuda *c) {
    must(c, rt_spans_end(&c->spans, c->stream, &c->error));
    rt_nvtx_pop(c->device.nvtx);
}

static bool make_step(void *arg, bool captured, bool marked, RtError *e) {
    Cuda *c = arg;
    c->is_captured = captured;
    c->is_refused = false;
    c->is_marked = marked;
    rt_joining_begin(&c->joining, c->plan, c->joins, c->step);
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

static void run(RtDevice *d, const RtStep *step) {
    Cuda *c = cuda_of(d);
    RtMaker maker = {&c->cu, c->stream, make_step, refused, c};
    c->step = (int)(step - c->plan->step);
    if (d->watch == NULL && c->spans.trace == NULL) {
        must(c, rt_replay_run(&c->replay[c->step], &maker, &c->error));
        return;
    }
    c->replay[c->step].runs++;
    must(c, make_step(c, false, false, &c->error));
}

static void note(Cuda *c, const char *launch) {
    c->recent[c->made++ % RECENT] = launch;
}

// A launch in phases waits for all of its blocks, so that there can be no more
// than there is room for at a time.  That may be fewer than the driver says, as
// where a tool has instrumented the kernel: half of them are tried then.
static CUresult launch_phases(const Cuda *c, int kernel, int grid,
                              void **argument) {
    const RtKernel *k = &c->plan->kernel[kernel];
    RtEntry *entry = &c->kernels.entry[kernel];
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
static CUresult launch_kernel(const Cuda *c, int kernel, int grid,
                              void **argument) {
    const RtKernel *k = &c->plan->kernel[kernel];
    const RtEntry *entry = &c->kernels.entry[kernel];
    if (k->phases > 1)
        return launch_phases(c, kernel, grid, argument);
    int blocks = k->fewer && grid > entry->resident ? entry->resident : grid;
    return c->cu.launch(entry->function, (unsigned)blocks, 1, 1,
                        (unsigned)k->threads, 1, 1, 0, c->stream, argument,
                        NULL);
}

// Before launch number `launch`, of a kernel (-1) or a call.
static void gauge(Cuda *c, int launch, int call) {
    if (c->gauge != NULL)
        must(c, rt_gauge_note(c->gauge, launch, call, &c->error));
}

static void leave_out(RtDevice *d) {
    if (d->watch != NULL)
        d->watch->absent = true;
}

// Whether a call does what a launch would.  Ahead of the libraries it does
// wherever one may, as by ir/library.def those for capability 8 and 9 offer.
static bool is_saved(const Cuda *c, int step, int launch) {
    if (!c->is_ahead)
        return rt_calls_save(&c->calls, step, launch);
    bool can = c->gpu.major == 8 || c->gpu.major == 9;
    for (int i = 0; can && i < c->plan->num_fusions; i++)
        if (c->plan->fusion[i].step == step &&
            c->plan->fusion[i].launch == launch)
            return true;
    return false;
}

// Makes a launch, or one of kernels that are joined when the last of them
// comes.
static void launch(RtDevice *d, int kernel, int grid, const size_t *arg) {
    Cuda *c = cuda_of(d);
    gauge(c, c->joining.launch, -1);
    if (is_saved(c, c->step, c->joining.launch)) {
        rt_joining_pass(&c->joining);
        leave_out(d);
        return;
    }
    int last = c->joining.launch;
    if (c->joining.num_args == 0)
        c->first = last;
    if (!rt_joining_add(&c->joining, &kernel, &grid, &arg)) {
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
static bool try_others(Cuda *c, int call, size_t a, size_t b, size_t out,
                       RtError *e) {
    bool good = false, can = c->gauge == NULL && !c->is_captured &&
                             c->cu.stream_sync(c->stream) == CUDA_SUCCESS;
    for (int i = 0; !good && can && rt_calls_other(&c->calls, call); i++) {
        if (i == 0)
            rt_warn("%s: %s; trying others", c->name, e->text);
        good = rt_calls_run(&c->calls, call, a, b, out, e);
    }
    return good;
}

// A library's code comes to the GPU when it first runs, and has no room of its
// own there: a library need not say that this is what was missing.
static void tell_memory(const Cuda *c, RtError *e) {
    enum { LITTLE = 64 << 20 };
    const RtError why = *e;
    size_t left = 0, total = 0;
    if (c->cu.memory_left(&left, &total) == CUDA_SUCCESS && left < LITTLE)
        rt_fail(e, EXIT_MEMORY,
                "%s; there are %.1f MiB of memory left, and code that runs for "
                "the first time needs some: a smaller batch leaves more",
                why.text, (double)left / (1 << 20));
}

static void contract(RtDevice *d, int call, size_t a, size_t b, size_t out) {
    Cuda *c = cuda_of(d);
    int number = c->joining.launch;
    gauge(c, number, call);
    rt_joining_pass(&c->joining);
    if (c->is_listing || c->is_refused)
        return;
    note(c, c->plan->call[call].layer);
    if (rt_calls_on_host(&c->calls, call))
        c->replay[c->step].one_by_one = true;
    begin_launch(c, rt_call_name(c->plan->call[call].kind), number, number,
                 true);
    bool good = rt_calls_run(&c->calls, call, a, b, out, &c->error) ||
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

// ---- waiting ----

static void sync_stream(RtDevice *d) {
    Cuda *c = cuda_of(d);
    must(c, rt_driver_good(&c->cu, c->cu.stream_sync(c->stream), &c->error,
                           "run what it was given"));
}

static void times(RtDevice *d, RtTimes *t) {
    Cuda *c = cuda_of(d);
    *t = (RtTimes){0};
    sync_stream(d);
    for (int i = 0; i < c->plan->num_steps; i++) {
        must(c, rt_marks_read(&c->replay[i].marks, &c->error));
        rt_marks_times(&c->replay[i].marks, t);
    }
}

static void set_trace(RtDevice *d, RtTrace *trace) {
    Cuda *c = cuda_of(d);
    sync_stream(d);
    must(c, rt_lane_finish(&c->lane, &c->error));
    if (c->spans.trace != NULL)
        must(c, rt_spans_read(&c->spans, &c->error));
    rt_spans_close(&c->spans);
    if (trace != NULL)
        must(c, rt_spans_open(&c->spans, &c->cu, c->stream, trace, &c->error));
}

// ---- tuning ----

// Kernels that no step launches as it was planned may be launched now.  Where
// blocks cannot wait those in phases are of joins, or the device had not
// opened.
static bool load_all_kernels(Cuda *c, RtError *e) {
    for (int i = 0; i < c->plan->num_kernels; i++)
        c->wanted[i] = c->gpu.cooperates || c->plan->kernel[i].phases <= 1;
    rt_kernels_close(&c->kernels);
    return rt_kernels_begin(&c->kernels, &c->gpu, c->trainer, c->plan,
                            c->wanted, &rt_system_files, e) &&
           rt_kernels_open(&c->kernels, c->wanted, NULL, e);
}

static bool tune(RtDevice *d, const RtStep *step, const char **said,
                 RtError *e) {
    Cuda *c = cuda_of(d);
    run(d, step); // one by one, which counts the launches
    sync_stream(d);
    const RtBench bench = {.gpu = &c->gpu,
                           .plan = c->plan,
                           .step = c->step,
                           .launches = c->joining.launch,
                           .maker = {&c->cu, c->stream, make_step, refused, c},
                           .calls = &c->calls,
                           .kernels = &c->kernels,
                           .joins = &c->joins,
                           .gauge = &c->gauge};
    bool good = load_all_kernels(c, e) && rt_bench_tune(&bench, &c->tuned, e);
    *said = c->tuned;
    return good;
}

// ---- opening ----

static const char *describe(RtDevice *d) {
    return cuda_of(d)->description;
}

static void write_description(Cuda *c) {
    const RtGpu *g = &c->gpu;
    snprintf(c->name, sizeof c->name, "cuda:%d", g->ordinal);
    snprintf(c->description, sizeof c->description,
             "%s, %d multiprocessors, %.0f MiB, compute capability %d.%d, "
             "driver for CUDA %d.%d",
             g->name, g->processors, (double)g->memory / (1 << 20), g->major,
             g->minor, g->driver / 1000, g->driver % 1000 / 10);
}

// Errors do not matter any more: after some of them every call fails.
static void close_cuda(RtDevice *d) {
    Cuda *c = cuda_of(d);
    if (c->gpu.context != NULL) {
        if (c->stream != NULL)
            c->cu.stream_sync(c->stream);
        for (int i = 0; c->replay != NULL && i < c->plan->num_steps; i++)
            rt_replay_close(&c->replay[i]);
        rt_calls_close(&c->calls);
        rt_staging_close(&c->staging);
        rt_lane_close(&c->lane);
        rt_spans_close(&c->spans);
        rt_notes_close(&c->notes);
        if (c->arena != 0)
            c->cu.memory_free(c->arena);
        if (c->stream != NULL)
            c->cu.stream_free(c->stream);
    }
    rt_kernels_close(&c->kernels);
    rt_gather_close(&c->gather);
    rt_gpu_close(&c->gpu);
    free(c->replay);
    free(c->joins);
    free(c->at);
    free(c->argument);
    free(c->wanted);
    free(c->tuned);
    free(c);
}

static bool open_replays(Cuda *c, RtError *e) {
    c->replay = calloc((size_t)c->plan->num_steps + 1, sizeof *c->replay);
    if (c->replay == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; i < c->plan->num_steps; i++) {
        RtStepKind kind = c->plan->step[i].kind;
        bool trains =
            kind == RT_TRAIN || kind == RT_GATHER || kind == RT_AVERAGE;
        int marks = trains && !c->plan->unmarked
                        ? c->plan->step[i].num_launches + BESIDE_LAUNCHES
                        : 0;
        if (!rt_replay_open(&c->replay[i], &c->cu, marks, e))
            return false;
        c->replay[i].one_by_one = c->plan->one_by_one;
    }
    return true;
}

static bool take_arguments(Cuda *c, RtError *e) {
    int most = 0;
    for (int i = 0; i < c->plan->num_kernels; i++)
        most = c->plan->kernel[i].args > most ? c->plan->kernel[i].args : most;
    c->at = calloc((size_t)most + 1, sizeof *c->at);
    c->argument = calloc((size_t)most + 1, sizeof *c->argument);
    if (c->at == NULL || c->argument == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; i < most; i++)
        c->argument[i] = &c->at[i];
    return true;
}

static bool take_lists(Cuda *c, RtError *e) {
    c->joins = calloc((size_t)c->plan->num_joins + 1, sizeof *c->joins);
    c->wanted = calloc((size_t)c->plan->num_kernels + 1, sizeof *c->wanted);
    return (c->joins != NULL && c->wanted != NULL) ||
           rt_fail(e, EXIT_MEMORY, "out of memory");
}

// Blocks of a join wait for one another, which not all GPUs have them do.
static void leave_joins(Cuda *c) {
    if (c->gpu.cooperates)
        return;
    c->unjoined = *c->plan;
    c->unjoined.num_joins = 0;
    c->plan = &c->unjoined;
}

// Until launches are measured, all that may be joined are.
static bool choose_joins(Cuda *c, RtError *e) {
    const RtPlan *p = c->plan;
    bool *fused = calloc((size_t)p->num_fusions + 1, sizeof *fused);
    if (fused == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; i < p->num_fusions; i++)
        fused[i] = is_saved(c, p->fusion[i].step, p->fusion[i].launch);
    rt_joins_take(p, fused, c->calls.is_tuned ? c->calls.tuning.apart : NULL,
                  c->joins);
    free(fused);
    return true;
}

// Goes through all steps to see which kernels they launch.
static bool list_kernels(Cuda *c, RtError *e) {
    memset(c->wanted, false, (size_t)c->plan->num_kernels);
    if (!choose_joins(c, e))
        return false;
    c->is_listing = true;
    for (c->step = 0; c->step < c->plan->num_steps; c->step++) {
        rt_joining_begin(&c->joining, c->plan, c->joins, c->step);
        c->plan->step[c->step].run(&c->device);
    }
    c->is_listing = false;
    c->step = -1;
    c->phase = RT_OTHER;
    return true;
}

static bool begin_kernels(Cuda *c, RtError *e) {
    c->is_ahead = true;
    bool good = list_kernels(c, e);
    c->is_ahead = false;
    return good && rt_kernels_begin(&c->kernels, &c->gpu, c->trainer, c->plan,
                                    c->wanted, &rt_system_files, e);
}

// Images are likely to be kept unless they are not to be.
static bool begin_gather(Cuda *c, const RtOptions *o, RtError *e) {
    const RtInput *images = rt_images_of(c->plan);
    rt_gather_open(&c->gather, &c->gpu, c->trainer);
    if (images == NULL || (o != NULL && strcmp(o->resident, "no") == 0))
        return true;
    size_t row = rt_input_bytes(images) / (size_t)images->dim[0];
    return rt_gather_begin(&c->gather, row, e);
}

static bool open_stream(Cuda *c, RtError *e) {
    return rt_driver_good(
               &c->cu, c->cu.stream_new(&c->stream, CU_STREAM_NON_BLOCKING, 0),
               e, "make a stream") &&
           rt_staging_open(&c->staging, &c->cu, c->stream, e) &&
           rt_lane_open(&c->lane, &c->cu, c->stream, c->plan, &c->spans, e) &&
           rt_notes_open(&c->notes, &c->cu, c->stream, e);
}

// Kernels are compiled while the context is made and calls are planned, and
// what plans them is opened while the context is made.
static bool open_gpu(Cuda *c, int ordinal, const RtOptions *o, RtLaps *laps,
                     RtError *e) {
    RtAhead ahead;
    if (!rt_driver_open(&c->cu, e) || !rt_gpu_find(&c->gpu, &c->cu, ordinal, e))
        return false;
    leave_joins(c);
    if (!take_lists(c, e) || !take_arguments(c, e))
        return false;
    rt_lap(laps, RT_START_DEVICE);
    if (!begin_kernels(c, e) || !begin_gather(c, o, e))
        return false;
    rt_lap(laps, RT_START_COMPILING);
    rt_ahead_begin(&ahead, &c->gpu, c->plan);
    bool good =
        rt_gpu_open(&c->gpu, e) && open_stream(c, e) && open_replays(c, e);
    rt_lap(laps, RT_START_CONTEXT);
    rt_ahead_end(&ahead);
    return good;
}

static bool open_all(Cuda *c, int ordinal, const RtOptions *o, RtLaps *laps,
                     RtError *e) {
    return open_gpu(c, ordinal, o, laps, e) &&
           rt_calls_open(&c->calls, &c->gpu, c->plan, c->stream, &c->staging, o,
                         laps, e) &&
           list_kernels(c, e) &&
           rt_kernels_open(&c->kernels, c->wanted, laps, e);
}

RtDevice *rt_cuda_open(const RtTrainer *t, const RtPlan *plan, int ordinal,
                       const RtOptions *o, RtLaps *laps, RtError *e) {
    Cuda *c = calloc(1, sizeof *c);
    if (c == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    c->device = (RtDevice){
        .name = c->name,
        .describe = describe,
        .available = available,
        .needed = needed,
        .reserve = reserve,
        .write = write_bytes,
        .read = read_bytes,
        .lend = lend,
        .take_back = take_back,
        .keep = keep,
        .feed = feed,
        .fed = fed,
        .ask = ask,
        .tell = tell,
        .run = run,
        .launch = launch,
        .contract = contract,
        .phase = begin_phase,
        .sync = sync_stream,
        .tune = tune,
        .times = times,
        .peak = peak,
        .trace = set_trace,
        .replays = true,
        .close = close_cuda,
    };
    c->trainer = t;
    c->plan = plan;
    c->phase = RT_OTHER;
    c->work = RT_NUM_WORKS;
    c->step = -1;
    if (open_all(c, ordinal, o, laps, e)) {
        write_description(c);
        return &c->device;
    }
    close_cuda(&c->device);
    return NULL;
}
