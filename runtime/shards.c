// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shards: sums of their terms as a binary tree, the same wherever a shard is
// computed.
//
//     ((0 + 1) + (2 + 3)) + (4 + 5)
//
// Slot j of the plan's memory holds the sum of 2^j shards that waits for its
// sibling, as the digits of a binary counter.  The terms of a shard are the sum
// of its batches, the same tree with slots before those of shards.

#include "runtime/runtime.h"

enum { MAX_TERMS = 64 };

typedef struct {
    size_t at;               // of the terms
    size_t between;          // from a slot to the next one
    size_t from[MAX_TERMS];  // offsets
    size_t to;
    int count;
} Sum;

static size_t slot_offset(const Sum *s, int slot) {
    return s->at + (size_t)(slot + 1) * s->between;
}

// Adds the sums that term i of `count` completes, which wait from a slot on;
// returns the next free slot.
static int complete(Sum *s, int i, int count, int slot) {
    bool all = i + 1 == count;
    for (; all ? i > 0 : i & 1; i >>= 1, slot++)
        if (i & 1)
            s->from[s->count++] = slot_offset(s, slot);
    s->to = all ? s->at : slot_offset(s, slot);
    return slot;
}

void rt_shard_sum(const RtPlan *p, RtDevice *d, const RtTrainer *t, int i,
                  int batches, size_t at, size_t count) {
    int each = t->accumulate / t->shards;
    Sum s = {.at = at, .between = p->partial_bytes, .from = {at}, .count = 1};
    int next = complete(&s, i % each, each, 0);
    if (i % each == each - 1)
        complete(&s, i / each, batches / each, next);
    if (batches > 1)
        d->sum(d, s.to, s.from, s.count, count);
}

void rt_shard_update(const RtPlan *p, RtDevice *d, int stage, int first,
                     int count) {
    int shard = 0;
    for (int i = 0; i < p->num_steps; i++) {
        const RtStep *s = &p->step[i];
        if (s->kind != RT_OPTIMIZE || s->stage != stage)
            continue;
        if (shard >= first && shard < first + count)
            d->run(d, s);
        shard++;
    }
    rt_step_run(p, d, RT_APPLY, stage);
}
