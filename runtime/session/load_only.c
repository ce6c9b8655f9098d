// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Load only: loads an epoch or more without a device, to measure loading.
//
// Batches are gathered as for streamed images, consumed in order and released.
// Slots are in ordinary memory.

#include "runtime/session/session.h"

#include <stdlib.h>

// The length of --epochs, one epoch by default.
static bool plan_length(const RtRun *run, RtProgress *p, RtError *e) {
    RtOptions o = *run->options;
    if (o.epochs == 0)
        o.epochs = 1;
    return rt_progress_plan(run->trainer, &o, run->data, p, e);
}

static int64_t sample_bytes(const RtLoaderConfig *l) {
    size_t bytes = l->split->image.values * rt_type_bytes(l->image) +
                   l->split->label.values * rt_type_bytes(l->label);
    for (int i = 0; i < l->num_arrays; i++)
        bytes += l->split->array[i].values *
                 rt_type_bytes(l->array[i].shape.type);
    return (int64_t)bytes;
}

static bool take_batches(RtLoader *l, const RtLoaderConfig *plan,
                         RtLoadStats *to, RtError *e) {
    double waited = 0;
    for (int64_t i = plan->first; i < plan->last; i++) {
        const RtBatch *b = rt_loader_next(l, false, &waited, e);
        if (b == NULL)
            return false;
        to->batches++;
        to->samples += b->valid;
        rt_loader_release(l);
    }
    return true;
}

static bool load(const RtRun *run, RtLoadStats *to, RtError *e) {
    RtProgress p;
    if (!plan_length(run, &p, e))
        return false;
    RtLoaderConfig plan = rt_session_plan_train(run, &p);
    double began = rt_seconds();
    RtLoader *l = rt_loader_open(&plan, e);
    if (l == NULL)
        return false;
    bool good = take_batches(l, &plan, to, e);
    if (rt_loader_stalled(l))
        rt_leave(rt_print_error(e)); // with no result
    to->seconds = rt_seconds() - began;
    to->busy = rt_loader_busy(l);
    to->threads = rt_loader_threads(l);
    rt_loader_close(l);
    to->bytes = to->samples * sample_bytes(&plan);
    to->epochs = (double)p.steps / (double)p.epoch_steps;
    to->step = p.steps;
    return good;
}

bool rt_load_only(const RtRun *run, RtError *e) {
    RtLoadStats loaded = {
        .batch = run->trainer->batch,
        .opening = run->laps->part[RT_START_DATA],
        .from_files = rt_split_decodes(&run->data->train),
    };
    RtReport *r =
        rt_report_open(run->options, NULL,
                       run->trainer->image.rank == 3 ? "images" : "samples",
                       run->trainer, -1, e);
    if (r == NULL)
        return false;
    bool good = load(run, &loaded, e);
    if (good)
        rt_report_load_stats(r, &loaded);
    if (!rt_report_close(r) && good)
        good = rt_fail(e, EXIT_IO, "the results are not complete");
    return good;
}
