// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Synthetic: a learnable data set of any shape, without files.
//
// Images, as pixels or numbers, are textures of their class.  Sequences of
// integers are Markov chains: most tokens follow from the one before by a rule
// of the class, or by one rule if labels are the next tokens.  Other labels are
// the class, of the sample or at each position, with 0 where a rectangle hides
// it, or targets from 0 to 1 of the class.  Further inputs are targets and
// noise, or whole numbers of the class and others.  Every sample is a function
// of its index.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TRAIN_SAMPLES = 10000,
    TEST_SAMPLES = 2000,
    MAX_BYTES = 512 << 20, // bytes; larger samples are fewer
    MIN_SAMPLES = 60,
    TARGET_CLASSES = 10, // of data with targets as labels
    MAX_THREADS = 16
};

static const uint64_t KEY =
    0x73796e7468657469; // part of the data set's definition

typedef struct {
    const RtDataSpec *spec;
    RtSize size; // of images
    int classes, vocabulary;
    bool next; // labels are the next tokens
    RtTextures *textures;
} Generator;

typedef struct {
    const Generator *generator;
    RtSplit *split;
    uint64_t key;
    int64_t first, last;
} Share;

// ---- one sample ----

static void write_value(const RtColumn *c, int64_t sample, size_t i,
                        int value) {
    uint8_t *to = rt_column_at(c, sample) + i * rt_file_type_bytes(c->type);
    uint8_t byte = (uint8_t)value;
    uint16_t half = (uint16_t)value;
    int32_t whole = value;
    const void *from = c->type == RT_FILE_U8    ? (const void *)&byte
                       : c->type == RT_FILE_U16 ? (const void *)&half
                                                : &whole;
    memcpy(to, from, rt_file_type_bytes(c->type));
}

static int next_token(const Generator *m, int class, int token, uint64_t key) {
    if (rt_uniform(key, 0) < 0.2)
        return rt_below(key, 1, m->vocabulary);
    uint64_t rule = rt_random(KEY + (uint64_t) class, (uint64_t)token);
    return (int)(rule % (uint64_t)m->vocabulary);
}

static void draw_sequence(const Generator *m, RtSplit *s, int64_t sample,
                          int class, uint64_t key) {
    int token = rt_below(key, 9, m->vocabulary);
    for (size_t i = 0; i < s->image.values; i++) {
        write_value(&s->image, sample, i, token);
        token = next_token(m, m->next ? 0 : class, token,
                           rt_random(key, 16 + (uint64_t)i));
        if (m->next)
            write_value(&s->label, sample, i, token);
    }
}

// Pixels, or numbers around 0.
static RtBox draw_image(const Generator *m, RtSplit *s, int64_t sample,
                        int class, uint64_t key) {
    uint8_t *to = rt_column_at(&s->image, sample);
    RtBox box = rt_textures_draw(m->textures, class, key, to);
    if (s->image.type == RT_FILE_U8)
        return box;
    rt_file_type_widen(to, s->image.values, RT_FILE_U8, RT_F32);
    for (size_t i = 0; i < s->image.values; i++) {
        float value;
        memcpy(&value, to + i * sizeof value, sizeof value);
        value = (value - 128) / 64;
        memcpy(to + i * sizeof value, &value, sizeof value);
    }
    return box;
}

// Number i of the targets of a class, from 0 to 1.
static double target_of(int class, size_t i) {
    double turns = (double)(class + 1) * (double)(i % 7 + 1) / 11;
    return 0.5 + 0.5 * cos(2 * 3.14159265358979 * turns);
}

static void write_targets(const RtColumn *c, int64_t sample, int class) {
    uint8_t *to = rt_column_at(c, sample);
    for (size_t i = 0; i < c->values; i++) {
        float value = (float)target_of(class, i);
        memcpy(to + i * sizeof value, &value, sizeof value);
    }
}

// The class at each position of the label, which covers the image.
static void write_classes(const Generator *m, const RtColumn *c,
                          const RtShape *l, int64_t sample, int class,
                          RtBox box) {
    int64_t rows = l->rank > 0 ? l->dim[0] : 1;
    int64_t columns = l->rank > 1 ? l->dim[1] : 1;
    int64_t rest = (int64_t)c->values / (rows * columns);
    for (int64_t i = 0; i < (int64_t)c->values; i++) {
        int64_t y = i / rest / columns * m->size.h / rows,
                x = i / rest % columns * m->size.w / columns;
        bool hidden = l->rank > 0 && y >= box.top && y < box.bottom &&
                      x >= box.left && x < box.right;
        write_value(c, sample, (size_t)i, hidden ? 0 : class);
    }
}

// A further input: with noise as large as the differences between classes.
static void write_input(const Generator *m, const RtColumn *c, int64_t sample,
                        int class, uint64_t key) {
    uint8_t *to = rt_column_at(c, sample);
    for (size_t i = 0; i < c->values; i++) {
        double noise = rt_uniform(key, 16 + (uint64_t)i);
        float real = (float)(target_of(class, i) + noise - 0.5);
        int whole = c->type == RT_FILE_U8 ? (int)(64 * (real + 1))
                    : noise < 0.2         ? rt_below(key, 15, m->vocabulary)
                                          : class % m->vocabulary;
        if (c->type == RT_FILE_F32)
            memcpy(to + i * sizeof real, &real, sizeof real);
        else
            write_value(c, sample, i, whole);
    }
}

static void draw_array(const Generator *m, RtSplit *s, int k, int64_t sample,
                       int class, RtBox box, uint64_t key) {
    const RtArray *a = &m->spec->array[k];
    const RtColumn *c = &s->array[k];
    if (strncmp(a->input, "input.", strlen("input.")) == 0)
        write_input(m, c, sample, class, rt_random(key, 1 + (uint64_t)k));
    else if (c->type == RT_FILE_F32)
        write_targets(c, sample, class);
    else
        write_classes(m, c, &a->shape, sample, class % a->classes, box);
}

static void draw_sample(const Generator *m, RtSplit *s, int64_t i,
                        uint64_t key) {
    int class = rt_below(key, 8, m->classes);
    RtBox box = {0};
    if (m->textures != NULL)
        box = draw_image(m, s, i, class, key);
    else
        draw_sequence(m, s, i, class, key);
    if (s->label.type == RT_FILE_F32)
        write_targets(&s->label, i, class);
    else if (!m->next)
        write_classes(m, &s->label, &m->spec->label, i, class, box);
    for (int k = 0; k < s->num_arrays; k++)
        draw_array(m, s, k, i, class, box, key);
}

// ---- all samples ----

static void *draw_share(void *arg) {
    const Share *share = arg;
    for (int64_t i = share->first; i < share->last; i++)
        draw_sample(share->generator, share->split, i,
                    rt_random(share->key, (uint64_t)i));
    return NULL;
}

// The calling thread draws shares for which no thread started.
static void draw_split(const Generator *m, RtSplit *s, uint64_t key) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = cores < 1             ? 1
                  : cores > MAX_THREADS ? MAX_THREADS
                                        : (int)cores;
    Share share[MAX_THREADS];
    pthread_t thread[MAX_THREADS];
    bool started[MAX_THREADS] = {false};
    for (int i = 0; i < threads; i++) {
        share[i] = (Share){m, s, key, s->count * i / threads,
                           s->count * (i + 1) / threads};
        started[i] = i > 0 && pthread_create(&thread[i], NULL, draw_share,
                                             &share[i]) == 0;
    }
    for (int i = 0; i < threads; i++)
        if (!started[i])
            draw_share(&share[i]);
    for (int i = 0; i < threads; i++)
        if (started[i])
            pthread_join(thread[i], NULL);
}

static RtFileType image_file_type(const Generator *m) {
    RtType type = m->spec->image.type;
    return type == RT_U8              ? RT_FILE_U8
           : type == RT_F32           ? RT_FILE_F32
           : m->vocabulary <= 1 << 8  ? RT_FILE_U8
           : m->vocabulary <= 1 << 16 ? RT_FILE_U16
                                      : RT_FILE_I32;
}

static RtFileType label_file_type(const Generator *m) {
    return m->spec->label.type == RT_F32 ? RT_FILE_F32
           : m->next                     ? image_file_type(m)
           : m->classes <= 1 << 8        ? RT_FILE_U8
                                         : RT_FILE_I32;
}

static RtFileType array_file_type(const RtArray *a) {
    return a->shape.type == RT_F32  ? RT_FILE_F32
           : a->shape.type == RT_U8 ? RT_FILE_U8
                                    : RT_FILE_I32;
}

static double arrays_bytes(const RtDataSpec *spec) {
    double bytes = 0;
    for (int i = 0; i < spec->num_arrays; i++)
        bytes += (double)rt_shape_values(&spec->array[i].shape) *
                 (double)rt_file_type_bytes(array_file_type(&spec->array[i]));
    return bytes;
}

static size_t label_values(const Generator *m) {
    const RtShape *l = &m->spec->label;
    return l->rank < 0 ? 0 : rt_shape_values(l);
}

// How many of `most` samples fit into MAX_BYTES.
static int64_t room_for(const Generator *m, int64_t most) {
    double image = (double)rt_shape_values(&m->spec->image),
           label = (double)label_values(m),
           bytes = image * (double)rt_file_type_bytes(image_file_type(m)) +
                   label * (double)rt_file_type_bytes(label_file_type(m)) +
                   arrays_bytes(m->spec);
    double share = MAX_BYTES / (bytes * (TRAIN_SAMPLES + TEST_SAMPLES));
    int64_t count = share < 1 ? (int64_t)(share * (double)most) : most;
    return count < MIN_SAMPLES ? MIN_SAMPLES : count;
}

static bool draw_part(const Generator *m, RtSplit *s, const char *setting,
                      int64_t most, uint64_t key, RtError *e) {
    const RtDataSpec *spec = m->spec;
    int64_t count = spec->synthetic > 0
                        ? spec->synthetic
                        : rt_setting(spec, setting, room_for(m, most));
    if (!rt_split_reserve(s, count, image_file_type(m),
                          rt_shape_values(&spec->image), label_file_type(m),
                          label_values(m), e))
        return false;
    for (int i = 0; i < spec->num_arrays; i++) {
        const RtArray *a = &spec->array[i];
        if (!rt_column_reserve(&s->array[s->num_arrays++], array_file_type(a),
                               rt_shape_values(&a->shape), count, e))
            return false;
    }
    draw_split(m, s, rt_random(KEY, key));
    return true;
}

// Rows, columns and channels; further leading dimensions multiply the rows.
static RtSize size_of(const RtShape *s) {
    RtSize size = {1, 1, 1};
    int *part[] = {&size.h, &size.w, &size.c};
    for (int i = 0; i < s->rank; i++) {
        int to = s->rank <= 3 ? i : i - (s->rank - 3);
        *part[to < 0 ? 0 : to] *= (int)s->dim[i];
    }
    return size;
}

static bool same_shape(const RtShape *a, const RtShape *b) {
    return a->rank == b->rank && rt_shape_same(a, b->rank, b->dim);
}

// Whether named outputs have targets, and none has classes.
static bool has_targets_only(const RtDataSpec *spec) {
    for (int i = 0; i < spec->num_arrays; i++)
        if (spec->array[i].classes > 0)
            return false;
    return spec->num_arrays > 0 && spec->label.rank < 0;
}

bool rt_synthetic_draw(RtData *d, const char *path, const RtDataSpec *spec,
                       const RtFiles *files, RtError *e) {
    (void)path;
    (void)files;
    const RtShape *image = &spec->image, *label = &spec->label;
    Generator m = {.spec = spec, .size = size_of(image)};
    m.classes = label->type == RT_F32 || has_targets_only(spec)
                    ? TARGET_CLASSES
                    : spec->classes;
    m.vocabulary = (int)rt_setting(spec, "vocabulary", m.classes);
    m.next = image->type == RT_I32 && label->type == RT_I32 &&
             label->rank > 0 && same_shape(image, label);
    if (m.classes < 2)
        return rt_fail(
            e, EXIT_DATA,
            "synthetic data needs at least two classes, but the model has %d",
            m.classes);
    if (image->type != RT_I32 &&
        (m.textures = rt_textures_new(m.size, m.classes)) == NULL)
        return rt_fail(e, EXIT_MEMORY,
                       "out of memory for the synthetic data set");
    bool good =
        draw_part(&m, &d->train, "samples", TRAIN_SAMPLES, UINT64_MAX, e) &&
        draw_part(&m, &d->test, "test", TEST_SAMPLES, UINT64_MAX - 1, e);
    rt_textures_free(m.textures);
    d->hash = rt_random(KEY, rt_shape_values(image) + (uint64_t)m.classes);
    d->hash = rt_random(d->hash, (uint64_t)d->train.count);
    return good;
}
