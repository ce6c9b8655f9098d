// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Evaluate: runs the evaluation data, and checks the stop condition.

#include "runtime/session/session.h"

#include <string.h>

void rt_session_add_device_time(RtSession *s) {
    RtTimes spent;
    s->device->times(s->device, &spent);
    for (int i = 0; i < RT_NUM_PHASES; i++)
        s->budget.device.phase[i] += spent.phase[i];
    for (int i = 0; i < RT_NUM_WORKS; i++)
        s->budget.device.work[i] += spent.work[i];
}

static bool run_batch(RtSession *s, int64_t batch, double *waited, RtError *e) {
    RtSubmitted done;
    s->data_failed = !rt_feeder_submit(&s->eval, RT_EVAL, 0, false, &done, e);
    if (s->data_failed)
        return false;
    *waited += done.waited;
    rt_step_run(s->plan, s->device, RT_EVAL, 0);
    rt_session_add_scores(s, batch);
    return true;
}

// True if a signal ends the evaluation.
static bool end_failed(RtSession *s) {
    s->data_failed = !rt_session_is_interrupted(s, &s->eval);
    return !s->data_failed;
}

// Ranks take batches in turn.  True after a signal, too.
static bool run_batches(RtSession *s, double *waited, RtError *e) {
    int ranks = rt_world_size(s->run->world);
    int rank = rt_world_rank(s->run->world);
    int64_t count =
        (rt_eval_split(s->run)->count - 1) / s->run->trainer->batch + 1;
    rt_session_sums_begin(s);
    rt_session_clear_scores(s);
    for (int64_t at = 0; at < count && rt_signals_caught() == 0; at += ranks) {
        int64_t left = count - at;
        bool good = rank >= left || run_batch(s, at + rank, waited, e);
        if (!good && !rt_session_tell_failure(s, &s->eval, e))
            return end_failed(s);
        if (s->sums != NULL)
            rt_session_add_sums(s, (int)(left < ranks ? left : ranks));
        if (!rt_session_has_data(s, e))
            return end_failed(s);
    }
    rt_session_sums_end(s);
    rt_session_gather_scores(s);
    return true;
}

double rt_session_metric(const RtSession *s, const RtRow *row,
                         const char *name) {
    const RtTrainer *t = s->run->trainer;
    for (int i = 0; i < t->num_output_metrics; i++)
        if (strcmp(t->output_metric[i].name, name) == 0)
            return row->measured[i];
    return row->metric[metric_find(name)];
}

// Whether an evaluation ends the run.
static bool is_enough(const RtSession *s, const RtRow *row) {
    RtStop stop = s->run->trainer->stop;
    if (stop.metric == NULL || s->run->options->eval_only)
        return false;
    if (stop.patience.count > 0)
        return rt_session_stalled(s, stop.metric, stop.patience);
    double value = rt_session_metric(s, row, stop.metric);
    return stop.above ? value >= stop.value : value <= stop.value;
}

// Evaluation accumulates in the metric states of training, which are restored
// afterwards.  A signal ends it without a row.
bool rt_session_evaluate(RtSession *s, RtError *e) {
    RtTimes ignored;
    double waited = 0;
    rt_session_add_device_time(s); // waits for the steps
    double since = rt_seconds();
    RtMetrics training = rt_metrics_read(s->plan, s->device);
    rt_metrics_write(s->plan, s->device, &(RtMetrics){.lr = training.lr});
    rt_metrics_clear_sums(s->plan, s->device);
    rt_session_average_early(s);
    rt_nvtx_push(s->run->nvtx, "evaluation");
    rt_step_run(s->plan, s->device, RT_PREPARE, 0);
    bool good = run_batches(s, &waited, e);
    rt_nvtx_pop(s->run->nvtx);
    RtMetrics m = rt_metrics_read(s->plan, s->device);
    RtRow test = rt_session_row(s, false, &m);
    rt_session_measure_sums(s, &test,
                            (double)m.count.high + (double)m.count.low);
    rt_metrics_write(s->plan, s->device, &training);
    s->device->times(s->device, &ignored);
    double seconds = rt_seconds() - since;
    rt_session_trace_since(s, "evaluation", since, s->at.step);
    s->budget.evaluation += seconds;
    s->paused += seconds;
    if (!good || rt_signals_caught() != 0)
        return good;
    s->test = test;
    s->test.on = rt_eval_set(s->run);
    if (!s->run->options->eval_only)
        rt_session_update_best(s);
    s->test.stops = is_enough(s, &s->test);
    s->test.samples = rt_eval_split(s->run)->count;
    s->test.seconds = seconds;
    s->test.waited = waited;
    rt_report_row(s->report, &s->test);
    if (!s->run->options->eval_only)
        rt_session_monitor(s);
    // After other evaluations training continues and detects it.
    bool last = s->at.step == s->at.steps || s->test.stops ||
                s->run->options->eval_only;
    return !last || !rt_session_diverged(&s->test, e);
}
