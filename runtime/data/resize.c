// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Resize: scales an image until it just covers the result, and crops the side
// that is too long to its centre.  Filter: a triangle as wide as two pixels of
// the result, or of the image if that is larger, so shrinking skips no pixel.
// Horizontal first, then vertical, in f32.
//
// Rows of the image come one by one.  Each is scaled horizontally and stored in
// a ring of as many rows as one row of the result needs.  Vectors hold the
// colours of a pixel, and neighbouring numbers of a row; each number is summed
// in the order of its taps.

#include "runtime/data/data.h"

#include <math.h>
#include <stdlib.h>

// The filter taps of one pixel of the result along one side: `count` pixels of
// the image from `first` on.
typedef struct {
    int first, count;
    float *weight;
} Tap;

typedef struct {
    int size, most; // pixels of the result; of the image for one of them
    Tap *tap;
    float *weight; // of all taps
} Side;

struct RtResize {
    Side down, across;
    int rows_in, rows_out; // rows of the image, of the result
    size_t values_in;      // numbers of a row of the image
    float *row;            // of the image, and one number more
    float *ring;           // of down.most rows
    uint8_t *to;
};

// Half of the triangle's width, in pixels of the image.
static double support(double scale) {
    return scale > 1 ? scale : 1;
}

static Tap tap_at(double centre, double half, int length, float *weight) {
    int first = (int)floor(centre - half), end = (int)ceil(centre + half);
    first = first < 0 ? 0 : first >= length ? length - 1 : first;
    end = end > length ? length : end <= first ? first + 1 : end;
    float sum = 0;
    for (int k = first; k < end; k++) {
        double far = fabs(k + 0.5 - centre) / half;
        weight[k - first] = (float)(far < 1 ? 1 - far : 0);
        sum += weight[k - first];
    }
    for (int k = 0; k < end - first; k++)
        weight[k] = sum > 0 ? weight[k] / sum : k == 0;
    return (Tap){first, end - first, weight};
}

static int most_of(double scale) {
    return (int)(2 * support(scale)) + 3;
}

// Pixels of the image for one of the result.
static double scale_of(int h, int w, int rows, int columns) {
    double down = (double)h / rows, across = (double)w / columns;
    return down < across ? down : across;
}

// A side of `length` pixels, of which `size` are left.  False: no memory.
static bool side_new(Side *s, int length, double scale, int size) {
    double half = support(scale);
    double outside = floor((round(length / scale) - size) / 2);
    s->size = size;
    s->most = most_of(scale);
    s->tap = calloc((size_t)size, sizeof *s->tap);
    s->weight = calloc((size_t)size * (size_t)s->most, sizeof *s->weight);
    for (int i = 0; s->tap != NULL && s->weight != NULL && i < size; i++)
        s->tap[i] = tap_at((outside + i + 0.5) * scale, half, length,
                           s->weight + (size_t)i * (size_t)s->most);
    return s->tap != NULL && s->weight != NULL;
}

static void side_free(Side *s) {
    free(s->tap);
    free(s->weight);
}

typedef float Pixel __attribute__((vector_size(16), aligned(4), may_alias));

// Scales one row horizontally.  Behind its last number there is another one.
static void scale_row(const float *from, const Side *across, float *to) {
    for (int x = 0; x < across->size; x++, to += 3) {
        const Tap *t = &across->tap[x];
        const float *p = from + 3 * (size_t)t->first;
        Pixel sum = {0};
        for (int k = 0; k < t->count; k++, p += 3)
            sum += t->weight[k] * *(const Pixel *)(const void *)p;
        for (int c = 0; c < 3; c++)
            to[c] = sum[c];
    }
}

static size_t row_values(const RtResize *f) {
    return 3 * (size_t)f->across.size;
}

static float *ring_at(const RtResize *f, int row) {
    return f->ring + (size_t)(row % f->down.most) * row_values(f);
}

enum { WIDE = 16 };
typedef float Wide
    __attribute__((vector_size(4 * WIDE), aligned(4), may_alias));
typedef int32_t WideInts __attribute__((vector_size(4 * WIDE)));
typedef uint8_t WideBytes
    __attribute__((vector_size(WIDE), aligned(1), may_alias));

// Computes the next row of the result; its last input row is in the ring.
static void make_row(RtResize *f) {
    const Tap *t = &f->down.tap[f->rows_out];
    size_t values = row_values(f), i = 0;
    uint8_t *to = f->to + (size_t)f->rows_out++ * values;
    for (; i + WIDE <= values; i += WIDE) {
        Wide sum = {0};
        for (int k = 0; k < t->count; k++)
            sum += t->weight[k] *
                   *(const Wide *)(const void *)(ring_at(f, t->first + k) + i);
        WideInts whole = __builtin_convertvector(sum + 0.5f, WideInts);
        *(WideBytes *)(void *)(to + i) =
            __builtin_convertvector(whole, WideBytes);
    }
    for (; i < values; i++) {
        float sum = 0;
        for (int k = 0; k < t->count; k++)
            sum += t->weight[k] * ring_at(f, t->first + k)[i];
        to[i] = (uint8_t)(sum + 0.5f);
    }
}

static int last_row(const RtResize *f, int row) {
    return f->down.tap[row].first + f->down.tap[row].count - 1;
}

// Skips rows above and below the result.
void rt_resize_row(RtResize *f, const uint8_t *pixel) {
    int row = f->rows_in++;
    if (f->rows_out == f->down.size || row < f->down.tap[f->rows_out].first)
        return;
    for (size_t i = 0; i < f->values_in; i++)
        f->row[i] = pixel[i];
    scale_row(f->row, &f->across, ring_at(f, row));
    while (f->rows_out < f->down.size && row >= last_row(f, f->rows_out))
        make_row(f);
}

void rt_resize_free(RtResize *f) {
    if (f == NULL)
        return;
    side_free(&f->down);
    side_free(&f->across);
    free(f->ring);
    free(f->row);
    free(f);
}

RtResize *rt_resize_new(int h, int w, int rows, int columns, uint8_t *to) {
    double scale = scale_of(h, w, rows, columns);
    RtResize *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    f->to = to;
    bool good = side_new(&f->down, h, scale, rows) &&
                side_new(&f->across, w, scale, columns);
    f->ring =
        good ? calloc((size_t)f->down.most * row_values(f), sizeof *f->ring)
             : NULL;
    f->values_in = 3 * (size_t)w;
    f->row = calloc(f->values_in + 1, sizeof *f->row);
    if (f->ring != NULL && f->row != NULL)
        return f;
    rt_resize_free(f);
    return NULL;
}

size_t rt_resize_bytes(int h, int w, int rows, int columns) {
    size_t most = (size_t)most_of(scale_of(h, w, rows, columns));
    size_t taps = (size_t)rows + (size_t)columns;
    return sizeof(RtResize) + taps * (sizeof(Tap) + most * sizeof(float)) +
           (most * 3 * (size_t)columns + 3 * (size_t)w + 1) * sizeof(float);
}
