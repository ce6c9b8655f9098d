// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Window: operations that look at a window of an image at a time.
#include "ir/eval/rule.h"

#include <string.h>

// The row (axis 0) or column (axis 1) of the image that tap r of window o
// is on, or -1 in the padding.
static int64_t window_at(const Node *n, Type image, int axis, int64_t o,
                         int64_t r) {
    int64_t at = o * node_ints(n, ATTR_stride, axis, 1) +
                 r * node_ints(n, ATTR_dilation, axis, 1) -
                 node_ints(n, ATTR_pad, 2 * axis, 0);
    return at >= 0 && at < image.dim[1 + axis] ? at : -1;
}

// Windows of `size` taps over `image`, one for each element of `pooled`.
typedef struct {
    Type image, pooled;
    int64_t size;
} Pool;

static Pool pool_of(const Eval *e, Type image, Type pooled) {
    return (Pool){.image = image,
                  .pooled = pooled,
                  .size = node_ints(e->n, ATTR_window, 0, 1) *
                          node_ints(e->n, ATTR_window, 1, 1)};
}

// The image's element at tap k of window o, or -1 in the padding.
static int64_t pool_pixel(const Eval *e, const Pool *p, int64_t o, int64_t k) {
    const int64_t *dim = p->pooled.dim;
    int64_t columns = node_ints(e->n, ATTR_window, 1, 1);
    int64_t w = o / dim[3] % dim[2], h = o / dim[3] / dim[2] % dim[1];
    int64_t y = window_at(e->n, p->image, 0, h, k / columns);
    int64_t x = window_at(e->n, p->image, 1, w, k % columns);
    if (y < 0 || x < 0)
        return -1;
    return pixel(p->image, o / dim[3] / dim[2] / dim[1], y, x, o % dim[3]);
}

// The largest of each window, or with index set its tap, the first on ties.
static void max_pool(const Eval *e, bool index) {
    Pool p = pool_of(e, *arg_type(e, 0), *e->n->type);
    for (int64_t o = 0; o < type_count(&p.pooled); o++) {
        double best = 0;
        int64_t first = -1;
        for (int64_t k = 0; k < p.size; k++) {
            int64_t i = pool_pixel(e, &p, o, k);
            if (i >= 0 && (first < 0 || larger(arg(e, 0)[i], best))) {
                best = arg(e, 0)[i];
                first = k;
            }
        }
        e->out[o] = index ? (double)first : best;
    }
}

void eval_max_pool(const Eval *e) {
    max_pool(e, false);
}

void eval_max_pool_index(const Eval *e) {
    max_pool(e, true);
}

void eval_max_pool_grad(const Eval *e) {
    Pool p = pool_of(e, *e->n->type, *arg_type(e, 1));
    for (int64_t o = 0; o < type_count(&p.pooled); o++) {
        int64_t i = pool_pixel(e, &p, o, (int64_t)arg(e, 0)[o]);
        if (i >= 0)
            e->out[i] += arg(e, 1)[o];
    }
}

// Padding counts as zeros: the sum is divided by the window's size.
void eval_avg_pool(const Eval *e) {
    Pool p = pool_of(e, *arg_type(e, 0), *e->n->type);
    for (int64_t o = 0; o < type_count(&p.pooled); o++) {
        for (int64_t k = 0; k < p.size; k++) {
            int64_t i = pool_pixel(e, &p, o, k);
            e->out[o] += i >= 0 ? arg(e, 0)[i] : 0;
        }
        e->out[o] /= (double)p.size;
    }
}

void eval_avg_pool_grad(const Eval *e) {
    Pool p = pool_of(e, *e->n->type, *arg_type(e, 0));
    for (int64_t o = 0; o < type_count(&p.pooled); o++)
        for (int64_t k = 0; k < p.size; k++) {
            int64_t i = pool_pixel(e, &p, o, k);
            if (i >= 0)
                e->out[i] += arg(e, 0)[o] / (double)p.size;
        }
}

// The sources of row or column i of a resized image: `low` and the one after
// it, the latter with this share.  Pixels are squares, and their centres are at
// halves.  nearest takes the pixel that the corner of the result's is in.
typedef struct {
    int64_t low, high;
    double share;
} Blend;

static Blend blend_of(const Node *n, Type image, int axis, int64_t i) {
    int64_t from = image.dim[1 + axis], to = node_ints(n, ATTR_size, axis, 1);
    if (strcmp(node_text(n, ATTR_mode), "nearest") == 0)
        return (Blend){i * from / to, i * from / to, 0};
    double at = ((double)i + 0.5) * (double)from / (double)to - 0.5;
    at = at < 0 ? 0 : at;
    int64_t low = (int64_t)at;
    return (Blend){low, low + 1 < from ? low + 1 : low, at - (double)low};
}

// The channels of a pixel of a resized image, in the result, and their sources
// in the image: four pixels with their weights.
typedef struct {
    int64_t own;
    int64_t at[4];
    double share[4];
} Mixture;

static Mixture mixture_of(const Node *n, Type image, Type result, int64_t p) {
    int64_t h = p / result.dim[2] % result.dim[1], w = p % result.dim[2];
    Blend y = blend_of(n, image, 0, h), x = blend_of(n, image, 1, w);
    Mixture m = {.own = p * result.dim[3]};
    for (int k = 0; k < 4; k++) {
        m.share[k] =
            (k & 2 ? y.share : 1 - y.share) * (k & 1 ? x.share : 1 - x.share);
        m.at[k] = pixel(image, p / result.dim[2] / result.dim[1],
                        k & 2 ? y.high : y.low, k & 1 ? x.high : x.low, 0);
    }
    return m;
}

static int64_t pixels_of(Type t) {
    return t.dim[0] * t.dim[1] * t.dim[2];
}

void eval_resize(const Eval *e) {
    Type image = *arg_type(e, 0), result = *e->n->type;
    for (int64_t p = 0; p < pixels_of(result); p++) {
        Mixture m = mixture_of(e->n, image, result, p);
        for (int k = 0; k < 4; k++)
            for (int64_t c = 0; m.share[k] != 0 && c < result.dim[3]; c++)
                e->out[m.own + c] += m.share[k] * arg(e, 0)[m.at[k] + c];
    }
}

void eval_resize_grad(const Eval *e) {
    Type image = *e->n->type, result = *arg_type(e, 0);
    for (int64_t p = 0; p < pixels_of(result); p++) {
        Mixture m = mixture_of(e->n, image, result, p);
        for (int k = 0; k < 4; k++)
            for (int64_t c = 0; m.share[k] != 0 && c < result.dim[3]; c++)
                e->out[m.at[k] + c] += m.share[k] * arg(e, 0)[m.own + c];
    }
}
