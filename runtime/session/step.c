// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Step: the start of a run, and each of its steps.

#include "runtime/session/session.h"

// Averages the weights if that is due.
static void average(const RtSession *s) {
    if (!rt_time_averages(s->run->trainer, &s->at))
        return;
    s->device->phase(s->device, RT_UPDATE);
    rt_step_run(s->plan, s->device, RT_AVERAGE, 0);
    s->device->phase(s->device, RT_OTHER);
}

void rt_session_average_early(const RtSession *s) {
    RtTime from = s->run->trainer->average_from;
    if (s->at.step < rt_time_first(from, &s->at))
        rt_step_run(s->plan, s->device, RT_AVERAGE, 0);
}

// Replaces initialized weights by those of a file.
static bool load_weights(RtSession *s, RtError *e) {
    const RtOptions *o = s->run->options;
    if (o->init == NULL)
        return true;
    RtWeightsOptions how = {.except = o->init_except, .map = o->map};
    if (!rt_checkpoint_load_weights(s->checkpoint, o->init, &how, s->loaded, e))
        return false;
    rt_step_run(s->plan, s->device, RT_DERIVE, 0);
    return true;
}

bool rt_session_begin(RtSession *s, RtError *e) {
    if (!rt_session_collect(s, e))
        return false;
    rt_step_run(s->plan, s->device, RT_INIT, 0);
    if (!load_weights(s, e))
        return false;
    average(s);
    return true;
}

// A shard in lockstep is alone in a snapshot, and its inputs are there again.
static bool take_snapshot(RtSession *s, const RtStep *step, RtError *e) {
    const RtRun *run = s->run;
    RtStepHooks *hooks = s->device->hooks;
    void *copy[RT_MAX_INPUTS];
    s->snapshot_taken = true;
    if (s->lockstep != NULL &&
        !rt_session_inputs_read(s->device, step, 0, copy))
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    if (s->lockstep != NULL)
        s->device->hooks = NULL;
    bool good = rt_snapshot_run(run->options->snapshot, run->files, s->plan,
                                s->device, step, e);
    s->device->hooks = hooks;
    if (s->lockstep != NULL) {
        rt_session_inputs_write(s->device, step, step, 0, copy);
        rt_session_inputs_free(copy);
    }
    return good;
}

// --snapshot and the search for an anomaly observe the step.
static bool run_step(RtSession *s, const RtStep *step, RtError *e) {
    bool takes = s->run->options->snapshot != NULL && !s->snapshot_taken &&
                 step->kind == RT_TRAIN;
    if (takes && !take_snapshot(s, step, e))
        return false;
    if (takes && s->lockstep == NULL)
        return true;
    if (s->anomaly != NULL && !s->anomaly->found)
        rt_anomaly_begin(s->anomaly, s->plan, s->device, step);
    if (s->kernel_replay != NULL)
        rt_kernel_replay_begin(s->kernel_replay, step);
    if (s->lockstep != NULL)
        rt_lockstep_run(s->lockstep, step);
    else
        rt_step_run(s->plan, s->device, step->kind, step->stage);
    if (s->anomaly != NULL && s->device->watch != NULL)
        rt_anomaly_end(s->anomaly);
    return true;
}

// more: further batches of the update follow.  shard: among those in lockstep.
static bool load_batch(RtSession *s, const RtStep *step, bool more, int shard,
                       RtError *e) {
    RtSubmitted done;
    double began = rt_seconds();
    s->train.shift = rt_lockstep_shift(s->plan, shard);
    s->data_failed =
        !rt_feeder_submit(&s->train, step->kind, step->stage, more, &done, e);
    if (s->data_failed)
        return false;
    rt_session_trace_batch(s, began, &done);
    s->budget.copying += done.copying;
    s->budget.device_wait += done.device_wait;
    s->samples += done.valid;
    s->budget.trained += done.valid;
    s->waited += done.waited;
    s->budget.waiting += done.waited;
    s->batches[step - s->plan->step]++;
    rt_session_gradients_add(s, step, done.valid, shard);
    return true;
}

static bool run_batch(RtSession *s, const RtStep *step, RtError *e) {
    double began = rt_seconds();
    if (!run_step(s, step, e))
        return false;
    s->device->phase(s->device, RT_OTHER);
    rt_session_trace_since(s, "launch", began, -1);
    return true;
}

static bool take_batch(RtSession *s, RtStepKind kind, int stage, bool more,
                       RtError *e) {
    const RtStep *step = rt_step_find(s->plan, kind, stage);
    return load_batch(s, step, more, 0, e) && run_batch(s, step, e);
}

// All batches of an update but the last only accumulate gradients.
static bool take_batches(RtSession *s, int stage, int64_t count, RtError *e) {
    for (int64_t i = 0; i + 1 < count; i++)
        if (!take_batch(s, RT_ACCUMULATE, stage, true, e))
            return false;
    return take_batch(s, RT_TRAIN, stage, false, e);
}

// Counts the samples that other ranks took of an update, from a batch on.
static void count_others(RtSession *s, int64_t first, int64_t count,
                         int64_t own) {
    int64_t each = s->run->trainer->batch, all = count * each;
    int64_t left = s->run->data->train.count - first % s->epoch_batches * each;
    int64_t others = (all < left ? all : left) - own;
    s->samples += others;
    s->budget.trained += others;
}

// ---- shards ----

// A batch without samples has terms of 0, and so has one whose data failed.
static bool take_shard(RtSession *s, int stage, bool *good, bool is_empty,
                       RtError *e) {
    if (*good && !is_empty)
        *good = take_batch(s, RT_TRAIN, stage, false, e);
    else
        rt_shard_clear(s);
    return *good || rt_session_tell_failure(s, &s->train, e);
}

// Batches one after another.  False: the data of the only rank failed.
static bool run_in_turn(RtSession *s, int stage, int64_t first, int64_t count,
                        RtOverlap *overlap, RtError *e) {
    int own = s->run->trainer->accumulate / rt_world_size(s->run->world);
    bool good = true;
    for (int i = 0; i + 1 < own; i++) {
        if (!take_shard(s, stage, &good, first + i >= count, e))
            return false;
        rt_shard_add(s, i, own);
    }
    rt_overlap_begin(overlap, s, stage, own,
                     count == own * rt_world_size(s->run->world));
    return take_shard(s, stage, &good, first + own > count, e);
}

// Batch i of each shard.  Shards whose data failed are as those without
// samples.
static bool load_shards(RtSession *s, const RtStep *step, int i, int64_t first,
                        int64_t count, bool *good, RtError *e) {
    RtLockstep *l = s->lockstep;
    int each = s->run->trainer->accumulate / s->run->trainer->shards;
    for (int k = 0; k < l->shards; k++) {
        l->empty[k] = first + (int64_t)k * each + i >= count || !*good;
        if (!l->empty[k])
            *good = load_batch(s, step, false, k, e);
        l->empty[k] |= !*good;
        if (!*good && !rt_session_tell_failure(s, &s->train, e))
            return false;
    }
    return true;
}

static bool run_in_lockstep(RtSession *s, int stage, int64_t first,
                            int64_t count, RtOverlap *overlap, RtError *e) {
    const RtTrainer *t = s->run->trainer;
    const RtStep *step = rt_step_find(s->plan, RT_TRAIN, stage);
    int each = t->accumulate / t->shards;
    bool good = true;
    for (int i = 0; i < each; i++) {
        if (!load_shards(s, step, i, first, count, &good, e))
            return false;
        if (i + 1 == each)
            rt_overlap_begin(overlap, s, stage, each, false);
        if (!run_batch(s, step, e))
            return false;
        if (i + 1 < each)
            rt_lockstep_add_batch(s->lockstep, t, i, s->plan->partial,
                                  s->plan->partial_bytes / sizeof(float));
    }
    return true;
}

// The batches of this rank's shards.  No state changes before the sum, so that
// the ranks end with the states of the last step if one has no data.
static bool take_shards(RtSession *s, int stage, int64_t batch, int64_t count,
                        RtError *e) {
    RtWorld *w = s->run->world;
    RtOverlap overlap;
    int64_t first = (int64_t)(s->run->trainer->accumulate / rt_world_size(w)) *
                    rt_world_rank(w);
    int64_t before = s->samples;
    bool goes_on = (s->lockstep != NULL ? run_in_lockstep : run_in_turn)(
        s, stage, first, count, &overlap, e);
    s->device->hooks = NULL;
    if (!goes_on)
        return false;
    double ended = rt_seconds();
    rt_overlap_end(&overlap);
    s->budget.ranks += rt_seconds() - ended;
    if (!rt_session_has_data(s, e))
        return false;
    count_others(s, batch, count, s->samples - before);
    rt_session_update(s, stage);
    s->device->phase(s->device, RT_OTHER);
    return true;
}

// The batches of an update.  shows: histograms of its gradients may be written.
static bool step_run(RtSession *s, bool shows, RtError *e) {
    const RtTrainer *t = s->run->trainer;
    double began = rt_seconds();
    int stage = rt_time_stage(t, &s->at);
    int64_t at = rt_first_batch(t, &s->at, s->epoch_batches, s->at.step);
    int64_t end = rt_first_batch(t, &s->at, s->epoch_batches, s->at.step + 1);
    if (shows)
        rt_session_gradients_begin(s);
    double scale =
        s->gradients != NULL ? rt_metrics_read(s->plan, s->device).scale : 0;
    bool good = t->shards > 0 ? take_shards(s, stage, at, end - at, e)
                              : take_batches(s, stage, end - at, e);
    if (!good) {
        rt_session_gradients_free(s);
        return false;
    }
    s->at.step++;
    rt_world_step(s->run->world, s->at.step);
    rt_session_gradients_end(s, scale, stage);
    average(s);
    rt_session_trace_since(s, "step", began, s->at.step);
    return true;
}

bool rt_session_step(RtSession *s, RtError *e) {
    return step_run(s, true, e);
}

// A repeated batch is not loaded again.
bool rt_session_step_again(RtSession *s, const char *before, RtError *e) {
    s->at.step--;
    rt_states_restore(s->plan, s->device, before);
    if (!s->train.repeats) {
        s->budget.loading += rt_loader_busy(s->train.loader);
        rt_session_close_train(s);
        if (!rt_session_open_train(s, e))
            return false;
    }
    return step_run(s, false, e);
}
