// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shards: sums of their terms as a binary tree, the same wherever a shard is
// computed.
//
//     ((0 + 1) + (2 + 3)) + (4 + 5)
//
// Place j of the plan's memory holds the sum of 2^j shards that waits for its
// sibling, as the digits of a binary counter.  The terms of a shard are the sum
// of its batches, the same tree with places before those of shards.  With the
// last batch, the sums of all are in the place of terms, bucket by bucket as
// the step stores them.  Between two launches, the sum over ranks of an earlier
// bucket goes on.

#include "runtime/session/session.h"

void rt_shard_clear(const RtSession *s) {
    const RtPlan *p = s->plan;
    s->device->sum(s->device, p->partial, NULL, 0,
                   p->partial_bytes / sizeof(float));
}

// ---- the tree ----

enum { MOST_TERMS = 64 };

typedef struct {
    size_t bytes;                // from one place to the next
    size_t from[MOST_TERMS], to; // offsets; from[0] is in the place of terms
    int count;
} Sum;

static size_t waiting_place(const Sum *s, int i) {
    return s->from[0] + (size_t)(i + 1) * s->bytes;
}

// Adds the sums that term i of `count` completes, which wait from a place on;
// returns the next free one.
static int complete(Sum *s, int i, int count, int place) {
    bool all = i + 1 == count;
    int j = 0;
    for (; all ? i >> j != 0 : i >> j & 1; j++)
        if (i >> j & 1)
            s->from[s->count++] = waiting_place(s, place + j);
    s->to = all ? s->from[0] : waiting_place(s, place + j);
    return place + j;
}

// Adds the terms of batch i of `count`, the f32 in `bytes` from an offset on.
static void add_range(const RtSession *s, int i, int count, size_t at,
                      size_t bytes) {
    const RtTrainer *t = s->run->trainer;
    int each = t->accumulate / t->shards; // batches of a shard
    Sum sum = {.bytes = s->plan->partial_bytes, .from = {at}, .count = 1};
    int next = complete(&sum, i % each, each, 0);
    if (i % each == each - 1)
        complete(&sum, i / each, count / each, next);
    if (count > 1)
        s->device->sum(s->device, sum.to, sum.from, sum.count,
                       bytes / sizeof(float));
}

void rt_shard_add(const RtSession *s, int i, int count) {
    add_range(s, i, count, s->plan->partial, s->plan->partial_bytes);
}

// ---- the last batch of a rank ----

static void begin_bucket(RtOverlap *o) {
    const RtSession *s = o->session;
    const RtBucket *b = &o->step->bucket[o->buckets++];
    RtBuffer terms = {.device = s->device, .offset = b->offset};
    size_t count = b->bytes / sizeof(float);
    add_range(s, o->batches - 1, o->batches, b->offset, b->bytes);
    if (s->run->world != NULL)
        rt_world_start_sum(s->run->world, &terms, count);
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
