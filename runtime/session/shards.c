// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shards: sums of their terms as a binary tree, the same wherever a shard is
// computed.
//
//     ((0 + 1) + (2 + 3)) + (4 + 5)
//
// Place j of the plan's memory holds the sum of 2^j shards that waits for its
// sibling, as the digits of a binary counter.  The terms of a shard are the sum
// of its batches, the same tree with places before those of shards.

#include "runtime/session/session.h"

static size_t terms(const RtPlan *p) {
    return p->partial_bytes / sizeof(float);
}

void rt_shard_clear(const RtSession *s) {
    s->device->sum(s->device, s->plan->partial, NULL, 0, terms(s->plan));
}

void rt_shards_reduce(const RtSession *s) {
    RtBuffer all = {.device = s->device, .offset = s->plan->partial};
    rt_world_sum(s->run->world, &all, terms(s->plan));
}

// ---- the tree ----

enum { MOST_TERMS = 64 };

typedef struct {
    size_t from[MOST_TERMS], to; // offsets
    int count;
} Sum;

static size_t waiting_place(const RtPlan *p, int i) {
    return p->partial + (size_t)(i + 1) * p->partial_bytes;
}

// Adds the sums that term i of `count` completes, which wait from a place on;
// returns the next free one.
static int complete(const RtPlan *p, Sum *s, int i, int count, int place) {
    bool all = i + 1 == count;
    int j = 0;
    for (; all ? i >> j != 0 : i >> j & 1; j++)
        if (i >> j & 1)
            s->from[s->count++] = waiting_place(p, place + j);
    s->to = all ? p->partial : waiting_place(p, place + j);
    return place + j;
}

void rt_shard_add(const RtSession *s, int i, int count) {
    const RtPlan *p = s->plan;
    const RtTrainer *t = s->run->trainer;
    int each = t->accumulate / t->shards; // batches of a shard
    Sum sum = {.from = {p->partial}, .count = 1};
    int next = complete(p, &sum, i % each, each, 0);
    if (i % each == each - 1)
        complete(p, &sum, i / each, count / each, next);
    if (count > 1)
        s->device->sum(s->device, sum.to, sum.from, sum.count, terms(p));
}
