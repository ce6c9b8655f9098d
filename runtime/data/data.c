// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data: opens a data set by the name of its format.  Numbers stay in memory in
// the type of the file and are converted when a batch is filled.

#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *name;
    RtFormat *read;
} formats[] = {
    {"cifar10", rt_cifar10_read},
    {"cifar100", rt_cifar100_read},
    {"idx", rt_idx_read},
    {"npy", rt_npy_read},
    {"table", rt_table_read},
    {"image_folder", rt_image_folder_read},
    {"webdataset", rt_webdataset_read},
    {"lmdb", rt_lmdb_read},
    {"image_table", rt_image_table_read},
    {"tokens", rt_tokens_read},
    {"synthetic", rt_synthetic_draw},
};

int64_t rt_setting(const RtDataSpec *spec, const char *name,
                   int64_t otherwise) {
    for (int i = 0; i < spec->num_settings; i++)
        if (strcmp(spec->setting[i].name, name) == 0)
            return spec->setting[i].value;
    return otherwise;
}

const char *rt_setting_text(const RtDataSpec *spec, const char *name) {
    for (int i = 0; i < spec->num_settings; i++)
        if (strcmp(spec->setting[i].name, name) == 0)
            return spec->setting[i].text;
    return "";
}

size_t rt_shape_values(const RtShape *s) {
    size_t values = 1;
    for (int i = 0; i < s->rank; i++)
        values *= (size_t)s->dim[i];
    return values;
}

static int next_dim(int i, int rank, const int64_t *dim) {
    while (i < rank && dim[i] == 1)
        i++;
    return i;
}

bool rt_shape_same(const RtShape *s, int rank, const int64_t *dim) {
    int a = next_dim(0, s->rank, s->dim), b = next_dim(0, rank, dim);
    while (a < s->rank && b < rank && s->dim[a] == dim[b]) {
        a = next_dim(a + 1, s->rank, s->dim);
        b = next_dim(b + 1, rank, dim);
    }
    return a >= s->rank && b >= rank;
}

const char *rt_shape_text(char *to, size_t room, int rank, const int64_t *dim) {
    snprintf(to, room, rank > 0 ? "" : "one number");
    for (int i = 0; i < rank; i++) {
        size_t used = strlen(to);
        snprintf(to + used, room - used, "%s%lld", i > 0 ? "x" : "",
                 (long long)dim[i]);
    }
    return to;
}

bool rt_fail_classes(RtError *e, const RtDataSpec *spec, int64_t classes,
                     const char *format, ...) {
    char why[RT_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return spec->sets_classes && classes > spec->classes
               ? rt_fail(e, EXIT_DATA, "%s: build it with --set classes=%lld",
                         why, (long long)classes)
               : rt_fail(e, EXIT_DATA, "%s", why);
}

// A dangling link exists: its target is missing.
bool rt_lacks_test(const RtDataSpec *spec, const char *folder,
                   const char *const *name) {
    struct stat found;
    bool any = !spec->test_optional;
    for (; !any && *name != NULL; name++) {
        char *path = rt_path("%s/%s", folder, *name);
        any = path == NULL || lstat(path, &found) == 0 || errno != ENOENT;
        free(path);
    }
    return !any;
}

bool rt_test_found(const RtDataSpec *spec, const char *folder, const char *name,
                   RtError *e) {
    struct stat found;
    char *path = rt_path("%s/%s", folder, name);
    bool good = path == NULL || lstat(path, &found) == 0 || errno != ENOENT ||
                rt_fail(e, EXIT_DATA, "%s does not exist: add it%s", path,
                        spec->test_optional
                            ? ""
                            : ", or hold samples out with --validation=10%");
    free(path);
    return good;
}

// ---- numbers ----

size_t rt_file_type_bytes(RtFileType t) {
    static const size_t bytes[] = {[RT_FILE_U8] = 1,
                                   [RT_FILE_U16] = 2,
                                   [RT_FILE_I32] = 4,
                                   [RT_FILE_F32] = 4};
    return bytes[t];
}

bool rt_file_type_fits(RtFileType t, RtType type) {
    return type == RT_F32   ? true
           : type == RT_I32 ? t != RT_FILE_F32
                            : type == RT_U8 && t == RT_FILE_U8;
}

static double value_at(const uint8_t *bytes, size_t i, RtFileType type) {
    uint16_t half;
    int32_t whole;
    switch (type) {
    case RT_FILE_U8:
        return bytes[i];
    case RT_FILE_U16:
        memcpy(&half, bytes + i * sizeof half, sizeof half);
        return half;
    default:
        memcpy(&whole, bytes + i * sizeof whole, sizeof whole);
        return whole;
    }
}

// Backwards, as the numbers lie at the start of the buffer.
void rt_file_type_widen(void *room, size_t count, RtFileType from, RtType to) {
    uint8_t *bytes = room;
    bool same = to == RT_U8 || (from == RT_FILE_F32 && to == RT_F32) ||
                (from == RT_FILE_I32 && to == RT_I32);
    for (size_t i = count; !same && i-- > 0;) {
        double value = value_at(bytes, i, from);
        float real = (float)value;
        int32_t whole = (int32_t)value;
        memcpy(bytes + i * sizeof whole,
               to == RT_F32 ? (const void *)&real : &whole, sizeof whole);
    }
}

// ---- memory ----

bool rt_column_reserve(RtColumn *c, RtFileType type, size_t values,
                       int64_t count, RtError *e) {
    size_t bytes, sample;
    *c = (RtColumn){.type = type, .values = values, .step = values};
    if (__builtin_mul_overflow(values, rt_file_type_bytes(type), &sample) ||
        __builtin_mul_overflow(sample, count, &bytes))
        return rt_fail(e, EXIT_MEMORY, "the data set is too large");
    if (bytes > rt_memory_available())
        return rt_fail(e, EXIT_MEMORY,
                       "%lld samples of %zu bytes need %zu MiB of memory, but "
                       "only %zu MiB are free",
                       (long long)count, sample, bytes >> 20,
                       rt_memory_available() >> 20);
    c->bytes = malloc(bytes > 0 ? bytes : 1);
    return c->bytes != NULL ||
           rt_fail(e, EXIT_MEMORY,
                   "out of memory for %lld samples of %zu bytes",
                   (long long)count, sample);
}

uint8_t *rt_column_at(const RtColumn *c, int64_t sample) {
    return c->bytes + (size_t)sample * c->step * rt_file_type_bytes(c->type);
}

bool rt_split_fetch(const RtSplit *s, int64_t sample, uint8_t *to, RtError *e) {
    (void)e;
    memcpy(to, rt_column_at(&s->image, sample),
           s->image.values * rt_file_type_bytes(s->image.type));
    return true;
}

bool rt_split_reserve(RtSplit *s, int64_t count, RtFileType image,
                      size_t image_values, RtFileType label,
                      size_t label_values, RtError *e) {
    s->count = count;
    s->fetch = rt_split_fetch;
    return rt_column_reserve(&s->image, image, image_values, count, e) &&
           rt_column_reserve(&s->label, label, label_values, count, e);
}

// The number of classes that the labels need.
static int64_t classes_of(const RtColumn *c, int64_t count, int ignored) {
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        for (size_t k = 0; k < c->values; k++) {
            double label = value_at(rt_column_at(c, i), k, c->type);
            most = label != ignored ? fmax(most, label) : most;
        }
    return (int64_t)most + 1;
}

static bool check_classes(const RtColumn *c, int64_t count,
                          const RtDataSpec *spec, const char *path,
                          RtError *e) {
    for (int64_t i = 0; i < count; i++)
        for (size_t k = 0; k < c->values; k++) {
            double label = value_at(rt_column_at(c, i), k, c->type);
            bool known = label >= 0 && label < spec->classes;
            if (!known && label != spec->ignored)
                return rt_fail_classes(
                    e, spec, classes_of(c, count, spec->ignored),
                    "%s: sample %lld has label %.0f, but the model has %d "
                    "classes",
                    path, (long long)i, label, spec->classes);
        }
    return true;
}

bool rt_labels_check(const RtSplit *s, const RtDataSpec *spec, const char *path,
                     RtError *e) {
    return check_classes(&s->label, s->count, spec, path, e);
}

bool rt_classes_check(const RtColumn *c, int64_t count, const RtArray *a,
                      const char *path, RtError *e) {
    const RtDataSpec own = {.classes = a->classes, .ignored = a->ignored};
    return check_classes(c, count, &own, path, e);
}

bool rt_numbers_check(const RtColumn *c, int64_t count, bool weighs,
                      const char *path, RtError *e) {
    for (int64_t i = 0; i < count && c->type == RT_FILE_F32; i++) {
        const float *x = (const float *)rt_column_at(c, i);
        for (size_t k = 0; k < c->values; k++)
            if (!isfinite(x[k]) || (weighs && x[k] < 0))
                return rt_fail(
                    e, EXIT_DATA, "%s: sample %lld has %s%g, %s", path,
                    (long long)i, weighs ? "the weight " : "", (double)x[k],
                    weighs ? "and weights are from 0" : "which is not finite");
    }
    return true;
}

bool rt_split_decodes(const RtSplit *s) {
    return s->image.bytes == NULL;
}

void rt_split_close(RtSplit *s) {
    if (!s->image.borrowed)
        free(s->image.bytes);
    if (!s->label.borrowed)
        free(s->label.bytes);
    for (int i = 0; i < s->num_arrays; i++)
        if (!s->array[i].borrowed)
            free(s->array[i].bytes);
    if (s->release != NULL)
        s->release(s->source);
}

void rt_data_close(RtData *d) {
    rt_split_close(&d->train);
    rt_split_close(&d->test);
    rt_decode_memory_free(d->decode_memory);
    free(d->classes);
    free(d->columns);
    free(d->tokenizer);
    *d = (RtData){0};
}

// Reads the names of the classes from a file of the data set's folder, if it
// has one: a name in each line.
static void classes_read(RtData *d, const char *folder, const RtDataSpec *spec,
                         const RtFiles *files) {
    enum { MOST = 1 << 20 };
    const char *const name[] = {RT_CLASSES_FILE, "batches.meta.txt",
                                rt_setting(spec, "coarse", 0)
                                    ? "coarse_label_names.txt"
                                    : "fine_label_names.txt"};
    for (size_t i = 0; d->classes == NULL && i < 3; i++) {
        RtError e;
        size_t bytes;
        char *path = rt_path("%s/%s", folder, name[i]);
        int fd = path != NULL ? rt_open_sized(files, path, &bytes, &e) : -1;
        free(path);
        if (fd < 0)
            continue;
        d->classes = bytes < MOST ? calloc(bytes + 1, 1) : NULL;
        if (d->classes != NULL && !rt_read(files, fd, d->classes, bytes)) {
            free(d->classes);
            d->classes = NULL;
        }
        files->close(fd);
    }
}

bool rt_data_open(RtData *d, const char *format, const char *path,
                  const RtDataSpec *spec, const RtFiles *files, RtError *e) {
    *d = (RtData){0};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, format) != 0)
            continue;
        bool good = formats[i].read(d, path, spec, files, e);
        if (!good)
            rt_data_close(d);
        else if (d->classes == NULL)
            classes_read(d, path, spec, files);
        return good;
    }
    return rt_fail(e, EXIT_DATA, "this trainer cannot read %s data", format);
}
