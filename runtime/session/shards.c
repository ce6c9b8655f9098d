// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shards: the terms of a rank's shards, and their sums over ranks.  With the
// last batch, the sums of all are in the place of terms, bucket by bucket as
// the step stores them.  Between two launches, the sum over ranks of an earlier
// bucket goes on.

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

// ---- the last batch of a rank ----

static void begin_bucket(RtOverlap *o) {
    const RtSession *s = o->session;
    const RtBucket *b = &o->step->bucket[o->buckets++];
    RtBuffer range = {.device = s->device, .offset = b->offset};
    size_t count = b->bytes / sizeof(float);
    rt_shard_sum(s->plan, s->device, s->run->trainer, o->batches - 1,
                 o->batches, b->offset, count);
    if (s->run->world != NULL)
        rt_world_start_sum(s->run->world, &range, count);
}

static void launched(RtWatch *w, int kernel, const size_t *arg) {
    RtOverlap *o = (RtOverlap *)(void *)w; // watch is its first field
    (void)kernel, (void)arg;
    o->launches++;
    while (rt_world_progress(o->session->run->world) &&
           o->buckets < o->step->num_buckets &&
           o->step->bucket[o->buckets].ready < o->launches)
        begin_bucket(o);
}

// A step that is one launch has nothing between launches.
void rt_overlap_begin(RtOverlap *o, const RtSession *s, int stage,
                      int batches) {
    *o = (RtOverlap){.watch.launched = launched,
                     .session = s,
                     .step = rt_step_find(s->plan, RT_TRAIN, stage),
                     .batches = batches};
    if (s->run->world != NULL && !s->device->replays)
        s->device->overlap = &o->watch;
}

void rt_overlap_end(RtOverlap *o) {
    RtWorld *w = o->session->run->world;
    for (; o->buckets < o->step->num_buckets; begin_bucket(o))
        rt_world_finish_sum(w);
    rt_world_finish_sum(w);
}
