// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statistics: see stats.h.
#include "runtime/stats.h"
#include "runtime/data/data.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHANNELS = 16 };

typedef struct {
    int64_t samples, broken;
    int channels;
    double sum[MAX_CHANNELS], squares[MAX_CHANNELS], least, most;
    int64_t values;  // of a channel
    int64_t *counts; // of each class or token
    int classes;
} Stats;

static double number(const uint8_t *at, size_t i, RtFileType type) {
    switch (type) {
    case RT_FILE_U16:
        return at[2 * i] | at[2 * i + 1] << 8;
    case RT_FILE_I32:
        return ((const int32_t *)(const void *)at)[i];
    case RT_FILE_F32:
        return (double)((const float *)(const void *)at)[i];
    default:
        return at[i];
    }
}

static void values_add(Stats *s, const RtColumn *c, const uint8_t *sample) {
    for (size_t i = 0; i < c->values; i++) {
        double x = number(sample, i, c->type);
        int channel = (int)(i % (size_t)s->channels);
        s->sum[channel] += x;
        s->squares[channel] += x * x;
        s->least = x < s->least ? x : s->least;
        s->most = x > s->most ? x : s->most;
    }
    s->values += (int64_t)c->values / s->channels;
}

// Labels that are numbers of classes; in a text they are the tokens.
static void labels_add(Stats *s, const RtColumn *c, int64_t sample) {
    const uint8_t *label = rt_column_at(c, sample);
    for (size_t i = 0; i < c->values; i++) {
        double class = number(label, i, c->type);
        if (class >= 0 && class < s->classes)
            s->counts[(int)class]++;
    }
}

static bool stats_begin(Stats *s, const RtShape *shape, int classes,
                        RtError *e) {
    int last = shape->rank > 0 ? (int)shape->dim[shape->rank - 1] : 1;
    *s = (Stats){.channels = last > 0 && last <= MAX_CHANNELS ? last : 1,
                 .least = INFINITY,
                 .most = -INFINITY,
                 .classes = classes};
    s->counts = calloc((size_t)s->classes + 1, sizeof *s->counts);
    return s->counts != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
}

static bool split_read(Stats *s, const RtSplit *split, const RtTrainer *t,
                       bool verify, RtError *e) {
    uint8_t *image = malloc(split->image.values * sizeof(float) + 1);
    bool good =
        stats_begin(s, &t->image,
                    split->label.type != RT_FILE_F32 ? t->classes : 0, e) &&
        (image != NULL || rt_fail(e, EXIT_MEMORY, "out of memory"));
    for (int64_t i = 0; good && i < split->count; i++) {
        int64_t sample = rt_split_sample(split, i);
        s->samples++;
        if (!split->fetch(split, sample, image, e)) {
            s->broken++;
            good = e->status == EXIT_DATA || e->status == EXIT_IO;
            if (good)
                fprintf(stderr, "%s\n", e->text);
            continue;
        }
        if (!verify && !split->is_text)
            values_add(s, &split->image, image);
        if (!verify && s->classes > 0 && split->label.bytes != NULL)
            labels_add(s, &split->label, sample);
    }
    free(image);
    return good;
}

// ---- print ----

static void numbers_print(const char *name, const Stats *s, bool deviation) {
    printf("%s=%s", name, s->channels > 1 ? "[" : "");
    for (int i = 0; i < s->channels; i++) {
        double mean = s->sum[i] / (double)s->values;
        double square = s->squares[i] / (double)s->values - mean * mean;
        printf("%s%.5g", i > 0 ? ", " : "",
               deviation ? sqrt(fmax(square, 0)) : mean);
    }
    printf("%s", s->channels > 1 ? "]" : "");
}

static void values_print(const Stats *s) {
    if (s->values == 0)
        return;
    printf("  values from %.6g to %.6g\n  normalize(", s->least, s->most);
    numbers_print("mean", s, false);
    numbers_print(", std", s, true);
    printf(")\n");
}

// The line of a class; NULL or "": it has no name.
static const char *name_of(const char *names, int class) {
    for (int i = 0; names != NULL && i < class; i++) {
        names = strchr(names, '\n');
        names = names != NULL ? names + 1 : NULL;
    }
    return names;
}

static void name_print(const char *names, int class) {
    names = name_of(names, class);
    if (names != NULL && *names != '\0')
        printf("%.*s ", (int)strcspn(names, "\r\n"), names);
    else
        printf("%d: ", class);
}

// The classes, or of many the number that there are, and the bits of a draw.
static void classes_print(const Stats *s, const char *names) {
    enum { MAX_LISTED = 100 };
    int64_t all = 0;
    int used = 0;
    double bits = 0;
    for (int i = 0; i < s->classes; i++) {
        all += s->counts[i];
        used += s->counts[i] > 0;
    }
    for (int i = 0; i < s->classes && all > 0; i++) {
        double share = (double)s->counts[i] / (double)all;
        bits -= share > 0 ? share * log2(share) : 0;
    }
    if (all == 0)
        return;
    printf("  %d of %d classes, %.3f bits a label\n", used, s->classes, bits);
    for (int i = 0; i < s->classes && s->classes <= MAX_LISTED; i++) {
        const char *name = name_of(names, i);
        if (s->counts[i] == 0 && names != NULL && (!name || *name == '\0'))
            continue;
        printf("    ");
        name_print(names, i);
        printf("%" PRId64 "\n", s->counts[i]);
    }
}

// An array beside the images and labels: its classes, or its values.
static bool array_print(const RtSplit *split, const RtArray *a,
                        const RtColumn *c, RtError *e) {
    Stats s;
    if (!stats_begin(&s, &a->shape, a->classes, e))
        return false;
    for (int64_t i = 0; i < split->count; i++) {
        int64_t sample = rt_split_sample(split, i);
        if (a->classes > 0)
            labels_add(&s, c, sample);
        else
            values_add(&s, c, rt_column_at(c, sample));
    }
    printf("  %s:\n", a->input);
    values_print(&s);
    classes_print(&s, NULL);
    free(s.counts);
    return true;
}

static void split_print(const Stats *s, const char *name, const RtData *d,
                        const RtSplit *split, bool verify) {
    printf("%s: %" PRId64 " samples", name, s->samples);
    if (s->broken > 0)
        printf(", of which %" PRId64 " cannot be read", s->broken);
    printf("\n");
    if (verify)
        return;
    values_print(s);
    if (split->is_text)
        printf("  %" PRId64 " tokens\n",
               s->samples * (int64_t)split->image.values);
    classes_print(s, d->classes);
}

int rt_data_stats(const RtTrainer *t, const char *path, bool verify) {
    RtOptions o = {
        .data = path, .seed = -1, .bad_samples = -1, .load_only = true};
    RtData d;
    RtError e;
    Stats s = {0};
    int64_t broken = 0;
    if (!rt_data_find(t, &o, &d, &rt_system_files, &e))
        return rt_print_error(&e);
    bool good = true;
    for (int i = 0; i < 2 && good; i++) {
        const RtSplit *split = i == 0 ? &d.train : &d.test;
        good = split_read(&s, split, t, verify, &e);
        if (good)
            split_print(&s, i == 0 ? "train" : "test", &d, split, verify);
        for (int k = 0; good && !verify && k < split->num_arrays; k++)
            good = array_print(split, &t->array[k], &split->array[k], &e);
        broken += s.broken;
        free(s.counts);
    }
    if (good && d.ignored[0] != '\0')
        printf("%s\n", d.ignored);
    if (good && verify)
        printf("hash: %016" PRIx64 "\n", d.hash);
    rt_data_close(&d);
    return !good ? rt_print_error(&e) : broken > 0 ? EXIT_DATA : EXIT_GOOD;
}
