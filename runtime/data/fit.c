// Fit: an image of any size to a square.  Its shorter side becomes the square's
// and the middle of the longer one is kept.  A pixel of the result is the mean
// of those around its place, by a triangle as wide as two pixels of the result,
// or of the image where that is larger; so nothing is skipped when an image
// shrinks.  One direction after the other, in f32.

#include "runtime/data/data.h"

#include <math.h>
#include <stdlib.h>

// What a pixel of the result is made of along one side: `count` pixels of the
// image from `first` on.
typedef struct {
    int first, count;
    float *weight;
} Tap;

typedef struct {
    int size, most; // pixels of the result; of the image for one of them
    Tap *tap;
    float *weight; // of all
} Side;

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

// A side of `length` pixels where `shorter` become `size`.  False: no memory.
static bool side_new(Side *s, int length, int shorter, int size) {
    double scale = (double)shorter / size, half = support(scale);
    double outside = floor((round(length / scale) - size) / 2);
    s->size = size;
    s->most = (int)(2 * half) + 3;
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

// One row of the image, as wide as the result.
static void fit_row(const uint8_t *from, const Side *across, float *to) {
    for (int x = 0; x < across->size; x++, to += 3) {
        const Tap *t = &across->tap[x];
        const uint8_t *p = from + 3 * (size_t)t->first;
        float sum[3] = {0};
        for (int k = 0; k < t->count; k++, p += 3)
            for (int c = 0; c < 3; c++)
                sum[c] += t->weight[k] * p[c];
        for (int c = 0; c < 3; c++)
            to[c] = sum[c];
    }
}

static void mix_rows(const float *row, const Tap *t, size_t values,
                     uint8_t *to) {
    for (size_t i = 0; i < values; i++) {
        float sum = 0;
        for (int k = 0; k < t->count; k++)
            sum += t->weight[k] * row[(size_t)k * values + i];
        to[i] = (uint8_t)(sum + 0.5f);
    }
}

// Rows above and below the square are left out.
static void fit(const RtImage *image, const Side *down, const Side *across,
                float *row, uint8_t *to) {
    const Tap *last = &down->tap[down->size - 1];
    int top = down->tap[0].first, bottom = last->first + last->count;
    size_t values = 3 * (size_t)across->size;
    for (int y = top; y < bottom; y++)
        fit_row(image->pixel + (size_t)y * (size_t)image->w * 3, across,
                row + (size_t)(y - top) * values);
    for (int y = 0; y < down->size; y++)
        mix_rows(row + (size_t)(down->tap[y].first - top) * values,
                 &down->tap[y], values, to + (size_t)y * values);
}

bool rt_image_fit(const RtImage *image, int size, uint8_t *to, RtError *e) {
    int shorter = image->h < image->w ? image->h : image->w;
    Side down = {0}, across = {0};
    float *row = calloc((size_t)image->h * (size_t)size, 3 * sizeof *row);
    bool good = side_new(&down, image->h, shorter, size) &&
                side_new(&across, image->w, shorter, size) && row != NULL;
    if (good)
        fit(image, &down, &across, row, to);
    side_free(&down);
    side_free(&across);
    free(row);
    return good || rt_fail(e, EXIT_MEMORY, "out of memory");
}
