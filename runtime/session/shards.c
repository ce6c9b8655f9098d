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

// ---- the last batch of a rank ----

// Adds the rank's shards of the next bucket.
static RtBuffer add_bucket(RtOverlap *o, size_t *count) {
    const RtBucket *b = &o->step->bucket[o->buckets++];
    const RtSession *s = o->session;
    *count = b->bytes / sizeof(float);
    rt_shard_sum(s->plan, s->device, s->run->trainer, o->batches - 1,
                 o->batches, b->offset, *count);
    return (RtBuffer){.device = s->device, .offset = b->offset};
}

static void launched(RtWatch *w, int kernel, const size_t *arg) {
    RtOverlap *o = (RtOverlap *)(void *)w; // watch is its first field
    (void)kernel, (void)arg;
    o->launches++;
    // A bucket that the last launch stores has nothing to go on beside.
    while (o->launches < o->step->num_launches &&
           o->buckets < o->step->num_buckets &&
           o->step->bucket[o->buckets].ready < o->launches) {
        size_t count;
        RtBuffer range = add_bucket(o, &count);
        rt_world_begin_sum(o->session->run->world, &range, count);
    }
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
    rt_world_finish_sums(w);
    while (o->buckets < o->step->num_buckets) {
        size_t count;
        RtBuffer range = add_bucket(o, &count);
        rt_world_sum(w, &range, count);
    }
}
