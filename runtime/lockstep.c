// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lockstep: shards of a step with sums over all of them, as those of a
// synchronized batch_norm.
//
// A segment of the step, up to the next sum, runs for each shard of the
// process.  Its memory is the arena from the terms on; states before them are
// the same for all.  The sums of the shards are added as those of their terms
// are, as a fixed binary tree (shards.c), and then over ranks.

#include "runtime/runtime.h"

#include <stdlib.h>

static bool is_sum(const RtPlan *plan, const RtStep *step, int launch) {
    int call = step->launch[launch].call;
    return call >= 0 && plan->call[call].kind == RT_SUM_OVER_SHARDS;
}

// The first sum from a launch on, or the end of the step.
static int next_sum(const RtPlan *plan, const RtStep *step, int launch) {
    while (launch < step->num_launches && !is_sum(plan, step, launch))
        launch++;
    return launch;
}

int rt_lockstep_segments(const RtPlan *plan, const RtStep *step) {
    int count = 1;
    for (int i = 0; step->launch != NULL && i < step->num_launches; i++)
        count += is_sum(plan, step, i);
    return count;
}

bool rt_lockstep_needed(const RtPlan *plan) {
    for (int i = 0; i < plan->num_steps; i++)
        if (rt_lockstep_segments(plan, &plan->step[i]) > 1)
            return true;
    return false;
}

// ---- memory ----

static size_t copy_bytes(const RtPlan *plan) {
    return plan->arena_bytes - plan->partial;
}

size_t rt_lockstep_arena_bytes(const RtPlan *plan, int shards) {
    size_t bytes = shards > 1 ? (size_t)shards - 1 : 0;
    if (__builtin_mul_overflow(bytes, copy_bytes(plan), &bytes) ||
        __builtin_add_overflow(bytes, plan->arena_bytes, &bytes))
        return SIZE_MAX;
    return bytes;
}

size_t rt_lockstep_shift(const RtPlan *plan, int shard) {
    return (size_t)shard * copy_bytes(plan);
}

static int most_arguments(const RtPlan *plan) {
    int most = 3; // of a library call
    for (int i = 0; i < plan->num_kernels; i++)
        if (plan->kernel[i].args > most)
            most = plan->kernel[i].args;
    return most;
}

void rt_lockstep_open(RtLockstep *l, const RtPlan *plan, RtDevice *d,
                      int shards) {
    *l = (RtLockstep){.plan = plan, .device = d, .shards = shards};
    l->empty = calloc((size_t)shards, sizeof *l->empty);
    l->arg = calloc((size_t)most_arguments(plan), sizeof *l->arg);
    if (l->empty == NULL || l->arg == NULL)
        rt_end(EXIT_MEMORY, "out of memory");
}

void rt_lockstep_close(RtLockstep *l) {
    free(l->empty);
    free(l->arg);
    *l = (RtLockstep){0};
}

// ---- sums ----

static size_t in_shard(const RtLockstep *l, int shard, size_t at) {
    return at + rt_lockstep_shift(l->plan, shard);
}

static void add_pair(const RtLockstep *l, int left, int right, size_t from,
                     size_t to, size_t count) {
    size_t term[] = {in_shard(l, left, from), in_shard(l, right, from)};
    l->device->sum(l->device, in_shard(l, left, to), term,
                   right < l->shards ? 2 : 1, count);
}

// The terms of all shards at `from`, as a binary tree, to the first one's `to`.
static void add_shards(const RtLockstep *l, size_t from, size_t to,
                       size_t count) {
    for (int i = 0; i < l->shards; i += 2)
        if (from != to || i + 1 < l->shards)
            add_pair(l, i, i + 1, from, to, count);
    for (int step = 2; step < l->shards; step *= 2)
        for (int i = 0; i + step < l->shards; i += 2 * step)
            add_pair(l, i, i + step, to, to, count);
}

void rt_lockstep_add_shards(const RtLockstep *l, size_t at, size_t count) {
    add_shards(l, at, at, count);
}

void rt_lockstep_add_batch(const RtLockstep *l, const RtTrainer *t, int i,
                           size_t at, size_t count) {
    for (int k = 0; k < l->shards; k++)
        rt_shard_sum(l->plan, l->device, t, i, t->accumulate / t->shards,
                     in_shard(l, k, at), count);
}

static void clear_empty(const RtLockstep *l, size_t at, size_t count) {
    for (int k = 0; k < l->shards; k++)
        if (l->empty[k])
            l->device->sum(l->device, in_shard(l, k, at), NULL, 0, count);
}

// The sum of a launch: from its first address to its last one, of all shards.
static void run_sum(RtLockstep *l, const RtStep *step, RtSegment *p) {
    RtDevice *d = l->device;
    const RtCall *call = &l->plan->call[step->launch[p->end].call];
    size_t from = p->sum[0], to = p->sum[2], count = (size_t)call->k;
    clear_empty(l, from, count);
    add_shards(l, from, to, count);
    if (l->sum_ranks != NULL)
        l->sum_ranks(l, p->end, to, count);
    for (int k = 1; k < l->shards; k++)
        d->sum(d, in_shard(l, k, to), &to, 1, count);
    p->is_watched = p->is_overlapped = true;
    rt_observers_tell(d, -1, p->sum);
}

// ---- segments ----

static int last_shard(const RtLockstep *l) {
    int k = l->shards - 1;
    while (k > 0 && l->empty[k])
        k--;
    return k;
}

static void run_shard(RtLockstep *l, const RtStep *step, RtSegment *p,
                      int shard) {
    p->shard = shard;
    p->shift = rt_lockstep_shift(l->plan, shard);
    p->is_watched = shard == 0;
    p->is_overlapped = shard == last_shard(l);
    l->device->run(l->device, step);
}

static void run_segment(RtLockstep *l, const RtStep *step, RtSegment *p) {
    for (int k = 0; k < l->shards && p->first < p->end; k++)
        if (!l->empty[k])
            run_shard(l, step, p, k);
}

// The step tells the addresses of the sum at its end, and launches nothing: a
// device may replay a segment without that.
static void find_sum(RtLockstep *l, const RtStep *step, RtSegment *p) {
    p->first = p->end;
    rt_step_launch(l->device, step);
}

static RtSegment segment_of(const RtLockstep *l) {
    return (RtSegment){
        .plan = l->plan, .from = l->plan->partial, .arg = l->arg};
}

void rt_lockstep_run(RtLockstep *l, const RtStep *step) {
    RtSegment p = segment_of(l);
    clear_empty(l, l->plan->partial, l->plan->partial_bytes / sizeof(float));
    l->device->segment = &p;
    for (;;) {
        p.end = next_sum(l->plan, step, p.first);
        run_segment(l, step, &p);
        if (p.end == step->num_launches)
            break;
        find_sum(l, step, &p);
        run_sum(l, step, &p);
        p.first = p.end + 1;
        p.number++;
    }
    l->device->segment = NULL;
}

void rt_lockstep_run_one(RtLockstep *l, const RtStep *step, int shard) {
    RtSegment p = segment_of(l);
    p.end = step->num_launches;
    p.shard = shard;
    p.shift = rt_lockstep_shift(l->plan, shard);
    p.is_watched = p.is_overlapped = true;
    l->device->segment = &p;
    l->device->run(l->device, step);
    l->device->segment = NULL;
}
