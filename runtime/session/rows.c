// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows: the metrics that a run reports after steps and epochs.

#include "runtime/session/session.h"

#include <math.h>
#include <stdlib.h>

static const double SHOW_EVERY = 0.5; // seconds between progress lines

static double value_of(RtSum sum) {
    return (double)sum.high + (double)sum.low;
}

// The sign of a NaN has no meaning, but would be printed.
static double mean_of(RtSum sum, RtSum count) {
    double mean = value_of(sum) / value_of(count);
    return isnan(mean) ? (double)NAN : mean;
}

static RtSum sum_since(RtSum now, RtSum then) {
    double since = value_of(now) - value_of(then);
    float high = (float)since;
    return (RtSum){high, isinf(high) ? 0 : (float)(since - (double)high)};
}

static double epoch_of(const RtSession *s, int64_t step) {
    return (double)step / (double)s->at.epoch_steps;
}

// Estimated seconds to the end of the run, evaluations and checkpoints
// included; NAN before the first step.
static double seconds_left(const RtSession *s) {
    int64_t steps = s->at.step - s->began_at;
    if (steps <= 0 || s->began == 0)
        return (double)NAN;
    return (rt_seconds() - s->began) / (double)steps *
           (double)(s->at.steps - s->at.step);
}

static double share_of_epoch(const RtSession *s) {
    double epoch = epoch_of(s, s->at.step);
    return s->at.steps < s->at.epoch_steps
               ? (double)s->at.step / (double)s->at.steps
               : epoch - floor(epoch);
}

// A row of the steps so far, without its metrics.
static RtRow row_begin(const RtSession *s, bool train) {
    return (RtRow){
        .elapsed = s->elapsed_before + rt_seconds() - s->run->began,
        .left = seconds_left(s),
        .within = share_of_epoch(s),
        .train = train,
        .epoch = epoch_of(s, s->at.step),
        .epochs = epoch_of(s, s->at.steps),
        .step = s->at.step,
        .steps = s->at.steps,
    };
}

static void row_fill(const RtSession *s, RtRow *row, const RtMetrics *m) {
    const RtTrainer *t = s->run->trainer;
    for (int i = 0; i < NUM_METRICS; i++)
        row->metric[i] = NAN;
    row->metric[METRIC_loss] = mean_of(m->loss, m->count);
    if (rt_state_find(s->plan, "metric.correct") != NULL)
        row->metric[METRIC_accuracy] = mean_of(m->correct, m->count);
    if (!row->train && t->metrics >> METRIC_top5 & 1)
        row->metric[METRIC_top5] = mean_of(m->top5, m->count);
    if (t->metrics >> METRIC_perplexity & 1)
        row->metric[METRIC_perplexity] = exp(mean_of(m->loss, m->count));
    row->lr = m->lr;
    bool scaled = row->train && m->scale > 0;
    row->scale = scaled ? m->scale : NAN;
    row->skipped = scaled ? m->skipped : NAN;
}

RtRow rt_session_row(const RtSession *s, bool train, const RtMetrics *m) {
    RtRow row = row_begin(s, train);
    row_fill(s, &row, m);
    return row;
}

void rt_session_begin_row(RtSession *s) {
    s->since = rt_seconds();
    s->waited = s->paused = 0;
    s->samples = 0;
}

bool rt_session_diverged(const RtRow *row, RtError *e) {
    return rt_diverged(row->metric[METRIC_loss], row->scale, row->step,
                       row->epoch, e);
}

static void row_time(const RtSession *s, RtRow *row) {
    row->samples = s->samples;
    row->seconds = rt_seconds() - s->since - s->paused;
    row->waited = s->waited;
}

// The row of the training so far; false if it diverged.
bool rt_session_measure(const RtSession *s, RtRow *row, RtError *e) {
    RtMetrics m = rt_metrics_read(s->plan, s->device);
    *row = rt_session_row(s, true, &m);
    row_time(s, row);
    return m.count.high == 0 || !rt_session_diverged(row, e);
}

// ---- rows with asynchronous metrics ----

static bool report_progress(const RtSession *s, RtRow *row, const RtMetrics *m,
                            RtError *e) {
    row_fill(s, row, m);
    if (m->count.high != 0 && rt_session_diverged(row, e))
        return false;
    rt_report_progress(s->report, row);
    return true;
}

// Reports the steps since the last row of its kind.
static void report_steps(RtSession *s, RtRow *row, const RtMetrics *m) {
    RtMetrics since = *m;
    since.loss = sum_since(m->loss, s->logged.loss);
    since.correct = sum_since(m->correct, s->logged.correct);
    since.count = sum_since(m->count, s->logged.count);
    since.skipped -= s->logged.skipped;
    row_fill(s, row, &since);
    rt_report_row(s->report, row);
    s->logged = *m;
}

bool rt_session_poll_rows(RtSession *s, bool wait, int64_t most, RtError *e) {
    RtMetrics m;
    while (s->requested - s->reported > most &&
           rt_metrics_poll(s->plan, s->device, wait, &m)) {
        RtRow *row = &s->pending_row[s->reported++ % RT_MAX_READBACKS];
        if (row->interval)
            report_steps(s, row, &m);
        else if (!report_progress(s, row, &m, e))
            return false;
    }
    return true;
}

static bool request_row(RtSession *s, bool interval, RtError *e) {
    if (!rt_session_poll_rows(s, true, RT_MAX_READBACKS - 1, e))
        return false;
    RtRow *row = &s->pending_row[s->requested++ % RT_MAX_READBACKS];
    *row = row_begin(s, true);
    row->interval = interval;
    row_time(s, row);
    rt_metrics_request(s->plan, s->device);
    return true;
}

// Requests a row of the last N steps if --log-every N has one due.
bool rt_session_log_steps(RtSession *s, RtError *e) {
    int64_t every = s->run->options->log_every;
    return every == 0 || s->at.step % every != 0 || request_row(s, true, e);
}

bool rt_session_show_progress(RtSession *s, RtError *e) {
    double now = rt_seconds();
    // The clock of another rank would end it at another step.
    if (s->run->options->rank > 0 || now - s->shown < SHOW_EVERY)
        return true;
    s->shown = now;
    return request_row(s, false, e);
}

// The number of steps in the epoch that ends with this step.
static int64_t steps_of_epoch(const RtSession *s) {
    return (s->at.step - 1) % s->at.epoch_steps + 1;
}

// Without it, an epoch that changes nothing looks like slow learning.
static void warn_skipped(const RtSession *s, const RtRow *row) {
    if (row->scale >= 1 && row->skipped >= (double)steps_of_epoch(s))
        rt_report_warn(s->report,
                       "every step of this epoch was skipped because gradients "
                       "were not finite; the loss scale is %.0f and is halved "
                       "by each of them, and below 1 the run ends",
                       row->scale);
}

// Adds the histogram of each parameter.  One that does not fit into memory is
// left out.
static void report_histograms(const RtSession *s) {
    for (int i = 0; i < s->plan->num_states; i++) {
        const RtState *state = &s->plan->state[i];
        size_t bytes = rt_state_bytes(state);
        float *value = NULL;
        if (state->kind == RT_PARAM && state->type == RT_F32)
            value = malloc(bytes);
        if (value == NULL)
            continue;
        s->device->read(s->device, value, state->offset, bytes);
        rt_report_histogram(s->report, state->name, s->at.step, value,
                            (int64_t)(bytes / sizeof *value));
        free(value);
    }
}

bool rt_session_end_epoch(RtSession *s, RtError *e) {
    RtRow row;
    bool good = rt_session_measure(s, &row, e);
    RtMetrics m = rt_metrics_read(s->plan, s->device);
    rt_report_row(s->report, &row);
    if (rt_report_histograms(s->report))
        report_histograms(s);
    warn_skipped(s, &row);
    rt_metrics_write(s->plan, s->device, &(RtMetrics){.lr = m.lr});
    s->logged = (RtMetrics){0};
    rt_session_begin_row(s);
    return good;
}
