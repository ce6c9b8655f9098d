// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Textures: images of classes that need no file.
//
// Each class has a few textures, sums of slow colour waves on a tile.  A sample
// is one of its class's textures, shifted, repeated and faded, with a fainter
// texture of another class over it, a rectangle of one colour in front, a
// brightness shift, and strong noise.  Because of the shifts, the mean image of
// every class is grey: classes differ in local colour and direction only, which
// a small convolutional network finds and a linear model does not.

#include "runtime/data/data.h"

#include <math.h>
#include <stdlib.h>

enum {
    TEXTURES = 2, // per class
    WAVES = 3,    // per texture and channel
    TILE = 32,    // maximum rows and columns of a texture
};

static const double PI = 3.14159265358979323846;
static const uint64_t KEY =
    0x73796e7468657469; // part of the data set's definition

struct RtTextures {
    RtSize shape, tile;
    int classes;
    float *texture; // classes * TEXTURES tiles
};

// Adds a wave with a whole number of periods, so that it wraps.
static void add_wave(float *to, const RtSize *s, int channel, uint64_t key) {
    int across = rt_below(key, 0, 5), down = rt_below(key, 1, 9) - 4;
    if (across == 0 && down == 0)
        across = 2;
    double phase = rt_uniform(key, 2), height = 0.5 + rt_uniform(key, 3);
    for (int y = 0; y < s->h; y++)
        for (int x = 0; x < s->w; x++) {
            double turns =
                (double)(across * x) / s->w + (double)(down * y) / s->h + phase;
            to[((size_t)y * s->w + x) * s->c + channel] +=
                (float)(height * cos(2 * PI * turns));
        }
}

static void draw_texture(float *to, const RtSize *s, uint64_t key) {
    for (int c = 0; c < s->c; c++)
        for (int i = 0; i < WAVES; i++)
            add_wave(to, s, c, rt_random(key, (uint64_t)(c * WAVES + i)));
}

static size_t image_values(const RtSize *s) {
    return (size_t)s->h * (size_t)s->w * (size_t)s->c;
}

static const float *texture_of(const RtTextures *t, int class, int number) {
    return t->texture +
           image_values(&t->tile) * (size_t)(class * TEXTURES + number);
}

// A texture as it appears in a sample.
typedef struct {
    const float *image;
    int down, right; // offset
    float height;
} Layer;

static Layer draw_layer(const RtTextures *t, int class, uint64_t key,
                        double least, double most) {
    return (Layer){
        .image = texture_of(t, class, rt_below(key, 0, TEXTURES)),
        .down = rt_below(key, 1, t->tile.h),
        .right = rt_below(key, 2, t->tile.w),
        .height = (float)(least + (most - least) * rt_uniform(key, 3)),
    };
}

// A rectangle of up to half the image each way.
static RtBox draw_box(const RtSize *s, uint64_t key) {
    int h = 1 + rt_below(key, 0, s->h / 2 + 1),
        w = 1 + rt_below(key, 1, s->w / 2 + 1);
    int top = rt_below(key, 2, s->h - h + 1),
        left = rt_below(key, 3, s->w - w + 1);
    return (RtBox){top, top + h, left, left + w};
}

// The sum of two random bytes, moved and scaled to mean 0 and deviation 1.
static float noise(uint64_t bits) {
    int sum = (int)((bits & 255) + (bits >> 8 & 255));
    return (float)(sum - 255) * (1 / 104.5f);
}

// Its channels at a pixel of the sample.
static const float *pixel_of(const Layer *l, const RtSize *s, int y, int x) {
    int row = (y + l->down) % s->h, column = (x + l->right) % s->w;
    return l->image + ((size_t)row * s->w + column) * s->c;
}

static uint8_t to_byte(float v) {
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5f);
}

RtBox rt_textures_draw(const RtTextures *t, int class, uint64_t key,
                       uint8_t *to) {
    const RtSize *s = &t->shape;
    int other = (class + 1 + rt_below(key, 0, t->classes - 1)) % t->classes;
    Layer layer[2] = {
        draw_layer(t, class, rt_random(key, 1), 16, 34),
        draw_layer(t, other, rt_random(key, 2), 0, 14),
    };
    RtBox box = draw_box(s, rt_random(key, 3));
    uint64_t noise_key = rt_random(key, 4), box_key = rt_random(key, 5);
    float light = (float)(128 + 50 * (rt_uniform(key, 6) - 0.5));
    float strength = (float)(20 + 20 * rt_uniform(key, 7));
    uint64_t bits = 0;
    size_t at = 0;
    for (int y = 0; y < s->h; y++)
        for (int x = 0; x < s->w; x++) {
            bool hidden = y >= box.top && y < box.bottom && x >= box.left &&
                          x < box.right;
            const float *front = pixel_of(&layer[0], &t->tile, y, x),
                        *behind = pixel_of(&layer[1], &t->tile, y, x);
            for (int c = 0; c < s->c; c++, at++) {
                if (at % 4 == 0)
                    bits = rt_random(noise_key, at);
                float v = light + strength * noise(bits >> at % 4 * 16);
                if (hidden)
                    v += (float)(80 * (rt_uniform(box_key, (uint64_t)c) - 0.5));
                else
                    v += layer[0].height * front[c] +
                         layer[1].height * behind[c];
                to[at] = to_byte(v);
            }
        }
    return box;
}

void rt_textures_free(RtTextures *t) {
    if (t != NULL)
        free(t->texture);
    free(t);
}

RtTextures *rt_textures_new(RtSize shape, int classes) {
    RtTextures *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->shape = t->tile = shape;
    t->classes = classes;
    t->tile.h = shape.h < TILE ? shape.h : TILE;
    t->tile.w = shape.w < TILE ? shape.w : TILE;
    size_t n = image_values(&t->tile);
    size_t count = (size_t)classes * TEXTURES;
    t->texture = calloc(count * n, sizeof *t->texture);
    for (size_t i = 0; t->texture != NULL && i < count; i++)
        draw_texture(t->texture + i * n, &t->tile, rt_random(KEY, i));
    if (t->texture != NULL)
        return t;
    rt_textures_free(t);
    return NULL;
}
