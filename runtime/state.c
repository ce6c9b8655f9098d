// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// State: the runtime's writes to and reads from tensors that live from step to
// step.

#include "runtime/runtime.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 4096 };

const RtState *rt_state_find(const RtPlan *plan, const char *name) {
    for (int i = 0; i < plan->num_states; i++)
        if (strcmp(plan->state[i].name, name) == 0)
            return &plan->state[i];
    return NULL;
}

size_t rt_state_bytes(const RtState *s) {
    size_t bytes = rt_type_bytes(s->type);
    for (int i = 0; i < s->rank; i++)
        bytes *= (size_t)s->dim[i];
    return bytes;
}

// One value as bytes.  States of 16 bits are copies that derive makes, so only
// zero is needed.
static void put_value(RtType type, double value, char to[4]) {
    float f = (float)value;
    int32_t i = (int32_t)value;
    memset(to, 0, 4);
    if (type == RT_F32)
        memcpy(to, &f, sizeof f);
    else if (type == RT_I32)
        memcpy(to, &i, sizeof i);
    else if (type == RT_U8 || type == RT_BOOL)
        to[0] = (char)i;
}

// Each rank fills the states that it holds.
static void fill(const RtState *s, RtDevice *d, double value) {
    char piece[PIECE], one[4];
    if (!rt_device_holds(d, s->offset))
        return;
    size_t width = rt_type_bytes(s->type), bytes = rt_state_bytes(s);
    put_value(s->type, value, one);
    for (size_t at = 0; at < PIECE; at += width)
        memcpy(piece + at, one, width);
    for (size_t at = 0; at < bytes; at += PIECE)
        d->write(d, s->offset + at, piece,
                 bytes - at < PIECE ? bytes - at : PIECE);
}

void rt_state_set(const RtPlan *plan, RtDevice *d, const char *name,
                  double value) {
    const RtState *s = rt_state_find(plan, name);
    if (s != NULL)
        fill(s, d, value);
}

void rt_states_clear(const RtPlan *plan, RtDevice *d) {
    for (int i = 0; i < plan->num_states; i++)
        fill(&plan->state[i], d, 0);
}

void rt_states_start(const RtPlan *plan, RtDevice *d, const RtProgress *p) {
    for (int i = 0; i < plan->num_states; i++)
        if (plan->state[i].initial != 0)
            fill(&plan->state[i], d, plan->state[i].initial);
    rt_state_set(plan, d, "run.seed", (double)p->seed);
    rt_state_set(plan, d, "run.steps", (double)p->steps);
    rt_state_set(plan, d, "run.epoch_steps", (double)p->epoch_steps);
    rt_state_set(plan, d, "run.step", 0);
}

static const struct {
    const char *name;
    size_t field;
    bool read_only; // not a metric, though read with them
} metrics[] = {
    {"metric.loss", offsetof(RtMetrics, loss.high), false},
    {"metric.loss.low", offsetof(RtMetrics, loss.low), false},
    {"metric.correct", offsetof(RtMetrics, correct.high), false},
    {"metric.correct.low", offsetof(RtMetrics, correct.low), false},
    {"metric.top5", offsetof(RtMetrics, top5.high), false},
    {"metric.top5.low", offsetof(RtMetrics, top5.low), false},
    {"metric.count", offsetof(RtMetrics, count.high), false},
    {"metric.count.low", offsetof(RtMetrics, count.low), false},
    {"metric.lr", offsetof(RtMetrics, lr), false},
    {"metric.skipped", offsetof(RtMetrics, skipped), false},
    {"run.loss_scale", offsetof(RtMetrics, scale), true},
};
enum { NUM_METRICS = sizeof metrics / sizeof metrics[0] };
_Static_assert(sizeof metrics / sizeof metrics[0] <= RT_MAX_READBACK_VALUES,
               "too many metrics for one asynchronous read");

RtMetrics rt_metrics_read(const RtPlan *plan, RtDevice *d) {
    RtMetrics m = {0};
    d->sync(d);
    for (int i = 0; i < NUM_METRICS; i++) {
        const RtState *s = rt_state_find(plan, metrics[i].name);
        if (s != NULL)
            d->read(d, (char *)&m + metrics[i].field, s->offset, sizeof(float));
    }
    return m;
}

bool rt_diverged(double loss, double scale, int64_t step, double epoch,
                 RtError *e) {
    if (!isfinite(loss))
        rt_fail(e, EXIT_DIVERGED,
                "the loss is %s after step %" PRId64 ", epoch %.2f",
                isnan(loss) ? "not a number" : "infinite", step, epoch);
    else if (scale < 1)
        rt_fail(e, EXIT_DIVERGED,
                "gradients are not finite at the smallest loss scale, 1, after "
                "step %" PRId64 ", epoch %.2f; build with precision=bf16 or "
                "f32, which have a larger range than f16",
                step, epoch);
    else
        return false;
    return true;
}

void rt_metrics_request(const RtPlan *plan, RtDevice *d) {
    size_t from[NUM_METRICS];
    int count = 0;
    for (int i = 0; i < NUM_METRICS; i++) {
        const RtState *s = rt_state_find(plan, metrics[i].name);
        if (s != NULL)
            from[count++] = s->offset;
    }
    d->request_readback(d, from, count);
}

bool rt_metrics_poll(const RtPlan *plan, RtDevice *d, bool wait, RtMetrics *m) {
    float value[NUM_METRICS];
    int count = 0;
    if (!d->poll_readback(d, value, wait))
        return false;
    *m = (RtMetrics){0};
    for (int i = 0; i < NUM_METRICS; i++)
        if (rt_state_find(plan, metrics[i].name) != NULL)
            memcpy((char *)m + metrics[i].field, &value[count++],
                   sizeof(float));
    return true;
}

static bool is_in_metrics(const RtState *s) {
    for (int i = 0; i < NUM_METRICS; i++)
        if (strcmp(metrics[i].name, s->name) == 0)
            return true;
    return false;
}

void rt_metrics_clear_sums(const RtPlan *plan, RtDevice *d) {
    for (int i = 0; i < plan->num_states; i++)
        if (plan->state[i].kind == RT_METRIC && !is_in_metrics(&plan->state[i]))
            fill(&plan->state[i], d, 0);
}

void rt_metrics_write(const RtPlan *plan, RtDevice *d, const RtMetrics *m) {
    for (int i = 0; i < NUM_METRICS; i++) {
        const RtState *s = rt_state_find(plan, metrics[i].name);
        if (s != NULL && !metrics[i].read_only)
            d->write(d, s->offset, (const char *)m + metrics[i].field,
                     sizeof(float));
    }
}
