// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Find: opens the data set of the options or the model file.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"
#include "runtime/machine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// N of `synthetic:N`, 0 for `synthetic` alone, -1 for any other path.
static int64_t synthetic_samples(const char *path) {
    static const char word[] = "synthetic";
    size_t length = sizeof word - 1;
    if (path == NULL || strncmp(path, word, length) != 0)
        return -1;
    const char *number = path + length + 1;
    if (path[length] == '\0')
        return 0;
    char *end;
    if (path[length] != ':' || *number < '1' || *number > '9')
        return -1;
    long samples = strtol(number, &end, 10);
    return *end == '\0' && samples <= INT32_MAX ? samples : -1;
}

static bool reads_images(const RtTrainer *t) {
    return strcmp(t->data_format, "image_folder") == 0 ||
           strcmp(t->data_format, "webdataset") == 0 ||
           strcmp(t->data_format, "lmdb") == 0;
}

static bool read_parts(const RtTrainer *t, const RtOptions *o, RtData *d,
                       const RtFiles *files, RtError *e) {
    RtDataSpec spec = {.image = t->image,
                       .label = t->label,
                       .image_name = t->image_name,
                       .array = t->array,
                       .num_arrays = t->num_arrays,
                       .classes = t->classes,
                       .sets_classes = t->sets_classes,
                       .ignored = t->ignored,
                       .setting = t->data_setting,
                       .num_settings = t->num_data_settings,
                       .max_bad_files = o->bad_samples,
                       .max_pixels = o->max_image_pixels,
                       .test_optional = o->validation.samples > 0 ||
                                        o->validation.percent > 0 ||
                                        o->load_only};
    const char *path = o->data != NULL ? o->data : t->data_path;
    bool draws = strcmp(t->data_format, "synthetic") == 0;
    int64_t samples = synthetic_samples(o->data);
    if (draws && o->data != NULL && samples < 0)
        return rt_fail(e, EXIT_USAGE,
                       "--data %s: this trainer generates its data and takes "
                       "only synthetic or synthetic:N",
                       path);
    bool table = strcmp(t->data_format, "image_table") == 0;
    if ((o->bad_samples > 0 && !reads_images(t)) ||
        (o->max_image_pixels > 0 && !reads_images(t) && !table))
        return rt_fail(e, EXIT_USAGE,
                       "--%s applies to image files, but this trainer takes %s",
                       o->bad_samples > 0 ? "bad-samples" : "max-image-pixels",
                       t->data_format);
    if (draws || samples >= 0) {
        spec.synthetic = samples > 0 ? samples : 0;
        return rt_data_open(d, "synthetic", "", &spec, files, e);
    }
    if (access(path, F_OK) != 0 && strncmp(path, "synthetic:", 10) == 0)
        return rt_fail(e, EXIT_USAGE,
                       "--data %s: expected a number of samples from 1, as "
                       "in synthetic:1000",
                       path);
    if (access(path, F_OK) != 0)
        return rt_fail(e, EXIT_DATA,
                       "no data in %s; name its folder with --data DIR, or use "
                       "--data synthetic to try the model without",
                       path);
    return rt_data_open(d, t->data_format, path, &spec, files, e);
}

bool rt_data_find(const RtTrainer *t, const RtOptions *o, RtData *d,
                  const RtFiles *files, RtError *e) {
    if (!read_parts(t, o, d, files, e))
        return false;
    if (rt_data_hold_out(d, &o->validation, e))
        return true;
    rt_data_close(d);
    return false;
}

bool rt_data_check(const RtTrainer *t, const RtOptions *o, RtError *e) {
    RtData d;
    if (!rt_data_find(t, o, &d, &rt_system_files, e))
        return false;
    rt_data_close(&d);
    return true;
}
