// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Holdout: training samples that are evaluated instead of the test set.
//
// They depend on their number and the number of samples only, so runs of any
// seed hold out the same ones, and no sample is copied.  They are spread evenly
// over the files, as a folder of images is sorted by class.  In a text, whose
// neighbours are correlated, they are the last.

#include "runtime/data/data.h"

#include <float.h>

// Sample i of n is one of h held-out ones if floor(i h / n) grows after it.
static bool is_held_out(const RtHoldout *h, int64_t sample) {
    if (h->at_end)
        return sample >= h->all - h->held;
    return (sample + 1) * h->held / h->all > sample * h->held / h->all;
}

int64_t rt_split_all(const RtSplit *s) {
    return s->holdout.part == RT_PART_ALL ? s->count : s->holdout.all;
}

bool rt_split_has(const RtSplit *s, int64_t sample) {
    return s->holdout.part == RT_PART_ALL ||
           is_held_out(&s->holdout, sample) ==
               (s->holdout.part == RT_PART_VALIDATION);
}

int64_t rt_split_sample(const RtSplit *s, int64_t i) {
    const RtHoldout *h = &s->holdout;
    int64_t trained = h->all - h->held;
    if (h->part == RT_PART_ALL || (h->at_end && h->part == RT_PART_TRAIN))
        return i;
    if (h->at_end)
        return trained + i;
    return h->part == RT_PART_VALIDATION ? ((i + 1) * h->all - 1) / h->held
                                         : i * h->all / trained;
}

static RtColumn borrow(RtColumn c) {
    c.borrowed = true;
    return c;
}

// Rounds down; the factor compensates three roundings to double.
static int64_t share_of(int64_t all, double percent) {
    return (int64_t)(percent * (double)all / 100 * (1 + 2 * DBL_EPSILON));
}

bool rt_data_hold_out(RtData *d, const RtValidation *v, RtError *e) {
    RtSplit *train = &d->train;
    int64_t all = train->count;
    int64_t held =
        v->percent > 0 ? share_of(all, v->percent) : (int64_t)v->samples;
    if (held == 0 && v->percent == 0)
        return true;
    if (held < 1 || held >= all)
        return rt_fail(e, EXIT_USAGE,
                       "--validation holds out %lld of %lld training samples; "
                       "both parts need at least one",
                       (long long)held, (long long)all);
    train->holdout = (RtHoldout){RT_PART_TRAIN, train->is_text, all, held};
    train->count = all - held;
    rt_split_close(&d->test);
    d->test = *train;
    d->test.holdout.part = RT_PART_VALIDATION;
    d->test.count = held;
    d->test.image = borrow(train->image);
    d->test.label = borrow(train->label);
    for (int i = 0; i < train->num_arrays; i++)
        d->test.array[i] = borrow(train->array[i]);
    d->test.release = NULL;
    d->hash ^= (uint64_t)held;
    return true;
}
