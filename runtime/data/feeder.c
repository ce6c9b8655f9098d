// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Feeder: submits batches of a loader to a device.
//
// A device may read a batch after submit has returned, so its slot is released
// to the loader later: when the copy has completed, or, to keep the loader
// supplied, when RT_MAX_IN_FLIGHT others are in flight.  That is the main
// loop's only wait for the device.

#include "runtime/data/data.h"

#include <string.h>

void rt_feeder_open(RtFeeder *f, const RtPlan *plan, RtDevice *d,
                    RtLoader *loader) {
    *f = (RtFeeder){.plan = plan, .device = d, .loader = loader};
}

bool rt_feeder_close(RtFeeder *f) {
    bool ended = rt_loader_close(f->loader);
    *f = (RtFeeder){0};
    return ended;
}

// The batch's data for an input; names are those of ir/program.h.
static const void *batch_part(const RtBatch *b, const char *name) {
    if (strcmp(name, "image") == 0)
        return b->image;
    if (strcmp(name, "label") == 0)
        return b->label;
    for (int i = 0; i < b->num_arrays; i++)
        if (strcmp(name, b->named[i].input) == 0)
            return b->array[i];
    if (strcmp(name, "shard") == 0)
        return &b->shard;
    return strcmp(name, "index") == 0 ? b->index : &b->valid;
}

// Resident images are passed as indices.
static RtPiece piece_of(const RtFeeder *f, const RtInput *in,
                        const RtBatch *b) {
    if (f->resident > 0 && strcmp(in->name, "image") == 0)
        return (RtPiece){in->offset + f->shift, b->index,
                         (size_t)in->dim[0] * sizeof *b->index, f->resident};
    return (RtPiece){in->offset + f->shift, batch_part(b, in->name),
                     rt_input_bytes(in), 0};
}

static int64_t submit(const RtFeeder *f, const RtStep *step, const RtBatch *b) {
    RtPiece piece[RT_MAX_INPUTS];
    int count = 0;
    for (int i = 0; step != NULL && i < step->num_inputs; i++)
        piece[count++] = piece_of(f, &step->input[i], b);
    return f->device->submit_batch(f->device, piece, count);
}

// Releases completed batches, and waits until at most `most` are in flight; a
// repeated batch is never released.
static void release_completed(RtFeeder *f, int most) {
    while (f->in_flight > 0 && f->first == NULL) {
        int64_t oldest = f->number[f->next % RT_MAX_IN_FLIGHT];
        int64_t least = f->in_flight > most ? oldest : 0;
        if (f->device->completed_batches(f->device, least) < oldest)
            return;
        rt_loader_release(f->loader);
        f->next++;
        f->in_flight--;
    }
}

// A repeated batch is not released, so nothing is waited for.
static void submit_again(const RtFeeder *f, const RtStep *step,
                         RtSubmitted *done) {
    double since = rt_seconds();
    done->valid = f->first->valid;
    submit(f, step, f->first);
    done->copying = rt_seconds() - since;
}

bool rt_feeder_submit(RtFeeder *f, RtStepKind kind, int stage, bool more,
                      RtSubmitted *done, RtError *e) {
    const RtStep *step = rt_step_find(f->plan, kind, stage);
    *done = (RtSubmitted){0};
    if (f->first != NULL) {
        submit_again(f, step, done);
        return true;
    }
    double began = rt_seconds();
    release_completed(f, RT_MAX_IN_FLIGHT - 1);
    done->device_wait = rt_seconds() - began;
    const RtBatch *b = rt_loader_next(f->loader, f->partly, &done->waited, e);
    if (b == NULL)
        return false;
    double since = rt_seconds();
    done->valid = b->valid;
    f->first = f->repeats ? b : NULL;
    f->partly = more;
    f->number[(f->next + f->in_flight++) % RT_MAX_IN_FLIGHT] =
        submit(f, step, b);
    done->copying = rt_seconds() - since;
    release_completed(f, RT_MAX_IN_FLIGHT);
    return true;
}
