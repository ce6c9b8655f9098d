// Data: opens a data set by the name of its format.  Samples are kept in
// memory as bytes, image after image, rows of pixels of channels.

#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    bool (*read)(RtData *d, const char *path, const RtSample *shape,
                 const RtFiles *files, RtError *e);
} Format;

static const Format formats[] = {
    {"cifar10", rt_cifar10_read},
    {"idx", rt_idx_read},
    {"synthetic", rt_synthetic_draw},
};

bool rt_split_fetch(const RtSplit *s, int64_t sample, uint8_t *to, RtError *e) {
    (void)e;
    memcpy(to, s->image + (size_t)sample * s->image_bytes, s->image_bytes);
    return true;
}

bool rt_split_reserve(RtSplit *s, int64_t count, const RtSample *shape,
                      RtError *e) {
    size_t bytes;
    s->count = count;
    s->fetch = rt_split_fetch;
    if (__builtin_mul_overflow((size_t)shape->h, shape->w, &s->image_bytes) ||
        __builtin_mul_overflow(s->image_bytes, shape->c, &s->image_bytes) ||
        __builtin_mul_overflow(s->image_bytes, count, &bytes))
        return rt_fail(e, EXIT_MEMORY, "the data set is too large");
    if (bytes > rt_memory_available())
        return rt_fail(e, EXIT_MEMORY,
                       "%lld samples of %zu bytes need %zu MiB of memory, "
                       "there are %zu MiB",
                       (long long)count, s->image_bytes, bytes >> 20,
                       rt_memory_available() >> 20);
    s->image = malloc(bytes > 0 ? bytes : 1);
    s->label = calloc(count > 0 ? (size_t)count : 1, sizeof *s->label);
    if (s->image == NULL || s->label == NULL)
        return rt_fail(e, EXIT_MEMORY,
                       "no memory for %lld samples of %zu bytes",
                       (long long)count, s->image_bytes);
    return true;
}

void rt_data_close(RtData *d) {
    free(d->train.image);
    free(d->train.label);
    free(d->test.image);
    free(d->test.label);
    *d = (RtData){0};
}

bool rt_data_open(RtData *d, const char *format, const char *path,
                  const RtSample *shape, const RtFiles *files, RtError *e) {
    *d = (RtData){0};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, format) != 0)
            continue;
        bool good = formats[i].read(d, path, shape, files, e);
        if (!good)
            rt_data_close(d);
        return good;
    }
    return rt_fail(e, EXIT_DATA, "this trainer cannot read %s data", format);
}
