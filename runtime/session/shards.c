// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shards: the terms of a rank's shards, and their sums over ranks.  With the
// last batch, the sums of all are in the place of terms, bucket by bucket as
// the step stores them.  The sum of a bucket over ranks goes on beside the
// launches after it.

#include "runtime/session/session.h"

static size_t terms(const RtPlan *p) {
    return p->partial_bytes / sizeof(float);
}

void rt_shard_clear(const RtSession *s) {
    s->device->sum(s->device, s->plan->partial, NULL, 0, terms(s->plan));
}

void rt_shard_add(const RtSession *s, int i, int count) {
    rt_shard_sum(s->plan, s->device, s->run->trainer, i, count,
                 s->plan->partial, terms(s->plan));
}

// Adds the parameters that other ranks have updated.
void rt_session_update(const RtSession *s, int stage) {
    const RtPlan *p = s->plan;
    const RtOwners *o = s->run->owners;
    int first = 0, count = p->num_optimizer_shards;
    if (o != NULL)
        rt_owners_shards(o, &first, &count);
    rt_shard_update(p, s->device, stage, first, count);
    rt_owners_share(o);
    if (p->num_optimizer_shards > 0)
        rt_step_run(p, s->device, RT_DERIVE, 0);
}

// ---- the last batch of a rank ----

// Adds the rank's shards of the next bucket.
static RtBuffer add_bucket(RtOverlap *o, size_t *count) {
    const RtBucket *b = &o->step->bucket[o->buckets++];
    const RtSession *s = o->session;
    *count = b->bytes / sizeof(float);
    if (s->lockstep != NULL) {
        rt_lockstep_add_batch(s->lockstep, s->run->trainer, o->batches - 1,
                              b->offset, *count);
        rt_lockstep_add_shards(s->lockstep, b->offset, *count);
    } else {
        rt_shard_sum(s->plan, s->device, s->run->trainer, o->batches - 1,
                     o->batches, b->offset, *count);
    }
    return (RtBuffer){.device = s->device, .offset = b->offset};
}

static void begin_sum(RtOverlap *o) {
    RtWorld *w = o->session->run->world;
    size_t count;
    RtBuffer range = add_bucket(o, &count);
    if (rt_world_queues(w))
        rt_world_queue_sum(w, &range, count);
    else
        rt_world_begin_sum(w, &range, count);
}

static void begin(RtStepHooks *h) {
    RtOverlap *o = (RtOverlap *)(void *)h; // hooks is its first field
    RtWorld *w = o->session->run->world;
    o->launches = o->buckets = 0;
    if (rt_world_queues(w))
        rt_world_queue_flags(w);
}

// Begins the sums of the buckets that launches before one store.  A bucket that
// the last launch stores has nothing to go on beside.
static void begin_sums(RtOverlap *o, int launch, bool last) {
    while ((rt_world_queues(o->session->run->world) || !last) &&
           o->buckets < o->step->num_buckets &&
           o->step->bucket[o->buckets].ready < launch)
        begin_sum(o);
}

static void launched(RtStepHooks *h) {
    RtOverlap *o = (RtOverlap *)(void *)h;
    RtWorld *w = o->session->run->world;
    RtDevice *d = o->session->device;
    bool last = ++o->launches == o->step->num_launches;
    begin_sums(o,
               d->queued_launches != NULL ? d->queued_launches(d) : o->launches,
               last);
    if (rt_world_queues(w) && last)
        rt_world_queue_join(w);
}

// A step that is one launch has nothing between launches, but for work that is
// recorded with it, which is the same each time: not for an update in which
// some shards are empty.
void rt_overlap_begin(RtOverlap *o, const RtSession *s, int stage, int batches,
                      bool full) {
    RtWorld *w = s->run->world;
    *o = (RtOverlap){.hooks = {.begin = begin, .launched = launched},
                     .session = s,
                     .step = rt_step_find(s->plan, RT_TRAIN, stage),
                     .batches = batches,
                     .full = full};
    if (rt_world_queues(w))
        rt_world_queue_start(w);
    if (rt_world_queues(w) ? full : w != NULL && !s->device->replays)
        s->device->hooks = &o->hooks;
}

// Ranks queue the same collectives in the same way.  One without data repeats
// the step of its last batch for that; nobody reads the sums.
static void end_queued(RtOverlap *o) {
    RtWorld *w = o->session->run->world;
    RtDevice *d = o->session->device;
    if (!o->full) {
        rt_world_queue_start(w);
        begin(&o->hooks);
        while (o->buckets < o->step->num_buckets)
            begin_sum(o);
        rt_world_queue_join(w);
    } else if (o->launches == 0 && !o->hooks.replayed) {
        rt_world_queue_start(w);
        d->hooks = &o->hooks;
        d->run(d, o->step);
        d->hooks = NULL;
    }
    rt_world_queue_finish(w);
}

void rt_overlap_end(RtOverlap *o) {
    RtWorld *w = o->session->run->world;
    if (rt_world_queues(w)) {
        end_queued(o);
        return;
    }
    rt_world_finish_sums(w);
    while (o->buckets < o->step->num_buckets) {
        size_t count;
        RtBuffer range = add_bucket(o, &count);
        rt_world_sum(w, &range, count);
    }
}

// ---- lockstep ----

// The sum over ranks of a sum of this rank, between two launches of its step.
// All ranks begin the sums of the same buckets before it, also without samples.
static void sum_ranks(RtLockstep *l, int launch, size_t at, size_t count) {
    RtWorld *w = l->context;
    RtStepHooks *hooks = l->device->hooks;
    RtBuffer range = {.device = l->device, .offset = at};
    if (hooks != NULL) {
        begin_sums((RtOverlap *)(void *)hooks, launch, false);
        rt_world_finish_sums(w);
    }
    rt_world_sum_within(w, &range, count);
}

void rt_session_open_lockstep(RtSession *s, RtLockstep *l) {
    RtWorld *w = s->run->world;
    *l = (RtLockstep){0};
    if (s->device->shards == 0)
        return;
    rt_lockstep_open(l, s->plan, s->device, s->device->shards);
    l->context = w;
    l->sum_ranks = w != NULL ? sum_ranks : NULL;
    s->lockstep = l;
}
