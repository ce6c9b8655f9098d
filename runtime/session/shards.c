// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shards: sums of their terms as a binary tree, the same wherever a shard is
// computed.
//
//     ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))
//
// Level j of the plan's memory holds the sum of 2^j shards that waits for its
// sibling, as the digits of a binary counter.

#include "runtime/session/session.h"

static size_t place_of_level(const RtPlan *p, int level) {
    return p->partial + (size_t)(level + 1) * p->partial_bytes;
}

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

void rt_shard_add(const RtSession *s, int i, int count) {
    enum { MOST_LEVELS = 16 };
    const RtPlan *p = s->plan;
    size_t from[MOST_LEVELS + 1] = {p->partial};
    int level = 0;
    for (; i >> level & 1; level++)
        from[level + 1] = place_of_level(p, level);
    size_t to = i + 1 == count ? p->partial : place_of_level(p, level);
    if (count > 1)
        s->device->sum(s->device, to, from, level + 1, terms(p));
}
