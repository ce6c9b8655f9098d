// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Short batch: refuses data with a short last batch if the model needs whole
// ones, before the first step.

#include "runtime/session/session.h"

static bool divides(const RtRun *run, int64_t samples, const char *of,
                    const char *whole, const char *advice, RtError *e) {
    int batch = run->trainer->batch;
    if (whole == NULL || samples % batch == 0)
        return true;
    return rt_fail(e, EXIT_DATA,
                   "the last batch of the %s samples has %lld of %d, but %s, "
                   "needs whole batches: compile with a batch that divides "
                   "%lld%s",
                   of, (long long)(samples % batch), batch, whole,
                   (long long)samples, advice);
}

static const char *evaluated(const RtRun *run) {
    static const char *const name[] = {[RT_ON_TEST] = "test",
                                       [RT_ON_TRAIN] = "training",
                                       [RT_ON_VALIDATION] = "validation"};
    return name[rt_eval_set(run)];
}

static void warn_statistics(const RtRun *run, int64_t samples) {
    const RtTrainer *t = run->trainer;
    int64_t rest = samples % t->batch;
    if (t->statistics == NULL || t->drop_last || rest == 0)
        return;
    rt_warn("the last batch of an epoch has %lld of %d samples; the statistics "
            "of %s, include the %lld that fill it up: compile with a batch "
            "that divides %lld, or with drop_last",
            (long long)rest, t->batch, t->statistics,
            (long long)(t->batch - rest), (long long)samples);
}

bool rt_session_check_short_batch(const RtRun *run, bool collects, RtError *e) {
    const RtTrainer *t = run->trainer;
    int64_t samples = run->data->train.count;
    int64_t first = t->collect_samples < samples ? t->collect_samples : samples;
    if (collects &&
        !divides(run, first, "first training", t->whole_collect, "", e))
        return false;
    if (run->options->init_only)
        return true;
    if (!run->options->eval_only) {
        if (!t->drop_last && !divides(run, samples, "training", t->whole_train,
                                      ", or with drop_last", e))
            return false;
        warn_statistics(run, samples);
    }
    return divides(run, rt_eval_split(run)->count, evaluated(run),
                   t->whole_eval, "", e);
}
