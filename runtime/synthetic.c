// Synthetic: a labelled image set that needs no file.
//
// Each class has a few textures, sums of slow waves of colour on a tile.  A
// sample is one of its class's textures, moved by any distance, repeated,
// faded, with a fainter texture of another class over it, a rectangle of one
// colour in front, a shift of brightness, and strong noise.  Because textures
// move freely, the mean image of every class is grey: what tells the classes
// apart is local colour and direction, which a small convolutional net finds
// and a linear model does not.  Every sample is a function of its number.
#define _POSIX_C_SOURCE 200809L

#include "runtime/runtime.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    TRAIN_SAMPLES = 10000,
    TEST_SAMPLES = 2000,
    LARGEST_SET = 512 << 20, // bytes; larger images make fewer samples
    FEWEST_SAMPLES = 60,
    TEXTURES = 2, // of a class
    WAVES = 3,    // of a texture and channel
    TILE = 32,    // most rows and columns of a texture
    MOST_THREADS = 16
};

static const double PI = 3.14159265358979323846;
static const uint64_t KEY = 0x73796e7468657469; // changing it changes the set

typedef struct {
    RtSample shape, tile;
    float *texture; // classes * TEXTURES tiles
} Textures;

typedef struct {
    const Textures *textures;
    RtSplit *split;
    uint64_t key;
    int64_t first, last;
} Share;

// A number from 0 to 1, without 1.
static double uniform(uint64_t key, uint64_t counter) {
    return (double)(rt_random(key, counter) >> 11) * 0x1p-53;
}

static int below(uint64_t key, uint64_t counter, int n) {
    return (int)(uniform(key, counter) * n);
}

// Adds a wave with a whole number of periods, so that it wraps.
static void add_wave(float *to, const RtSample *s, int channel, uint64_t key) {
    int across = below(key, 0, 5), down = below(key, 1, 9) - 4;
    if (across == 0 && down == 0)
        across = 2;
    double phase = uniform(key, 2), height = 0.5 + uniform(key, 3);
    for (int y = 0; y < s->h; y++)
        for (int x = 0; x < s->w; x++) {
            double turns =
                (double)(across * x) / s->w + (double)(down * y) / s->h + phase;
            to[((size_t)y * s->w + x) * s->c + channel] +=
                (float)(height * cos(2 * PI * turns));
        }
}

static void draw_texture(float *to, const RtSample *s, uint64_t key) {
    for (int c = 0; c < s->c; c++)
        for (int i = 0; i < WAVES; i++)
            add_wave(to, s, c, rt_random(key, (uint64_t)(c * WAVES + i)));
}

static size_t image_values(const RtSample *s) {
    return (size_t)s->h * (size_t)s->w * (size_t)s->c;
}

static const float *texture_of(const Textures *t, int class, int number) {
    return t->texture +
           image_values(&t->tile) * (size_t)(class * TEXTURES + number);
}

static bool draw_textures(Textures *t, const RtSample *shape) {
    t->shape = t->tile = *shape;
    t->tile.h = shape->h < TILE ? shape->h : TILE;
    t->tile.w = shape->w < TILE ? shape->w : TILE;
    size_t n = image_values(&t->tile);
    size_t count = (size_t)shape->classes * TEXTURES;
    t->texture = calloc(count * n, sizeof *t->texture);
    for (size_t i = 0; t->texture != NULL && i < count; i++)
        draw_texture(t->texture + i * n, &t->tile, rt_random(KEY, i));
    return t->texture != NULL;
}

// A texture as a sample shows it.
typedef struct {
    const float *image;
    int down, right; // how far it is moved
    float height;
} Layer;

static Layer draw_layer(const Textures *t, int class, uint64_t key,
                        double least, double most) {
    return (Layer){
        .image = texture_of(t, class, below(key, 0, TEXTURES)),
        .down = below(key, 1, t->tile.h),
        .right = below(key, 2, t->tile.w),
        .height = (float)(least + (most - least) * uniform(key, 3)),
    };
}

typedef struct {
    int top, bottom, left, right;
} Box;

// A rectangle of up to half the image each way.
static Box draw_box(const RtSample *s, uint64_t key) {
    int h = 1 + below(key, 0, s->h / 2 + 1),
        w = 1 + below(key, 1, s->w / 2 + 1);
    int top = below(key, 2, s->h - h + 1), left = below(key, 3, s->w - w + 1);
    return (Box){top, top + h, left, left + w};
}

// The sum of two random bytes, moved and scaled to mean 0 and deviation 1.
static float noise(uint64_t bits) {
    int sum = (int)((bits & 255) + (bits >> 8 & 255));
    return (float)(sum - 255) * (1 / 104.5f);
}

static float layer_at(const Layer *l, const RtSample *s, int y, int x, int c) {
    int row = (y + l->down) % s->h, column = (x + l->right) % s->w;
    return l->height * l->image[((size_t)row * s->w + column) * s->c + c];
}

static uint8_t to_byte(float v) {
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5f);
}

static void draw_sample(const Textures *t, int class, uint64_t key,
                        uint8_t *to) {
    const RtSample *s = &t->shape;
    int other = (class + 1 + below(key, 0, s->classes - 1)) % s->classes;
    Layer layer[2] = {
        draw_layer(t, class, rt_random(key, 1), 16, 34),
        draw_layer(t, other, rt_random(key, 2), 0, 14),
    };
    Box box = draw_box(s, rt_random(key, 3));
    uint64_t noise_key = rt_random(key, 4), box_key = rt_random(key, 5);
    float light = (float)(128 + 50 * (uniform(key, 6) - 0.5));
    float strength = (float)(20 + 20 * uniform(key, 7));
    uint64_t bits = 0;
    size_t at = 0;
    for (int y = 0; y < s->h; y++)
        for (int x = 0; x < s->w; x++)
            for (int c = 0; c < s->c; c++, at++) {
                bool hidden = y >= box.top && y < box.bottom && x >= box.left &&
                              x < box.right;
                if (at % 4 == 0)
                    bits = rt_random(noise_key, at);
                float v = light + strength * noise(bits >> at % 4 * 16);
                if (hidden)
                    v += (float)(80 * (uniform(box_key, (uint64_t)c) - 0.5));
                else
                    v += layer_at(&layer[0], &t->tile, y, x, c) +
                         layer_at(&layer[1], &t->tile, y, x, c);
                to[at] = to_byte(v);
            }
}

static void *draw_share(void *arg) {
    const Share *share = arg;
    RtSplit *s = share->split;
    int classes = share->textures->shape.classes;
    for (int64_t i = share->first; i < share->last; i++) {
        uint64_t key = rt_random(share->key, (uint64_t)i);
        s->label[i] = below(key, 8, classes);
        draw_sample(share->textures, s->label[i], key,
                    s->image + (size_t)i * s->image_bytes);
    }
    return NULL;
}

// A share that gets no thread is drawn by this one.
static void draw_split(const Textures *t, RtSplit *s, uint64_t key) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = cores < 1              ? 1
                  : cores > MOST_THREADS ? MOST_THREADS
                                         : (int)cores;
    Share share[MOST_THREADS];
    pthread_t thread[MOST_THREADS];
    bool started[MOST_THREADS] = {false};
    for (int i = 0; i < threads; i++) {
        share[i] = (Share){t, s, key, s->count * i / threads,
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

// How many of `most` samples there are room for.
static int64_t samples(int64_t most, const RtSample *shape) {
    double each = (double)shape->h * shape->w * shape->c;
    double share = LARGEST_SET / (each * (TRAIN_SAMPLES + TEST_SAMPLES));
    int64_t count = share < 1 ? (int64_t)(share * (double)most) : most;
    return count < FEWEST_SAMPLES ? FEWEST_SAMPLES : count;
}

bool rt_synthetic_draw(RtData *d, const char *path, const RtSample *shape,
                       const RtFiles *files, RtError *e) {
    (void)path;
    (void)files;
    Textures t = {0};
    if (shape->classes < 2)
        return rt_fail(e, EXIT_DATA,
                       "synthetic data has two classes or more, the model %d",
                       shape->classes);
    if (!rt_split_reserve(&d->train, samples(TRAIN_SAMPLES, shape), shape, e) ||
        !rt_split_reserve(&d->test, samples(TEST_SAMPLES, shape), shape, e))
        return false;
    if (!draw_textures(&t, shape))
        return rt_fail(e, EXIT_MEMORY, "no memory to draw the data set");
    draw_split(&t, &d->train, rt_random(KEY, UINT64_MAX));
    draw_split(&t, &d->test, rt_random(KEY, UINT64_MAX - 1));
    free(t.texture);
    d->hash = rt_random(KEY, image_values(shape) + (uint64_t)shape->classes);
    return true;
}
