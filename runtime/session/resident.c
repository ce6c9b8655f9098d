// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Resident: copies the images to the device if they are in memory in the type
// of the model's input and fit.  A batch is then a list of indices.

#include "runtime/session/run.h"

#include <stdio.h>
#include <string.h>

RtEvalSet rt_eval_set(const RtRun *run) {
    return run->data->test.holdout.part == RT_PART_VALIDATION ? RT_ON_VALIDATION
           : run->trainer->eval_train && run->options->predict == NULL
               ? RT_ON_TRAIN
               : RT_ON_TEST;
}

const RtSplit *rt_eval_split(const RtRun *run) {
    bool train = rt_eval_set(run) == RT_ON_TRAIN;
    return train ? &run->data->train : &run->data->test;
}

// Whether the evaluated samples are training images.
static bool is_shared(const RtRun *run) {
    return rt_eval_set(run) != RT_ON_TEST;
}

// Bytes of an image if host and device have the same type; 0: types differ, or
// images are decoded one by one.
static size_t image_bytes(const RtRun *run, const RtSplit *s) {
    RtType type = run->trainer->image.type;
    bool same = (s->image.type == RT_FILE_U8 && type == RT_U8) ||
                (s->image.type == RT_FILE_I32 && type == RT_I32) ||
                (s->image.type == RT_FILE_F32 && type == RT_F32);
    if (!same || s->image.bytes == NULL || s->image.step != s->image.values)
        return 0;
    return s->image.values * rt_type_bytes(type);
}

static bool all_bytes(const RtRun *run, size_t *bytes) {
    const RtSplit *train = &run->data->train, *eval = rt_eval_split(run);
    size_t image = image_bytes(run, train);
    size_t count = (size_t)rt_split_all(train);
    if (!is_shared(run))
        count += (size_t)eval->count;
    return image > 0 && image_bytes(run, eval) == image &&
           !__builtin_mul_overflow(image, count, bytes);
}

static bool keep(const RtRun *run, const RtSplit *s, RtError *e) {
    RtRows rows = {s->image.bytes, image_bytes(run, s), rt_split_all(s)};
    return run->device->make_resident(run->device, &rows, run->trainer->batch,
                                      e);
}

// A tenth of the free memory is left for the libraries.
static bool has_room(const RtRun *run, size_t bytes, size_t *have) {
    *have = run->device->available(run->device);
    return bytes <= *have - *have / 10;
}

// Streams the images; an error if they must be resident.
static bool stream(RtRun *run, bool must, const char *why, RtError *e) {
    if (must)
        return rt_fail(e, EXIT_MEMORY, "--resident=yes: %s", why);
    snprintf(run->data_is, sizeof run->data_is, "images are streamed: %s", why);
    return true;
}

bool rt_resident_keep(RtRun *run, RtError *e) {
    const double mib = 1 << 20;
    const char *option = run->options->resident;
    bool must = strcmp(option, "yes") == 0;
    size_t bytes = 0, have = 0;
    char why[80];
    if (run->device->make_resident == NULL)
        return !must ||
               rt_fail(e, EXIT_USAGE,
                       "--resident=yes: the %s device reads images in place",
                       run->device->name);
    if (strcmp(option, "no") == 0)
        return stream(run, false, "--resident=no", e);
    if (!all_bytes(run, &bytes))
        return stream(run, must,
                      "they are not in memory in the type of the model's input",
                      e);
    if (!has_room(run, bytes, &have)) {
        snprintf(why, sizeof why, "they need %.0f MiB, but %.0f MiB are free",
                 (double)bytes / mib, (double)have / mib);
        return stream(run, must, why, e);
    }
    const RtSplit *eval = rt_eval_split(run);
    if (!keep(run, &run->data->train, e) ||
        (!is_shared(run) && !keep(run, eval, e)))
        return (e->status == EXIT_MEMORY || e->status == EXIT_DEVICE) &&
               !must && stream(run, false, e->text, e);
    run->resident = true;
    snprintf(run->data_is, sizeof run->data_is,
             "images stay on %s: %.1f MiB; a batch is %d indices",
             run->device->name, (double)bytes / mib, run->trainer->batch);
    return true;
}
