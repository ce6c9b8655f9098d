// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Monitor: follows the best values of metrics over the evaluations of a run.
//
// The best value of a metric and its step are states, monitor.METRIC and
// monitor.METRIC.step, so a checkpoint keeps them.  A run that resumes from it
// repeats the evaluation of that step, which then changes nothing.

#include "runtime/session/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- states ----

enum { STATE_BYTES = sizeof(int32_t) };

static const RtState *state_of(const RtSession *s, const char *format,
                               const char *name) {
    char text[RT_NAME_BYTES];
    snprintf(text, sizeof text, format, name);
    return rt_state_find(s->plan, text);
}

static int64_t step_read(const RtSession *s, const RtState *from) {
    int32_t step = -1;
    s->device->read(s->device, &step, from->offset, STATE_BYTES);
    return step;
}

static float number_read(const RtSession *s, const RtState *from) {
    float value = 0;
    s->device->read(s->device, &value, from->offset, STATE_BYTES);
    return value;
}

static void state_write(const RtSession *s, const RtState *to,
                        const void *value) {
    s->device->write(s->device, to->offset, value, STATE_BYTES);
}

// ---- the best evaluation ----

int64_t rt_session_best(const RtSession *s, const char *metric, double *value) {
    *value = (double)number_read(s, state_of(s, "monitor.%s", metric));
    return step_read(s, state_of(s, "monitor.%s.step", metric));
}

static bool is_better(const char *metric, float value, float best) {
    return metric_info[metric_find(metric)].higher_is_better ? value > best
                                                             : value < best;
}

// Compares the evaluation with the best one before it.
static void update_best(const RtSession *s, const char *metric) {
    double best;
    int64_t step = rt_session_best(s, metric, &best);
    float value = (float)rt_session_metric(s, &s->test, metric);
    if (isnan(value) || (step >= 0 && !is_better(metric, value, (float)best)))
        return;
    int32_t now = (int32_t)s->at.step;
    state_write(s, state_of(s, "monitor.%s", metric), &value);
    state_write(s, state_of(s, "monitor.%s.step", metric), &now);
}

// Whether a time has passed since the best evaluation, and since `from`.
static bool has_passed(const RtSession *s, const char *metric, int64_t from,
                       RtTime patience) {
    double value;
    int64_t step = rt_session_best(s, metric, &value);
    int64_t since = s->at.step - (step > from ? step : from);
    return (double)since + 1e-6 >= rt_time_steps(patience, &s->at);
}

bool rt_session_stalled(const RtSession *s, const char *metric,
                        RtTime patience) {
    return has_passed(s, metric, 0, patience);
}

// ---- effects ----

static void update_plateau(const RtSession *s, const RtPlateau *p) {
    const RtState *state = rt_state_find(s->plan, p->state);
    const RtState *reduced = state_of(s, "%s.step", p->state);
    if (!has_passed(s, p->metric, step_read(s, reduced), p->patience))
        return;
    float factor = number_read(s, state) * (float)p->factor;
    int32_t now = (int32_t)s->at.step;
    state_write(s, state, &factor);
    state_write(s, reduced, &now);
    if (!s->run->options->quiet)
        rt_report_print(s->report,
                        "%s has not improved for %.6g steps: %s is now %.6g "
                        "times its start",
                        p->metric, rt_time_steps(p->patience, &s->at),
                        p->state + strlen("run."), (double)factor);
}

// A failure loses nothing that training needs.
static void save_best(RtSession *s) {
    RtError e;
    double value, since = rt_seconds();
    if (rt_session_best(s, s->run->trainer->best, &value) != s->at.step)
        return;
    if (s->run->options->rank > 0) {
        rt_owners_serve(s->run->owners);
        return;
    }
    if (!rt_retention_holds(&s->retention))
        rt_report_warn(s->report,
                       "the best checkpoint is not saved: %s is another folder "
                       "than the run began with",
                       s->best.folder);
    else if (!rt_retention_save(&s->best, s->checkpoint, &s->at, &e))
        rt_report_warn(s->report, "the best checkpoint is not saved: %s",
                       e.text);
    rt_owners_end(s->run->owners);
    s->budget.checkpoints += rt_seconds() - since;
    s->paused += rt_seconds() - since;
}

void rt_session_update_best(const RtSession *s) {
    const RtTrainer *t = s->run->trainer;
    if (t->stop.patience.count > 0)
        update_best(s, t->stop.metric);
    if (t->best != NULL)
        update_best(s, t->best);
    for (int i = 0; i < t->num_plateaus; i++)
        update_best(s, t->plateau[i].metric);
}

void rt_session_monitor(RtSession *s) {
    const RtTrainer *t = s->run->trainer;
    for (int i = 0; i < t->num_plateaus; i++)
        update_plateau(s, &t->plateau[i]);
    if (t->best != NULL)
        save_best(s);
}
