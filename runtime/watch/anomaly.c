// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blame: the first value of a step that is not finite.
//
// The step is run again, launch by launch, and what each leaves is looked at
// before its memory is used again.  What a kernel has read is found by its
// addresses: what was last left there, or a state or an input.

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

// false: no memory.
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

// ---- what a launch has read ----

static void add_text(RtAnomaly *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_text(RtAnomaly *b, const char *format, ...) {
    size_t length = strlen(b->text);
    va_list list;
    va_start(list, format);
    vsnprintf(b->text + length, sizeof b->text - length, format, list);
    va_end(list);
}

static void add_range(RtAnomaly *b, const char *what, size_t offset,
                      RtType type, int64_t count) {
    Range r;
    char text[RANGE_TEXT];
    if (range_read(b->device, offset, type, count, &r))
        add_text(b, "; %s is %s", what, range_text(text, &r));
}

static int64_t state_count(const RtState *s) {
    return (int64_t)(rt_state_bytes(s) / rt_type_bytes(s->type));
}

static int64_t input_count(const RtInput *in) {
    return (int64_t)(rt_input_bytes(in) / rt_type_bytes(in->type));
}

// What was last left at an address before this launch.
static const RtStored *stored_at(const RtAnomaly *b, size_t offset) {
    for (int i = b->next - 1; i >= 0; i--) {
        const RtStored *t = &b->plan->stored[i];
        if (t->step != b->step)
            break;
        if (t->offset == offset)
            return t->launch < b->launch ? t : NULL;
    }
    return NULL;
}

static void add_input(RtAnomaly *b, size_t offset) {
    const RtStored *t = stored_at(b, offset);
    if (t != NULL) {
        add_range(b, t->what, offset, t->type, t->count);
        return;
    }
    for (int i = 0; i < b->plan->num_states; i++) {
        const RtState *s = &b->plan->state[i];
        if (s->offset == offset && s->kind != RT_RUN && s->kind != RT_METRIC)
            add_range(b, s->name, offset, s->type, state_count(s));
    }
    const RtStep *step = &b->plan->step[b->step];
    for (int i = 0; i < step->num_inputs; i++) {
        const RtInput *in = &step->input[i];
        if (in->offset == offset && in->type != RT_I32)
            add_range(b, in->name, offset, in->type, input_count(in));
    }
}

static void add_inputs(RtAnomaly *b, int kernel, const size_t *arg) {
    int count = kernel < 0 ? 2 : b->plan->kernel[kernel].args;
    for (int i = 0; i < count; i++)
        add_input(b, arg[i]);
}

// ---- launches ----

static void inspect(RtAnomaly *b, const RtStored *t, int kernel,
                    const size_t *arg) {
    Range r;
    if (!range_read(b->device, t->offset, t->type, t->count, &r) ||
        r.nonfinite == 0)
        return;
    b->found = true;
    b->stored = t;
    add_text(
        b,
        "%s is the first tensor that is not finite, in %lld of %lld elements",
        t->what, (long long)r.nonfinite, (long long)t->count);
    add_inputs(b, kernel, arg);
}

static void launched(RtWatch *w, int kernel, const size_t *arg) {
    RtAnomaly *b = (RtAnomaly *)(void *)w; // watch is its first field
    b->device->sync(b->device);
    for (; b->next < b->plan->num_stored; b->next++) {
        const RtStored *t = &b->plan->stored[b->next];
        if (t->step > b->step || (t->step == b->step && t->launch > b->launch))
            break;
        if (t->step == b->step && !w->absent && !b->found)
            inspect(b, t, kernel, arg);
    }
    b->launch++;
}

void rt_anomaly_begin(RtAnomaly *b, const RtPlan *plan, RtDevice *d,
                      const RtStep *step) {
    *b = (RtAnomaly){.watch.launched = launched,
                     .plan = plan,
                     .device = d,
                     .step = (int)(step - plan->step),
                     .run = b->run + 1};
    d->watch = &b->watch;
}

void rt_anomaly_end(RtAnomaly *b) {
    b->device->watch = NULL;
    for (int i = 0; i < b->plan->num_states && !b->found; i++) {
        const RtState *s = &b->plan->state[i];
        Range r;
        b->found =
            range_read(b->device, s->offset, s->type, state_count(s), &r) &&
            r.nonfinite > 0;
        if (!b->found)
            continue;
        b->state = s;
        add_text(
            b,
            "all results of its kernels are finite except %s, in %lld of %lld "
            "elements",
            s->name, (long long)r.nonfinite, (long long)state_count(s));
    }
}

// ---- states ----

char *rt_states_copy(const RtPlan *plan, RtDevice *d, bool *finite) {
    size_t bytes = 0, at = 0;
    for (int i = 0; i < plan->num_states; i++)
        bytes += rt_state_bytes(&plan->state[i]);
    char *copy = malloc(bytes + 1);
    *finite = true;
    if (copy == NULL)
        return NULL;
    d->sync(d);
    for (int i = 0; i < plan->num_states; i++) {
        const RtState *s = &plan->state[i];
        d->read(d, copy + at, s->offset, rt_state_bytes(s));
        *finite &= s->kind == RT_DERIVED ||
                   range_of(copy + at, s->type, state_count(s)).nonfinite == 0;
        at += rt_state_bytes(s);
    }
    return copy;
}

void rt_states_restore(const RtPlan *plan, RtDevice *d, const char *copy) {
    for (int i = 0; i < plan->num_states; i++) {
        const RtState *s = &plan->state[i];
        d->write(d, s->offset, copy, rt_state_bytes(s));
        copy += rt_state_bytes(s);
    }
}
