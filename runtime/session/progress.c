// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Progress: the length of a run, and the batches of its steps.

#include "runtime/session/run.h"

#include <math.h>

// With drop_last, batches that do not fill an update are dropped, like samples
// that do not fill a batch.  Otherwise the last update of an epoch has fewer
// batches.
static int64_t epoch_updates(const RtTrainer *t, int64_t samples) {
    int64_t batches =
        t->drop_last ? samples / t->batch : (samples - 1) / t->batch + 1;
    return t->drop_last ? batches / t->accumulate
                        : (batches - 1) / t->accumulate + 1;
}

bool rt_progress_plan(const RtTrainer *t, const RtOptions *o,
                      const RtData *data, RtProgress *p, RtError *e) {
    int64_t samples = data->train.count;
    RtTime length = o->epochs > 0 ? (RtTime){o->epochs, RT_EPOCHS} : t->length;
    p->epoch_steps = epoch_updates(t, samples);
    if (p->epoch_steps == 0 && t->accumulate > 1)
        return rt_fail(e, EXIT_DATA,
                       "the training data has %lld sample%s, fewer than the %d "
                       "batches of %d of one update",
                       (long long)samples, samples == 1 ? "" : "s",
                       t->accumulate, t->batch);
    if (p->epoch_steps == 0)
        return rt_fail(
            e, EXIT_DATA,
            "the training data has %lld sample%s, fewer than one batch of %d",
            (long long)samples, samples == 1 ? "" : "s", t->batch);
    double steps = ceil(rt_time_steps(length, p) - 1e-9);
    if (!(steps <= INT32_MAX))
        return rt_fail(e, EXIT_USAGE, "%g %s exceed the limit of %d steps",
                       length.count,
                       length.unit == RT_STEPS ? "steps" : "epochs", INT32_MAX);
    p->step = 0;
    p->steps = steps < 1 ? 1 : (int64_t)steps;
    p->seed = o->seed >= 0 ? o->seed : t->seed;
    p->data_hash = data->hash;
    return true;
}

int64_t rt_epoch_batches(const RtTrainer *t, const RtProgress *p,
                         int64_t samples) {
    return t->drop_last ? p->epoch_steps * t->accumulate
                        : (samples - 1) / t->batch + 1;
}

int64_t rt_first_batch(const RtTrainer *t, const RtProgress *p,
                       int64_t epoch_batches, int64_t step) {
    return step / p->epoch_steps * epoch_batches +
           step % p->epoch_steps * t->accumulate;
}
