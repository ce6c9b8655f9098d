// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Input pipeline: loaders and feeders of a run.

#include "runtime/host/host.h"
#include "runtime/session/session.h"

#include <string.h>

// Batches from memory are copied quickly.  Image files are decoded, for which a
// GPU leaves all cores.
static int loader_threads(const RtRun *run, const RtSplit *split) {
    const RtOptions *o = run->options;
    if (o->loaders > 0)
        return o->loaders;
    int cores = o->threads > 0 ? o->threads : rt_team_largest();
    if (rt_split_decodes(split) && strcmp(run->plan->device, "host") != 0)
        return cores;
    return cores < 8 ? 1 : cores > 32 ? 8 : cores / 4;
}

static RtLoaderConfig plan_loading(const RtRun *run, const RtSplit *split) {
    const RtTrainer *t = run->trainer;
    return (RtLoaderConfig){
        .split = split,
        .batch = t->batch,
        .epoch_batches = (split->count - 1) / t->batch + 1,
        .last = INT64_MAX,
        .image = t->image.type,
        .label = t->label.type,
        .array = t->array,
        .num_arrays = t->num_arrays,
        .threads = loader_threads(run, split),
        .device = run->device,
        .no_images = run->resident,
        .longest_wait = run->options->stall_timeout,
    };
}

// Bytes of host memory for a loader: its batches, unless they are in staging
// buffers, and each thread's share for decoding.
static size_t loader_bytes(const RtRun *run, const RtSplit *split) {
    RtLoaderConfig plan = plan_loading(run, split);
    size_t bytes = 0;
    if (run->device == NULL || run->device->acquire_staging == NULL)
        bytes = rt_loader_bytes(&plan);
    size_t each = RT_LOADER_PRIVATE_BYTES;
    if (run->device != NULL && run->device->decode_jpeg != NULL)
        each += RT_DEVICE_LOADER_BYTES;
    if (run->data->decode_memory != NULL &&
        __builtin_add_overflow(bytes, (size_t)plan.threads * each, &bytes))
        return SIZE_MAX;
    return bytes;
}

size_t rt_loading_bytes(const RtRun *run) {
    const RtOptions *o = run->options;
    const RtData *d = run->data;
    size_t bytes =
        d->decode_memory != NULL ? rt_decode_memory_bytes(d->decode_memory) : 0;
    if ((!o->eval_only &&
         __builtin_add_overflow(bytes, loader_bytes(run, &d->train), &bytes)) ||
        (!o->load_only &&
         __builtin_add_overflow(bytes, loader_bytes(run, rt_eval_split(run)),
                                &bytes)))
        return SIZE_MAX;
    return bytes;
}

static bool open_feeder(const RtSession *s, RtFeeder *f,
                        const RtLoaderConfig *plan, RtError *e) {
    RtLoader *loader = rt_loader_open(plan, e);
    rt_feeder_open(f, s->plan, s->device, loader);
    if (s->run->resident)
        f->resident = plan->split == &s->run->data->test &&
                              rt_eval_set(s->run) == RT_ON_TEST
                          ? 2
                          : 1;
    return loader != NULL;
}

bool rt_session_open_eval(RtSession *s, RtError *e) {
    RtLoaderConfig plan = plan_loading(s->run, rt_eval_split(s->run));
    plan.shards = rt_world_size(s->run->world);
    plan.own_shards = 1;
    plan.first_shard = rt_world_rank(s->run->world);
    return open_feeder(s, &s->eval, &plan, e);
}

RtLoaderConfig rt_session_plan_train(const RtRun *run, const RtProgress *p) {
    const RtTrainer *t = run->trainer;
    RtLoaderConfig plan = plan_loading(run, &run->data->train);
    int64_t batches = rt_epoch_batches(t, p, run->data->train.count);
    plan.epoch_batches = batches;
    plan.first = rt_first_batch(t, p, batches, p->step);
    plan.last = rt_first_batch(t, p, batches, p->steps);
    plan.shards = t->shards > 0 ? t->accumulate : 0;
    plan.own_shards = plan.shards / rt_world_size(run->world);
    plan.first_shard = plan.own_shards * rt_world_rank(run->world);
    if (t->shards > 0 && rt_lockstep_needed(run->plan))
        plan.rounds = t->accumulate / t->shards;
    plan.shuffle = true;
    plan.seed = (uint64_t)p->seed;
    plan.trace = run->trace;
    return plan;
}

// A batch that is repeated is the first of all shards.
bool rt_session_open_train(RtSession *s, RtError *e) {
    RtLoaderConfig plan = rt_session_plan_train(s->run, &s->at);
    if (s->run->options->repeat_batch)
        plan.first_shard = 0;
    if (!open_feeder(s, &s->train, &plan, e))
        return false;
    s->train.repeats = s->run->options->repeat_batch;
    return true;
}

void rt_session_close_train(RtSession *s) {
    if (!rt_feeder_close(&s->train))
        s->loader_stuck = true;
}

static bool collect_batches(RtSession *s, int64_t count, RtError *e) {
    RtSubmitted done;
    for (int64_t i = 0; i < count; i++) {
        if (!rt_feeder_submit(&s->train, RT_COLLECT, 0, false, &done, e))
            return false;
        rt_step_run(s->plan, s->device, RT_COLLECT, 0);
    }
    return true;
}

bool rt_session_collect(RtSession *s, RtError *e) {
    RtSplit first = s->run->data->train;
    if (rt_step_find(s->plan, RT_COLLECT, 0) == NULL)
        return true;
    if (s->run->trainer->collect_samples < first.count)
        first.count = s->run->trainer->collect_samples;
    RtLoaderConfig plan = plan_loading(s->run, &first);
    plan.last = plan.epoch_batches;
    bool good =
        open_feeder(s, &s->train, &plan, e) && collect_batches(s, plan.last, e);
    rt_session_close_train(s);
    return good;
}
