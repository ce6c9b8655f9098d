// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CUDA device: a GPU, a stream for steps and one for copies, and one allocation
// for the arena, the slots of batches and the libraries' workspace.  Work is
// queued and not waited for.

#include "runtime/cuda/tune/tune.h"

#include "base/round_up.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Timing events of a step beside those of its launches: phases and ends.
enum { ALIGNMENT = 256, EVENTS_BESIDE_LAUNCHES = 8 };

// ---- memory ----

static size_t arena_bytes(const RtCuda *c) {
    size_t bytes;
    if (__builtin_add_overflow(
            rt_lockstep_arena_bytes(c->plan, c->device.shards), ALIGNMENT - 1,
            &bytes))
        return SIZE_MAX;
    return bytes / ALIGNMENT * ALIGNMENT;
}

// The arena and what is behind it.
static size_t all_bytes(RtCuda *c) {
    size_t bytes;
    if (__builtin_add_overflow(arena_bytes(c), rt_copy_stream_bytes(&c->copies),
                               &bytes) ||
        __builtin_add_overflow(bytes, rt_tiles_workspace(&c->tiles), &bytes) ||
        __builtin_add_overflow(bytes, rt_library_calls_workspace(&c->calls),
                               &bytes))
        return SIZE_MAX;
    return bytes;
}

// The same in units of sparse memory, and its parts that are elsewhere.
static size_t sparse_bytes(RtCuda *c, RtRange absent[2], size_t *elsewhere) {
    size_t unit = 1, bytes = all_bytes(c);
    RtError e;
    if (!rt_sparse_unit(&c->gpu, &unit, &e))
        rt_end(e.status, "%s", e.text);
    *elsewhere = rt_device_absent(&c->device, unit, absent);
    return bytes > SIZE_MAX - unit ? SIZE_MAX : align_up(bytes, unit);
}

static size_t needed(RtDevice *d) {
    RtCuda *c = rt_cuda_of(d);
    RtRange absent[2];
    size_t elsewhere;
    if (d->elsewhere == NULL)
        return all_bytes(c);
    size_t bytes = sparse_bytes(c, absent, &elsewhere);
    return bytes - elsewhere;
}

static size_t available(RtDevice *d) {
    RtCuda *c = rt_cuda_of(d);
    size_t left = 0, total = 0;
    rt_cuda_check(c, rt_driver_good(&c->cu, c->cu.memory_info(&left, &total),
                                    &c->error, "query free memory"));
    return left;
}

static bool report_no_memory(RtCuda *c, RtError *e) {
    const double mib = 1 << 20;
    return rt_fail(e, EXIT_MEMORY,
                   "cannot allocate %.0f MiB in one piece of the %.0f MiB "
                   "of %s; nvidia-smi lists other users of its memory",
                   (double)needed(&c->device) / mib,
                   (double)c->gpu.memory / mib, c->gpu.name);
}

static bool allocate_sparse(RtCuda *c, RtError *e) {
    RtRange absent[2];
    size_t elsewhere, bytes = sparse_bytes(c, absent, &elsewhere);
    bool left;
    if (!rt_sparse_open(&c->sparse, &c->gpu, bytes, absent, c->stream, &left,
                        e))
        return left ? false : report_no_memory(c, e);
    c->arena = c->sparse.at;
    return true;
}

static bool allocate(RtCuda *c, RtError *e) {
    size_t bytes = all_bytes(c);
    if (c->device.elsewhere != NULL)
        return allocate_sparse(c, e);
    CUresult result = c->cu.memory_alloc(&c->arena, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return report_no_memory(c, e);
    return rt_driver_good(&c->cu, result, e, "allocate %zu bytes of memory",
                          bytes) &&
           rt_driver_good(&c->cu, c->cu.fill(c->arena, 0, bytes, c->stream), e,
                          "clear the memory");
}

// Graphs of the segments of steps that run in lockstep, for each shard.
static bool open_segments(RtCuda *c, RtError *e) {
    const RtPlan *p = c->plan;
    size_t count = 0, at = 0;
    for (int i = 0; i < p->num_steps; i++)
        count += (size_t)rt_lockstep_segments(p, &p->step[i]) *
                 (size_t)c->device.shards;
    c->segment = calloc((size_t)p->num_steps + 1, sizeof *c->segment);
    c->segment_graph = calloc(count + 1, sizeof *c->segment_graph);
    if (c->segment == NULL || c->segment_graph == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    c->num_segments = count;
    for (int i = 0; i < p->num_steps; i++) {
        c->segment[i] = &c->segment_graph[at];
        at += (size_t)rt_lockstep_segments(p, &p->step[i]) *
              (size_t)c->device.shards;
    }
    for (size_t i = 0; i < count; i++) {
        if (!rt_step_graph_open(&c->segment_graph[i], &c->cu, 0, e))
            return false;
        c->segment_graph[i].one_by_one = p->one_by_one;
    }
    return true;
}

static void reserve(RtDevice *d) {
    RtCuda *c = rt_cuda_of(d);
    rt_cuda_check(c, allocate(c, &c->error));
    if (d->shards > 0)
        rt_cuda_check(c, open_segments(c, &c->error));
    CUdeviceptr slots = c->arena + arena_bytes(c);
    rt_cuda_check(c, rt_copy_stream_bind(&c->copies, slots, &c->error));
    CUdeviceptr partial = slots + rt_copy_stream_bytes(&c->copies);
    rt_tiles_bind(&c->tiles, partial);
    rt_library_calls_bind(&c->calls, c->arena,
                          partial + rt_tiles_workspace(&c->tiles));
    rt_cuda_check(
        c, rt_library_calls_set_flags(&c->calls, &c->kernels, &c->error));
}

static void write_bytes(RtDevice *d, size_t to, const void *from,
                        size_t bytes) {
    RtCuda *c = rt_cuda_of(d);
    rt_step_group_flush(c);
    rt_cuda_check(c, rt_staging_write(&c->staging, c->arena + to, from, bytes,
                                      &c->error));
}

static void read_bytes(RtDevice *d, void *to, size_t from, size_t bytes) {
    RtCuda *c = rt_cuda_of(d);
    rt_step_group_flush(c);
    rt_cuda_check(
        c, rt_staging_read(&c->staging, to, c->arena + from, bytes, &c->error));
}

// ---- batches ----

static void *acquire_staging(RtDevice *d, size_t bytes) {
    RtCuda *c = rt_cuda_of(d);
    void *buffer = NULL;
    CUresult result = c->cu.pinned_alloc(&buffer, bytes, 0);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return NULL;
    rt_cuda_check(c,
                  rt_driver_good(&c->cu, result, &c->error,
                                 "allocate %zu bytes of pinned memory", bytes));
    return buffer;
}

static void release_staging(RtDevice *d, void *buffer) {
    RtCuda *c = rt_cuda_of(d);
    rt_cuda_check(c, rt_copy_stream_sync(&c->copies, &c->error));
    rt_cuda_check(c, rt_driver_good(&c->cu, c->cu.pinned_free(buffer),
                                    &c->error, "free pinned memory"));
}

static bool make_resident(RtDevice *d, const RtRows *rows, int64_t taken,
                          RtError *e) {
    RtCuda *c = rt_cuda_of(d);
    return rt_copy_stream_add_resident(&c->copies, &c->builtins, &c->staging,
                                       rows, taken, e);
}

static int64_t completed_batches(RtDevice *d, int64_t least) {
    RtCuda *c = rt_cuda_of(d);
    rt_cuda_check(c, rt_copy_stream_completed(&c->copies, least, &c->error));
    return c->copies.completed;
}

static bool decode_jpeg(RtDevice *d, const RtJpegFile *file, bool *declined,
                        RtError *e) {
    return rt_nvjpeg_decode(rt_cuda_of(d)->nvjpeg, file, declined, e);
}

// ---- metrics ----

static void request_readback(RtDevice *d, const size_t *from, int count) {
    RtCuda *c = rt_cuda_of(d);
    rt_step_group_flush(c);
    rt_cuda_check(c, rt_async_readback_request(&c->readback, c->arena, from,
                                               count, &c->error));
}

static bool poll_readback(RtDevice *d, float *to, bool wait) {
    RtCuda *c = rt_cuda_of(d);
    bool arrived;
    rt_cuda_check(
        c, rt_async_readback_poll(&c->readback, to, wait, &arrived, &c->error));
    return arrived;
}

static double peak(RtDevice *d, RtType type) {
    return rt_gpu_peak(&rt_cuda_of(d)->gpu, type);
}

// ---- waiting ----

static void sync_stream(RtDevice *d) {
    RtCuda *c = rt_cuda_of(d);
    rt_step_group_flush(c);
    rt_cuda_check(c, rt_driver_good(&c->cu, c->cu.stream_sync(c->stream),
                                    &c->error, "finish its queued work"));
}

static void times(RtDevice *d, RtTimes *t) {
    RtCuda *c = rt_cuda_of(d);
    *t = (RtTimes){0};
    sync_stream(d);
    for (int i = 0; i < 2 * c->plan->num_steps; i++) {
        rt_cuda_check(c, rt_timing_events_read(&c->graph[i].events, &c->error));
        rt_timing_events_times(&c->graph[i].events, t);
    }
}

static void set_trace(RtDevice *d, RtTrace *trace) {
    RtCuda *c = rt_cuda_of(d);
    sync_stream(d);
    rt_cuda_check(c, rt_copy_stream_sync(&c->copies, &c->error));
    if (c->spans.trace != NULL)
        rt_cuda_check(c, rt_trace_spans_read(&c->spans, &c->error));
    rt_trace_spans_close(&c->spans);
    if (trace != NULL)
        rt_cuda_check(c, rt_trace_spans_open(&c->spans, &c->cu, c->stream,
                                             trace, &c->error));
}

// ---- opening ----

static const char *describe(RtDevice *d) {
    return rt_cuda_of(d)->description;
}

static void write_description(RtCuda *c) {
    const RtGpu *g = &c->gpu;
    snprintf(c->name, sizeof c->name, "cuda:%d", g->ordinal);
    snprintf(c->description, sizeof c->description,
             "%s, %d multiprocessors, %.0f MiB, compute capability %d.%d, "
             "driver for CUDA %d.%d",
             g->name, g->processors, (double)g->memory / (1 << 20), g->major,
             g->minor, g->driver / 1000, g->driver % 1000 / 10);
}

// Ignores errors: after some of them every call fails.
static void close_cuda(RtDevice *d) {
    RtCuda *c = rt_cuda_of(d);
    if (c->gpu.context != NULL) {
        if (c->stream != NULL)
            c->cu.stream_sync(c->stream);
        for (int i = 0; c->graph != NULL && i < 2 * c->plan->num_steps; i++)
            rt_step_graph_close(&c->graph[i]);
        rt_step_group_close(c);
        for (size_t i = 0; i < c->num_segments; i++)
            rt_step_graph_close(&c->segment_graph[i]);
        rt_library_calls_close(&c->calls);
        rt_nvjpeg_close(c->nvjpeg);
        rt_staging_close(&c->staging);
        rt_forks_close(&c->forks);
        rt_copy_stream_close(&c->copies);
        rt_trace_spans_close(&c->spans);
        rt_async_readback_close(&c->readback);
        if (c->arena != 0 && c->sparse.at == 0)
            c->cu.memory_free(c->arena);
        rt_sparse_close(&c->sparse);
        if (c->stream != NULL)
            c->cu.stream_free(c->stream);
    }
    rt_kernels_close(&c->kernels);
    rt_tiles_close(&c->tiles);
    rt_builtins_close(&c->builtins);
    rt_gpu_close(&c->gpu);
    free(c->graph);
    free(c->segment);
    free(c->segment_graph);
    free(c->merged);
    free(c->at);
    free(c->argument);
    free(c->needed);
    free(c->tiled_call);
    rt_chosen_free(&c->chosen);
    free(c->tuning_path);
    free(c->report);
    free(c);
}

static bool open_graph(RtCuda *c, RtStepGraph *g, const RtStep *step,
                       RtError *e) {
    bool trains = (step->kind >= RT_TRAIN && step->kind <= RT_ACCUMULATE) ||
                  step->kind == RT_AVERAGE;
    int events = trains && !c->plan->unmarked
                     ? step->num_launches + EVENTS_BESIDE_LAUNCHES
                     : 0;
    if (!rt_step_graph_open(g, &c->cu, events, e))
        return false;
    g->one_by_one = c->plan->one_by_one;
    return true;
}

// Steps with buckets may have hooks.
static bool open_graphs(RtCuda *c, RtError *e) {
    int steps = c->plan->num_steps;
    c->graph = calloc(2 * (size_t)steps + 1, sizeof *c->graph);
    if (c->graph == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    c->running = c->graph;
    for (int i = 0; i < 2 * steps; i++) {
        const RtStep *step = &c->plan->step[i % steps];
        if ((i < steps || step->num_buckets > 0) &&
            !open_graph(c, &c->graph[i], step, e))
            return false;
    }
    return true;
}

// A tile kernel has the arguments of a call, of prologues and of a kernel, and
// a workspace.
static bool allocate_arguments(RtCuda *c, RtError *e) {
    enum { ARGS_OF_CALL = 3, WORKSPACE = 1 };
    int most = 0, of_prologues = 0;
    for (int i = 0; i < c->plan->num_kernels; i++)
        most = c->plan->kernel[i].args > most ? c->plan->kernel[i].args : most;
    for (int i = 0; i < c->plan->num_tiles; i++)
        if (c->plan->tile[i].args > of_prologues)
            of_prologues = c->plan->tile[i].args;
    most += ARGS_OF_CALL + of_prologues + WORKSPACE;
    c->at = calloc((size_t)most + 1, sizeof *c->at);
    c->argument = calloc((size_t)most + 1, sizeof *c->argument);
    if (c->at == NULL || c->argument == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; i < most; i++)
        c->argument[i] = &c->at[i];
    return true;
}

static bool allocate_lists(RtCuda *c, RtError *e) {
    c->merged = calloc((size_t)c->plan->num_merged + 1, sizeof *c->merged);
    c->needed = calloc((size_t)c->plan->num_kernels + 1, sizeof *c->needed);
    return (c->merged != NULL && c->needed != NULL) ||
           rt_fail(e, EXIT_MEMORY, "out of memory");
}

// Blocks of a merged launch wait for one another, which needs a cooperative
// one.
static void drop_merges(RtCuda *c) {
    if (c->gpu.cooperates)
        return;
    c->unmerged_plan = *c->plan;
    c->unmerged_plan.num_merged = 0;
    c->plan = &c->unmerged_plan;
}

// Without autotuning, merges all launches that can be.
static bool choose_merges(RtCuda *c, RtError *e) {
    const RtPlan *p = c->plan;
    bool *fused = calloc((size_t)p->num_fusions + 1, sizeof *fused);
    if (fused == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; i < p->num_fusions; i++)
        fused[i] = rt_cuda_is_fused(c, p->fusion[i].step, p->fusion[i].launch);
    rt_merges_choose(p, &c->tiles, fused,
                     c->is_chosen ? c->chosen.unmerged : NULL, c->merged);
    free(fused);
    return true;
}

// Runs the functions of all steps without launching, to list their kernels.
static bool list_kernels(RtCuda *c, RtError *e) {
    memset(c->needed, false, (size_t)c->plan->num_kernels);
    if (!choose_merges(c, e))
        return false;
    c->is_listing = true;
    for (c->step = 0; c->step < c->plan->num_steps; c->step++) {
        rt_merging_begin(&c->merging, c->plan, c->merged, c->step);
        c->plan->step[c->step].run(&c->device);
    }
    c->is_listing = false;
    c->step = -1;
    c->phase = RT_OTHER;
    return true;
}

static bool start_kernels(RtCuda *c, RtError *e) {
    c->is_guessing = true;
    bool good = list_kernels(c, e);
    c->is_guessing = false;
    return good && rt_kernels_start(&c->kernels, &c->gpu, c->trainer, c->plan,
                                    c->needed, &rt_private_files, e);
}

// Images are likely to be resident unless the options forbid it.
static bool start_builtins(RtCuda *c, const RtOptions *o, RtError *e) {
    const RtInput *images = rt_images_of(c->plan);
    rt_builtins_open(&c->builtins, &c->gpu, c->trainer);
    if (c->plan->partial_bytes > 0 &&
        !rt_builtin_start(&c->builtins, RT_SUM_RANGES, e))
        return false;
    if (images == NULL || (o != NULL && strcmp(o->resident, "no") == 0))
        return true;
    size_t row = rt_input_bytes(images) / (size_t)images->dim[0];
    return rt_builtin_start(&c->builtins, rt_gather_of(row), e);
}

static bool open_stream(RtCuda *c, RtError *e) {
    return rt_driver_good(
               &c->cu,
               c->cu.stream_create(&c->stream, CU_STREAM_NON_BLOCKING, 0), e,
               "create a stream") &&
           rt_staging_open(&c->staging, &c->cu, c->stream, e) &&
           rt_copy_stream_open(&c->copies, &c->cu, c->stream, c->plan,
                               c->group.steps, &c->spans, e) &&
           rt_forks_open(&c->forks, &c->cu, c->plan, e) &&
           rt_async_readback_open(&c->readback, &c->cu, c->stream, e);
}

// Marks the calls that usable tile kernels compute, for which no library is
// needed.
static bool mark_tiled_calls(RtCuda *c, RtError *e) {
    int count = c->plan->num_calls;
    if (c->tiles.count == 0)
        return true;
    if (c->tiled_call == NULL) {
        c->untiled_plan = *c->plan;
        c->tiled_call = calloc((size_t)count + 1, sizeof *c->tiled_call);
    }
    if (c->tiled_call == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int i = 0; i < count; i++) {
        c->tiled_call[i] = c->untiled_plan.call[i];
        if (rt_tiles_find(&c->tiles, i) != NULL)
            c->tiled_call[i].kind = RT_TILED;
    }
    c->tiled_plan = c->untiled_plan;
    c->tiled_plan.call = c->tiled_call;
    c->plan = &c->tiled_plan;
    return true;
}

static bool open_tiles(RtCuda *c, const RtOptions *o, RtError *e) {
    return rt_tiles_open(&c->tiles, &c->gpu, c->trainer, c->plan, e) &&
           rt_tuning_tiles(c, o, e) && mark_tiled_calls(c, e);
}

// Kernels compile while the context is made and calls are planned; libraries
// open while the context is made.
static bool open_gpu(RtCuda *c, int ordinal, const RtOptions *o, RtLaps *laps,
                     RtError *e) {
    RtPreload preload;
    if (!rt_driver_open(&c->cu, e) || !rt_gpu_find(&c->gpu, &c->cu, ordinal, e))
        return false;
    drop_merges(c);
    c->group.steps = rt_step_group_of(c->plan);
    // Kernels of another text need not wait for the one before them.
    c->is_programmatic = c->gpu.major >= 9 && !c->plan->serialized &&
                         (o == NULL || o->load_cuda == NULL);
    if (!allocate_lists(c, e) || !allocate_arguments(c, e))
        return false;
    rt_lap(laps, RT_START_DEVICE);
    if (!open_tiles(c, o, e) || !start_kernels(c, e) ||
        !start_builtins(c, o, e))
        return false;
    rt_lap(laps, RT_START_COMPILING);
    rt_preload_start(&preload, &c->gpu, c->plan);
    bool good =
        rt_gpu_open(&c->gpu, e) && open_stream(c, e) && open_graphs(c, e);
    rt_lap(laps, RT_START_CONTEXT);
    rt_preload_wait(&preload);
    return good;
}

// A file that the options name must fit.
static bool plan_calls(RtCuda *c, const RtOptions *o, RtError *e) {
    bool as_chosen;
    return rt_tuning_load(c, o, e) &&
           rt_library_calls_plan(&c->calls, c->is_chosen ? &c->chosen : NULL,
                                 &as_chosen, e) &&
           (as_chosen || o == NULL || o->tuning == NULL ||
            rt_fail(e, EXIT_DATA,
                    "%s has plans that the libraries do not offer: measure "
                    "again with --tune",
                    o->tuning));
}

static bool open_calls(RtCuda *c, const RtOptions *o, RtLaps *laps,
                       RtError *e) {
    bool opened = rt_library_calls_open(&c->calls, &c->gpu, c->plan, c->stream,
                                        c->forks.stream, &c->staging, e);
    rt_lap(laps, RT_START_LIBRARIES);
    bool planned = opened && plan_calls(c, o, e);
    rt_lap(laps, RT_START_PLANS);
    return planned;
}

static bool load_sum(RtCuda *c, RtError *e) {
    if (c->plan->partial_bytes > 0)
        c->sum = rt_builtin_load(&c->builtins, RT_SUM_RANGES, e);
    return c->plan->partial_bytes == 0 || c->sum != NULL;
}

static bool open_nvjpeg(RtCuda *c, const RtOptions *o, RtError *e) {
    if (o == NULL || strcmp(o->decode, "nvjpeg") != 0)
        return true;
    c->nvjpeg = rt_nvjpeg_open(&c->gpu, e);
    c->device.decode_jpeg = decode_jpeg;
    return c->nvjpeg != NULL;
}

// Autotuning measures all configurations.
static bool load_tiles(RtCuda *c, const RtOptions *o, RtError *e) {
    rt_tiles_load(&c->tiles, o != NULL && o->tune);
    return mark_tiled_calls(c, e);
}

static bool open_all(RtCuda *c, int ordinal, const RtOptions *o, RtLaps *laps,
                     RtError *e) {
    return open_gpu(c, ordinal, o, laps, e) && load_tiles(c, o, e) &&
           open_calls(c, o, laps, e) && open_nvjpeg(c, o, e) &&
           list_kernels(c, e) &&
           rt_kernels_load(&c->kernels, c->needed, laps, e) && load_sum(c, e);
}

RtDevice *rt_cuda_open(const RtTrainer *t, const RtPlan *plan, int ordinal,
                       const RtOptions *o, RtLaps *laps, RtError *e) {
    RtCuda *c = calloc(1, sizeof *c);
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
        .sum = rt_cuda_sum,
        .acquire_staging = acquire_staging,
        .release_staging = release_staging,
        .make_resident = make_resident,
        .submit_batch = rt_cuda_submit_batch,
        .completed_batches = completed_batches,
        .request_readback = request_readback,
        .poll_readback = poll_readback,
        .run = rt_cuda_run,
        .launch = rt_cuda_launch,
        .library_call = rt_cuda_library_call,
        .phase = rt_cuda_phase,
        .sync = sync_stream,
        .tune = rt_tune,
        .times = times,
        .peak = peak,
        .trace = set_trace,
        .replays = true,
        .queued_launches = rt_cuda_queued_launches,
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
