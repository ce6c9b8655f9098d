// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Anomaly: finds the first tensor of a step that is not finite.
//
// The step runs again, and each launch's results are checked before their
// memory is reused.  A kernel's inputs are found by address: the last result
// stored there, a state or an input.

#include "runtime/replay/range.h"
#include "runtime/watch/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Range range_of(const char *from, RtType type, int64_t count) {
    Range r = range_new();
    for (int64_t i = 0; i < count; i++)
        range_add(&r, rt_number(from, type, i));
    return r;
}

// False: no memory.
static bool range_read(RtDevice *d, size_t offset, RtType type, int64_t count,
                       Range *r) {
    size_t bytes = (size_t)count * rt_type_bytes(type);
    char *copy = malloc(bytes + 1);
    if (copy == NULL)
        return false;
    d->read(d, copy, offset, bytes);
    *r = range_of(copy, type, count);
    free(copy);
    return true;
}

static void add_text(RtAnomaly *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_text(RtAnomaly *a, const char *format, ...) {
    size_t length = strlen(a->text);
    va_list list;
    va_start(list, format);
    vsnprintf(a->text + length, sizeof a->text - length, format, list);
    va_end(list);
}

static void add_range(RtAnomaly *a, const char *what, size_t offset,
                      RtType type, int64_t count) {
    Range r;
    char text[RANGE_TEXT];
    if (range_read(a->device, offset, type, count, &r))
        add_text(a, "; %s is %s", what, range_text(text, &r));
}

static int64_t state_count(const RtState *s) {
    return (int64_t)(rt_state_bytes(s) / rt_type_bytes(s->type));
}

static int64_t input_count(const RtInput *in) {
    return (int64_t)(rt_input_bytes(in) / rt_type_bytes(in->type));
}

// The tensor last stored at an address before this launch.
static const RtStored *stored_at(const RtAnomaly *a, size_t offset) {
    for (int i = a->next - 1; i >= 0; i--) {
        const RtStored *t = &a->plan->stored[i];
        if (t->step != a->step)
            break;
        if (t->offset == offset)
            return t->launch < a->launch ? t : NULL;
    }
    return NULL;
}

static void add_input(RtAnomaly *a, size_t offset) {
    const RtStored *t = stored_at(a, offset);
    if (t != NULL) {
        add_range(a, t->what, offset, t->type, t->count);
        return;
    }
    for (int i = 0; i < a->plan->num_states; i++) {
        const RtState *s = &a->plan->state[i];
        if (s->offset == offset && s->kind != RT_RUN && s->kind != RT_METRIC)
            add_range(a, s->name, offset, s->type, state_count(s));
    }
    const RtStep *step = &a->plan->step[a->step];
    for (int i = 0; i < step->num_inputs; i++) {
        const RtInput *in = &step->input[i];
        if (in->offset == offset && in->type != RT_I32)
            add_range(a, in->name, offset, in->type, input_count(in));
    }
}

static void add_inputs(RtAnomaly *a, int kernel, const size_t *arg) {
    int count = kernel < 0 ? 2 : a->plan->kernel[kernel].args;
    for (int i = 0; i < count; i++)
        add_input(a, arg[i]);
}

// ---- launches ----

static void inspect(RtAnomaly *a, const RtStored *t, int kernel,
                    const size_t *arg) {
    Range r;
    if (!range_read(a->device, t->offset, t->type, t->count, &r) ||
        r.nonfinite == 0)
        return;
    a->found = true;
    a->stored = t;
    add_text(
        a,
        "%s is the first tensor that is not finite, in %lld of %lld elements",
        t->what, (long long)r.nonfinite, (long long)t->count);
    if (a->watch.tile == NULL)
        add_inputs(a, kernel, arg);
}

static void launched(RtWatch *w, int kernel, const size_t *arg) {
    RtAnomaly *a = (RtAnomaly *)(void *)w; // watch is its first field
    a->device->sync(a->device);
    for (; a->next < a->plan->num_stored; a->next++) {
        const RtStored *t = &a->plan->stored[a->next];
        if (t->step > a->step || (t->step == a->step && t->launch > a->launch))
            break;
        if (t->step == a->step && !w->absent && !a->found)
            inspect(a, t, kernel, arg);
    }
    a->launch++;
}

void rt_anomaly_begin(RtAnomaly *a, const RtPlan *plan, RtDevice *d,
                      const RtStep *step) {
    *a = (RtAnomaly){.watch.launched = launched,
                     .plan = plan,
                     .device = d,
                     .step = (int)(step - plan->step),
                     .run = a->run + 1};
    d->watch = &a->watch;
}

void rt_anomaly_end(RtAnomaly *a) {
    a->device->watch = NULL;
    for (int i = 0; i < a->plan->num_states && !a->found; i++) {
        const RtState *s = &a->plan->state[i];
        Range r;
        a->found =
            range_read(a->device, s->offset, s->type, state_count(s), &r) &&
            r.nonfinite > 0;
        if (!a->found)
            continue;
        a->state = s;
        add_text(
            a,
            "all results of its kernels are finite except %s, in %lld of %lld "
            "elements",
            s->name, (long long)r.nonfinite, (long long)state_count(s));
    }
}

// ---- states ----

char *rt_states_copy(const RtPlan *plan, RtDevice *d, bool *finite) {
    size_t bytes = 0, at = 0;
    for (int i = 0; i < plan->num_states; i++)
        if (rt_device_holds(d, plan->state[i].offset))
            bytes += rt_state_bytes(&plan->state[i]);
    char *copy = malloc(bytes + 1);
    *finite = true;
    if (copy == NULL)
        return NULL;
    d->sync(d);
    for (int i = 0; i < plan->num_states; i++) {
        const RtState *s = &plan->state[i];
        if (!rt_device_holds(d, s->offset))
            continue;
        d->read(d, copy + at, s->offset, rt_state_bytes(s));
        *finite &= s->kind == RT_DERIVED || s->kind == RT_PARTIAL ||
                   range_of(copy + at, s->type, state_count(s)).nonfinite == 0;
        at += rt_state_bytes(s);
    }
    return copy;
}

void rt_states_restore(const RtPlan *plan, RtDevice *d, const char *copy) {
    for (int i = 0; i < plan->num_states; i++) {
        const RtState *s = &plan->state[i];
        if (!rt_device_holds(d, s->offset))
            continue;
        d->write(d, s->offset, copy, rt_state_bytes(s));
        copy += rt_state_bytes(s);
    }
}
