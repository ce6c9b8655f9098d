// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Inputs: the samples of a prediction.  Images are decoded as those of an image
// folder are.  A file that cannot be decoded becomes a black image with an
// error, so that the others get their predictions.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct {
    RtNames image;
    char **error; // of each image, NULL: none
    RtImageDecoder decoder;
} Source;

static void release(void *source) {
    Source *s = source;
    for (int64_t i = 0; s->error != NULL && i < s->image.count; i++)
        free(s->error[i]);
    free(s->error);
    rt_names_free(&s->image);
    rt_webp_close(s->decoder.webp);
    rt_jpeg_close(s->decoder.jpeg);
    rt_png_close(s->decoder.png);
    free(s);
}

// Reads an image, and makes one channel of three where the model has one: ITU-R
// BT.601's weights, as Pillow's mode L.
static bool image_read(Source *s, const RtSplit *split, const char *path,
                       uint8_t *to, bool *broken, RtError *e) {
    size_t pixels = (size_t)s->decoder.h * (size_t)s->decoder.w;
    if (split->image.values == 3 * pixels)
        return rt_image_read(&s->decoder, path, to, broken, e);
    uint8_t *colour = malloc(3 * pixels);
    *broken = false;
    if (colour == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    bool good = rt_image_read(&s->decoder, path, colour, broken, e);
    for (size_t i = 0; good && i < pixels; i++) {
        const uint8_t *c = colour + 3 * i;
        to[i] = (uint8_t)((c[0] * 19595u + c[1] * 38470u + c[2] * 7471u +
                           0x8000u) >>
                          16);
    }
    free(colour);
    return good;
}

static bool fetch(const RtSplit *split, int64_t sample, uint8_t *to,
                  RtError *e) {
    Source *s = split->source;
    bool broken;
    if (image_read(s, split, s->image.name[sample], to, &broken, e))
        return true;
    if (!broken && e->status != EXIT_DATA && e->status != EXIT_IO)
        return false;
    memset(to, 0, split->image.values);
    if (s->error[sample] == NULL) // a padded batch reads a sample again
        s->error[sample] = strdup(e->text);
    return s->error[sample] != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
}

// Adds the images of a folder, then those of its folders.
static bool folder_add(RtNames *to, const char *folder, RtError *e) {
    RtNames here = {0};
    RtIgnored ignored = {.suffixes = 0};
    bool good = rt_names_list(folder, rt_image_suffix, &ignored, &here, e);
    for (int64_t i = 0; good && i < here.count; i++)
        good = rt_names_add(to, rt_path("%s/%s", folder, here.name[i]), e);
    rt_names_free(&here);
    good = good && rt_names_list(folder, NULL, NULL, &here, e);
    for (int64_t i = 0; good && i < here.count; i++) {
        char *path = rt_path("%s/%s", folder, here.name[i]);
        good = path != NULL ? folder_add(to, path, e)
                            : rt_fail(e, EXIT_MEMORY, "out of memory");
        free(path);
    }
    rt_names_free(&here);
    return good;
}

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

// The images of files and folders.
static bool paths_expand(RtNames *to, const RtNames *paths, RtError *e) {
    bool good = true;
    for (int64_t i = 0; good && i < paths->count; i++)
        good = is_folder(paths->name[i])
                   ? folder_add(to, paths->name[i], e)
                   : rt_names_add(to, rt_path("%s", paths->name[i]), e);
    return good;
}

static bool is_input(const RtArray *a) {
    return strncmp(a->input, "input.", strlen("input.")) == 0;
}

// The inputs of the model.
static int count_inputs(const RtTrainer *t) {
    int count = 1;
    for (int i = 0; i < t->num_arrays; i++)
        count += is_input(&t->array[i]);
    return count;
}

static bool takes_images(const RtTrainer *t, RtError *e) {
    char shape[100];
    const RtShape *s = &t->image;
    if (count_inputs(t) > 1)
        return rt_fail(e, EXIT_DATA,
                       "%s takes %d inputs: predict for an .npy file of each, "
                       "in their order, or for the folder of a data set",
                       t->model, count_inputs(t));
    if (s->rank == 3 && s->type == RT_U8 && (s->dim[2] == 3 || s->dim[2] == 1))
        return true;
    return rt_fail(e, EXIT_DATA,
                   "image files become bytes of an image with one or three "
                   "channels, but %s takes %s: predict for an .npy file",
                   t->model,
                   rt_shape_text(shape, sizeof shape, s->rank, s->dim));
}

static bool images_open(RtData *d, RtNames *image, const RtTrainer *t,
                        const RtOptions *o, const RtFiles *files, RtError *e) {
    RtError ignored;
    Source *s = calloc(1, sizeof *s);
    if (s == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    int64_t most =
        o->max_image_pixels > 0 ? o->max_image_pixels : RT_MAX_PIXELS;
    d->test = (RtSplit){.count = image->count,
                        .fetch = fetch,
                        .source = s,
                        .release = release,
                        .image = {.values = rt_shape_values(&t->image)},
                        .label = {RT_FILE_U8, 0, 0, NULL, false},
                        .num_arrays = t->num_arrays};
    s->image = *image;
    *image = (RtNames){0};
    for (int64_t i = 0; i < s->image.count; i++)
        d->hash = XXH3_64bits_withSeed(s->image.name[i],
                                       strlen(s->image.name[i]), d->hash);
    d->decode_memory = rt_decode_memory_new(most);
    s->error = calloc((size_t)s->image.count, sizeof *s->error);
    // A file of a missing library has an error, as a broken one has.
    s->decoder = (RtImageDecoder){.files = files,
                                  .h = (int)t->image.dim[0],
                                  .w = (int)t->image.dim[1],
                                  .max_pixels = most,
                                  .jpeg = rt_jpeg_open(&ignored),
                                  .png = rt_png_open(&ignored),
                                  .webp = rt_webp_open(&ignored),
                                  .memory = d->decode_memory};
    return (d->decode_memory != NULL && s->error != NULL) ||
           rt_fail(e, EXIT_MEMORY, "out of memory");
}

static bool is_npy(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".npy") == 0;
}

static bool are_npy(const RtNames *paths) {
    bool all = true;
    for (int64_t i = 0; i < paths->count; i++)
        all = all && is_npy(paths->name[i]);
    return all;
}

// A file for each input; labels have no numbers.
static bool npy_open(RtData *d, const RtNames *paths, const RtTrainer *t,
                     const RtFiles *files, RtError *e) {
    RtSplit *s = &d->test;
    int64_t count;
    s->fetch = rt_split_fetch;
    s->num_arrays = t->num_arrays;
    bool good = rt_npy_column(files, paths->name[0], &t->image, &s->image,
                              &s->count, &d->hash, e) &&
                rt_column_reserve(&s->label, RT_FILE_U8, 0, s->count, e);
    for (int i = 0, k = 1; good && i < t->num_arrays; i++) {
        if (!is_input(&t->array[i]))
            continue;
        const char *path = paths->name[k++];
        good = rt_npy_column(files, path, &t->array[i].shape, &s->array[i],
                             &count, &d->hash, e);
        if (good && count != s->count)
            good =
                rt_fail(e, EXIT_DATA, "%s has %lld samples, and %s %lld", path,
                        (long long)count, paths->name[0], (long long)s->count);
    }
    return good;
}

// The columns that the model file lists, else those of the training data, else
// all.
static bool table_open(RtData *d, const char *path, const RtTrainer *t,
                       const char *columns, RtError *e) {
    const RtSetting trained = {.name = "columns", .text = columns};
    RtDataSpec spec = {.image = t->image,
                       .label = {.rank = -1},
                       .setting = t->data_setting,
                       .num_settings = t->num_data_settings};
    if (columns != NULL && *rt_setting_text(&spec, "columns") == '\0') {
        spec.setting = &trained;
        spec.num_settings = 1;
    }
    return rt_table_open(d, path, &spec, e);
}

// Whether the file has images, as the trainer's data have.
static bool has_images(const char *path, const RtTrainer *t) {
    static const char *const parquet[] = {".parquet", NULL};
    return strcmp(t->data_format, "image_table") == 0 &&
           rt_names_suffix(path, parquet) != NULL;
}

static bool image_table_open(RtData *d, const char *path, const RtTrainer *t,
                             const RtOptions *o, const RtFiles *files,
                             RtError *e) {
    const RtDataSpec spec = {.image = t->image,
                             .image_name = t->image_name,
                             .label = {.rank = -1},
                             .max_pixels = o->max_image_pixels};
    bool good =
        takes_images(t, e) && rt_image_table_open(d, path, &spec, files, e);
    d->test.num_arrays = t->num_arrays;
    return good;
}

// The test set of a data set.
static bool set_open(RtData *d, const char *path, const RtTrainer *t,
                     const RtOptions *o, const RtFiles *files, RtError *e) {
    RtOptions given = *o;
    given.data = path;
    return rt_data_find(t, &given, d, files, e) &&
           (d->test.count > 0 ||
            rt_fail(e, EXIT_DATA, "%s has no test set", path));
}

bool rt_inputs_open(RtData *d, const RtTrainer *t, const RtOptions *o,
                    const char *columns, const RtNames *paths,
                    const RtFiles *files, RtError *e) {
    RtNames image = {0};
    const char *first = paths->name[0];
    bool several = paths->count > 1, good;
    *d = (RtData){0};
    if (paths->count == count_inputs(t) && are_npy(paths)) {
        good = npy_open(d, paths, t, files, e);
    } else if (!several && has_images(first, t)) {
        good = image_table_open(d, first, t, o, files, e);
    } else if (!several && rt_is_table(first)) {
        good = table_open(d, first, t, columns, e);
    } else if (!several && (strncmp(first, "synthetic", 9) == 0 ||
                            (count_inputs(t) > 1 && is_folder(first)))) {
        good = set_open(d, first, t, o, files, e);
    } else {
        good = paths_expand(&image, paths, e);
        if (good && image.count == 0)
            good = !several ? set_open(d, first, t, o, files, e)
                            : rt_fail(e, EXIT_DATA,
                                      "%s and the other folders "
                                      "have no images",
                                      first);
        else
            good = good && takes_images(t, e) &&
                   images_open(d, &image, t, o, files, e);
    }
    rt_names_free(&image);
    if (!good)
        rt_data_close(d);
    return good;
}

const char *rt_inputs_path(const RtData *d, int64_t sample) {
    const Source *s = d->test.source;
    return d->test.fetch == fetch ? s->image.name[sample] : NULL;
}

const char *rt_inputs_error(const RtData *d, int64_t sample) {
    const Source *s = d->test.source;
    return d->test.fetch == fetch ? s->error[sample] : NULL;
}

bool rt_inputs_set_error(const RtData *d, int64_t sample, const char *error,
                         RtError *e) {
    Source *s = d->test.source;
    s->error[sample] = strdup(error);
    return s->error[sample] != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
}
