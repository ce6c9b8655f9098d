// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients: their histograms for --tensorboard, of the update that ends an
// epoch.
//
// A step of their own computes them before each batch of the update, as
// outputs, and changes no state.  Its memory is that of the step that trains,
// so the inputs are put back.

#include "runtime/report/events.h"
#include "runtime/session/session.h"

#include <stdlib.h>
#include <string.h>

// Sums over the batches of an update, of the loss times its scale.
struct RtGradients {
    int count;
    float **sum;    // of each gradient of the step
    double batches; // a short one counts by its share
    bool failed;    // for want of memory
};

static int64_t elements(const RtInput *in) {
    return (int64_t)(rt_input_bytes(in) / rt_type_bytes(in->type));
}

void rt_session_gradients_free(RtSession *s) {
    struct RtGradients *g = s->gradients;
    s->gradients = NULL;
    for (int i = 0; g != NULL && g->sum != NULL && i < g->count; i++)
        free(g->sum[i]);
    if (g != NULL)
        free(g->sum);
    free(g);
}

void rt_session_gradients_begin(RtSession *s) {
    const RtStep *step = rt_step_find(s->plan, RT_GRADIENTS,
                                      rt_time_stage(s->run->trainer, &s->at));
    int64_t next = s->at.step + 1;
    bool ends = next == s->at.steps || next % s->at.epoch_steps == 0;
    // Gradients of other ranks are not here.
    if (step == NULL || !ends || s->run->world != NULL ||
        rt_report_events(s->report) == NULL)
        return;
    struct RtGradients *g = s->gradients = calloc(1, sizeof *g);
    if (g == NULL)
        return;
    g->count = step->num_gradients;
    g->sum = calloc((size_t)g->count + 1, sizeof *g->sum);
    g->failed = g->sum == NULL;
    for (int i = 0; !g->failed && i < g->count; i++) {
        g->sum[i] = calloc((size_t)elements(&step->gradient[i]) + 1,
                           sizeof **g->sum);
        g->failed = g->sum[i] == NULL;
    }
}

// ---- a batch ----

static const RtInput *input_find(const RtStep *step, const char *name) {
    for (int i = 0; i < step->num_inputs; i++)
        if (strcmp(step->input[i].name, name) == 0)
            return &step->input[i];
    return NULL;
}

bool rt_session_inputs_read(RtDevice *d, const RtStep *step, size_t shift,
                            void *copy[RT_MAX_INPUTS]) {
    for (int i = 0; i < RT_MAX_INPUTS; i++)
        copy[i] = NULL;
    d->sync(d);
    for (int i = 0; i < step->num_inputs; i++) {
        size_t bytes = rt_input_bytes(&step->input[i]);
        copy[i] = malloc(bytes + 1);
        if (copy[i] == NULL)
            return false;
        d->read(d, copy[i], step->input[i].offset + shift, bytes);
    }
    return true;
}

void rt_session_inputs_write(RtDevice *d, const RtStep *from, const RtStep *to,
                             size_t shift, void *const copy[RT_MAX_INPUTS]) {
    for (int i = 0; i < from->num_inputs; i++) {
        const RtInput *in = input_find(to, from->input[i].name);
        if (in != NULL)
            d->write(d, in->offset + shift, copy[i], rt_input_bytes(in));
    }
}

void rt_session_inputs_free(void *copy[RT_MAX_INPUTS]) {
    for (int i = 0; i < RT_MAX_INPUTS; i++)
        free(copy[i]);
}

static bool outputs_add(RtDevice *d, const RtStep *step, size_t shift,
                        struct RtGradients *g) {
    for (int i = 0; i < step->num_gradients; i++) {
        const RtInput *out = &step->gradient[i];
        void *value = malloc(rt_input_bytes(out) + 1);
        if (value == NULL)
            return false;
        d->read(d, value, out->offset + shift, rt_input_bytes(out));
        for (int64_t k = 0; k < elements(out); k++)
            g->sum[i][k] += (float)rt_number(value, out->type, k);
        free(value);
    }
    return true;
}

// In lockstep, the inputs of other shards are there, too.
static void run_step(const RtSession *s, const RtStep *step, int shard) {
    if (s->lockstep != NULL)
        rt_lockstep_run_one(s->lockstep, step, shard);
    else
        s->device->run(s->device, step);
}

void rt_session_gradients_add(RtSession *s, const RtStep *trains, int valid,
                              int shard) {
    struct RtGradients *g = s->gradients;
    RtDevice *d = s->device;
    const RtStep *step = rt_step_find(s->plan, RT_GRADIENTS, trains->stage);
    size_t shift = rt_lockstep_shift(s->plan, shard);
    void *copy[RT_MAX_INPUTS];
    if (g == NULL || g->failed)
        return;
    g->failed = !rt_session_inputs_read(d, trains, shift, copy);
    if (!g->failed) {
        rt_session_inputs_write(d, trains, step, shift, copy);
        run_step(s, step, shard);
        d->sync(d);
        g->failed = !outputs_add(d, step, shift, g);
        rt_session_inputs_write(d, trains, trains, shift, copy);
    }
    g->batches += (double)valid / s->run->trainer->batch;
    rt_session_inputs_free(copy);
}

// ---- the update ----

void rt_session_gradients_end(RtSession *s, double loss_scale, int stage) {
    const RtTrainer *t = s->run->trainer;
    struct RtGradients *g = s->gradients;
    const RtStep *step = rt_step_find(s->plan, RT_GRADIENTS, stage);
    for (int i = 0; g != NULL && !g->failed && i < g->count; i++) {
        char name[RT_MAX_KEY + 16];
        double factor = loss_scale > 0 ? 1 / loss_scale : 1;
        int64_t count = elements(&step->gradient[i]);
        if ((t->accumulate > 1 || t->shards > 0) && !t->adds_batches)
            factor /= g->batches;
        for (int64_t k = 0; k < count; k++)
            g->sum[i][k] = (float)(g->sum[i][k] * factor);
        snprintf(name, sizeof name, "gradients/%s", step->gradient[i].name);
        rt_report_histogram(s->report, name, s->at.step, g->sum[i], count);
    }
    rt_session_gradients_free(s);
}
