// Fit: an image of any size to a square.  Its shorter side becomes the square's
// and the middle of the longer one is kept.  A pixel of the result is the mean
// of those around its place, by a triangle as wide as one pixel of the result,
// or of the image where that is larger; so nothing is skipped when an image
// shrinks.  One direction after the other, in f32.

#include "runtime/runtime.h"

#include <math.h>
#include <stdlib.h>

// Places along one side: where the result's pixel i lies in the image.
typedef struct {
    int from, to;   // pixels of the image, of the result
    double scale;   // pixels of the image for one of the result
    double support; // half of the triangle's width
    double first;   // the result's pixel 0, counted in pixels of the result
} Side;

static Side side_of(int from, int shorter, int size) {
    double scale = (double)shorter / size;
    double whole = round(from / scale);
    return (Side){.from = from,
                  .to = size,
                  .scale = scale,
                  .support = scale > 1 ? scale : 1,
                  .first = floor((whole - size) / 2)};
}

// The first pixel of the image under the triangle of pixel i, and the weights
// from there on; how many.
static int weights(const Side *s, int i, int *first, float *weight) {
    double centre = (s->first + i + 0.5) * s->scale;
    int begin = (int)floor(centre - s->support),
        end = (int)ceil(centre + s->support);
    begin = begin < 0 ? 0 : begin >= s->from ? s->from - 1 : begin;
    end = end > s->from ? s->from : end <= begin ? begin + 1 : end;
    double sum = 0;
    for (int k = begin; k < end; k++) {
        double far = fabs(k + 0.5 - centre) / s->support;
        weight[k - begin] = (float)(far < 1 ? 1 - far : 0);
        sum += (double)weight[k - begin];
    }
    for (int k = 0; k < end - begin; k++)
        weight[k] =
            sum > 0 ? (float)((double)weight[k] / sum) : (k == 0 ? 1.0f : 0.0f);
    *first = begin;
    return end - begin;
}

// Every row of the image, `size` pixels wide.
static void fit_rows(const RtImage *from, const Side *across, float *weight,
                     float *to) {
    for (int x = 0; x < across->to; x++) {
        int first, count = weights(across, x, &first, weight);
        for (int y = 0; y < from->h; y++)
            for (int c = 0; c < 3; c++) {
                const uint8_t *p =
                    from->pixel + ((size_t)y * from->w + first) * 3 + c;
                float sum = 0;
                for (int k = 0; k < count; k++)
                    sum += weight[k] * p[3 * k];
                to[((size_t)y * across->to + x) * 3 + c] = sum;
            }
    }
}

static void fit_columns(const float *from, const Side *down, float *weight,
                        int size, uint8_t *to) {
    for (int y = 0; y < size; y++) {
        int first, count = weights(down, y, &first, weight);
        for (int i = 0; i < 3 * size; i++) {
            float sum = 0;
            for (int k = 0; k < count; k++)
                sum += weight[k] * from[(size_t)(first + k) * 3 * size + i];
            to[(size_t)y * 3 * size + i] = (uint8_t)(sum + 0.5f);
        }
    }
}

bool rt_image_fit(const RtImage *image, int size, uint8_t *to, RtError *e) {
    int shorter = image->h < image->w ? image->h : image->w;
    int longer = image->h < image->w ? image->w : image->h;
    Side across = side_of(image->w, shorter, size),
         down = side_of(image->h, shorter, size);
    float *rows = malloc((size_t)image->h * size * 3 * sizeof *rows);
    float *weight = malloc(((size_t)longer + 2) * sizeof *weight);
    bool good = rows != NULL && weight != NULL;
    if (good) {
        fit_rows(image, &across, weight, rows);
        fit_columns(rows, &down, weight, size, to);
    } else {
        rt_fail(e, EXIT_MEMORY, "out of memory");
    }
    free(rows);
    free(weight);
    return good;
}
