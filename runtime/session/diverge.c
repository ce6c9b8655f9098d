// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Diverge: if the loss is not finite, or the loss scale has reached its end,
// the run is replayed from its last checkpoint to the step, the launch and the
// operation where that began.

#include "runtime/session/session.h"

#include <math.h>
#include <stdlib.h>

// Restores the states of the last checkpoint, or of the start.
static bool restore_last(RtSession *s, RtError *e) {
    const char *resume_path = s->run->options->resume_path;
    int64_t saved = s->saved;
    char *newest = NULL;
    RtProgress found = s->at;
    bool good;
    rt_session_close_train(s);
    if (saved < 0) {
        s->at.step = 0;
        rt_states_clear(s->plan, s->device);
        rt_states_start(s->plan, s->device, &s->at);
        good = rt_session_begin(s, e);
    } else {
        good = resume_path != NULL && saved == s->retention.from
                   ? rt_checkpoint_read(s->checkpoint, resume_path, &found,
                                        e) == RT_GOOD
                   : rt_retention_load(&s->retention, s->checkpoint, &found,
                                       &newest, e);
        free(newest);
        s->at = found;
        good = good && found.step == saved;
        rt_step_run(s->plan, s->device, RT_DERIVE, 0);
    }
    return good && rt_session_open_train(s, e);
}

static void print_anomaly(const RtSession *s, const char *how,
                          const char *what) {
    rt_report_print(s->report, "replay of step %lld, %s: %s",
                    (long long)s->at.step, how, what);
}

// Replays the anomaly's kernel, if it has one.
static bool find_operation(RtSession *s, const RtAnomaly *anomaly,
                           const char *before, RtError *e) {
    RtKernelReplay replay;
    bool good = true;
    if (rt_kernel_replay_open(&replay, s->run->trainer, s->plan, s->device,
                              anomaly)) {
        s->kernel_replay = &replay;
        good = rt_session_step_again(s, before, e);
        s->kernel_replay = NULL;
    }
    if (replay.found)
        print_anomaly(s, "operation by operation", replay.text);
    else
        print_anomaly(s, "launch by launch", anomaly->text);
    rt_kernel_replay_close(&replay);
    return good;
}

// Repeats a step and prints its first anomaly.
static bool find_launch(RtSession *s, const char *before, RtError *e) {
    RtAnomaly anomaly = {.found = false};
    s->anomaly = &anomaly;
    bool good = rt_session_step_again(s, before, e);
    s->anomaly = NULL;
    return good && (!anomaly.found || find_operation(s, &anomaly, before, e));
}

// All states after a step. *good: they are finite; a skipped step leaves finite
// ones, so the loss scale counts too.
static char *states_after(const RtSession *s, bool *good) {
    char *copy = rt_states_copy(s->plan, s->device, good);
    RtMetrics m = rt_metrics_read(s->plan, s->device);
    *good = *good && (m.scale == 0 || m.scale >= 1);
    return copy;
}

// A step is a function of its number and the states, so the steps since the
// last checkpoint repeat exactly.
static bool replay_steps(RtSession *s, RtError *e) {
    int64_t last = s->at.step;
    bool finite = true, good = restore_last(s, e);
    char *before = good ? states_after(s, &finite) : NULL;
    while (good && before != NULL && finite && s->at.step < last &&
           rt_signals_caught() == 0) {
        good = rt_session_step(s, e);
        char *after = states_after(s, &finite);
        if (good && after != NULL && !finite)
            good = find_launch(s, before, e);
        free(before);
        before = after;
    }
    free(before);
    return good;
}

// The replay does not change the run's result.  Sums are cleared at the end of
// an epoch, so all states may be finite by now.
void rt_session_find_anomaly(RtSession *s) {
    RtError ignored;
    int64_t at = s->at.step;
    bool finite;
    if (s->train.loader == NULL)
        return;
    // Rows may be reported some steps late.
    free(rt_states_copy(s->plan, s->device, &finite));
    if (finite && !isfinite(s->test.metric[METRIC_loss])) // not an evaluation
        return;
    rt_report_print(s->report,
                    "the loss diverged: replaying from step %lld to find the "
                    "first operation that is not finite",
                    (long long)(s->saved < 0 ? 0 : s->saved));
    if (!replay_steps(s, &ignored))
        rt_report_print(s->report, "the replay found no cause: %s",
                        ignored.text);
    s->at.step = at;
}
