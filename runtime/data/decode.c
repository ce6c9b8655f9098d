// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decode: an image file becomes pixels of one size, in bounded memory.
//
// A file is read through a small buffer while it is decoded, and rows are
// resized as they come.  So an image needs memory for some rows only, except a
// progressive JPEG (all coefficients) and an interlaced PNG (all pixels).  The
// header gives the size.  Each loader may allocate a little at any time; for
// more it waits for its part of a shared budget, so the total is known before
// the run.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/decode.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct RtDecodeMemory {
    RtDevice *device; // NULL: none that decodes
    size_t all, left;
    pthread_mutex_t lock; // guards left
    pthread_cond_t released;
};

// ---- memory ----

// Coefficients of three colours at full size take six bytes a pixel; rows of
// the widest image fit in the rest.
RtDecodeMemory *rt_decode_memory_new(int64_t max_pixels) {
    enum { PIXEL_BYTES = 6, ROWS = 32 << 20 };
    RtDecodeMemory *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->all = s->left = (size_t)max_pixels * PIXEL_BYTES + ROWS;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->released, NULL);
    return s;
}

void rt_decode_memory_free(RtDecodeMemory *s) {
    if (s == NULL)
        return;
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->released);
    free(s);
}

void rt_decode_memory_set_device(RtDecodeMemory *s, RtDevice *device) {
    if (s != NULL)
        s->device = device->decode_jpeg != NULL ? device : NULL;
}

RtDevice *rt_decode_memory_device(const RtDecodeMemory *s) {
    return s->device;
}

size_t rt_decode_memory_bytes(const RtDecodeMemory *s) {
    return s->all;
}

// Acquires all memory of an image at once, so no thread waits while it holds a
// part.
static void memory_acquire(RtDecodeMemory *s, size_t bytes) {
    pthread_mutex_lock(&s->lock);
    while (s->left < bytes)
        pthread_cond_wait(&s->released, &s->lock);
    s->left -= bytes;
    pthread_mutex_unlock(&s->lock);
}

static void memory_release(RtDecodeMemory *s, size_t bytes) {
    pthread_mutex_lock(&s->lock);
    s->left += bytes;
    pthread_cond_broadcast(&s->released);
    pthread_mutex_unlock(&s->lock);
}

// ---- bytes ----

bool rt_image_fill(RtDecoding *d) {
    size_t most = d->left < sizeof d->buffer ? d->left : sizeof d->buffer;
    d->next = d->buffer;
    d->ready = 0;
    if (most == 0)
        return false;
    d->failed = !rt_read(d->files, d->file, d->buffer, most);
    d->reason = errno;
    if (d->failed)
        return false;
    d->ready = most;
    d->left -= most;
    return true;
}

uint8_t *rt_image_rest(RtDecoding *d, size_t *bytes, RtError *e) {
    *bytes = d->ready + d->left;
    uint8_t *all = malloc(*bytes + 1);
    if (all == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    for (size_t at = 0; d->ready > 0;) {
        memcpy(all + at, d->next, d->ready);
        at += d->ready;
        if (!rt_image_fill(d) && at < *bytes) {
            rt_fail(e, EXIT_DATA, "the file is truncated");
            free(all);
            return NULL;
        }
    }
    return all;
}

// ---- one image ----

bool rt_image_begin(RtDecoding *d, uint32_t h, uint32_t w, RtError *e) {
    if ((uint64_t)h * w <= (uint64_t)d->decoder->max_pixels)
        return true;
    return rt_fail(e, EXIT_DATA,
                   "its %" PRIu32 " x %" PRIu32 " pixels are more than the "
                   "%" PRId64 " of --max-image-pixels",
                   w, h, d->decoder->max_pixels);
}

// Orientations from 5 on are mirrored at the diagonal.
void rt_image_stored(const RtDecoding *d, int *h, int *w) {
    *h = d->orientation < 5 ? d->decoder->h : d->decoder->w;
    *w = d->orientation < 5 ? d->decoder->w : d->decoder->h;
}

bool rt_image_reserve(RtDecoding *d, int h, int w, size_t bytes, RtError *e) {
    const RtImageDecoder *decoder = d->decoder;
    const double mib = 1 << 20;
    int rows, columns;
    rt_image_stored(d, &rows, &columns);
    size_t result = d->orientation > 1 ? 3 * (size_t)rows * (size_t)columns : 0;
    bytes += rt_resize_bytes(h, w, rows, columns) + result;
    if (bytes > decoder->memory->all)
        return rt_fail(e, EXIT_DATA,
                       "decoding takes %.0f MiB, but the limit is %.0f MiB; "
                       "see --max-image-pixels",
                       (double)bytes / mib, (double)decoder->memory->all / mib);
    if (bytes > RT_LOADER_PRIVATE_BYTES) {
        memory_acquire(decoder->memory, bytes);
        d->reserved = bytes;
    }
    d->stored = result > 0 ? malloc(result) : d->to;
    if (d->stored != NULL)
        d->resize = rt_resize_new(h, w, rows, columns, d->stored);
    return d->resize != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
}

void rt_image_release(RtDecoding *d) {
    rt_resize_free(d->resize);
    d->resize = NULL;
    if (d->stored != d->to)
        free(d->stored);
    d->stored = NULL;
    if (d->reserved > 0)
        memory_release(d->decoder->memory, d->reserved);
    d->reserved = 0;
}

const char *rt_image_suffix_of(const void *bytes, size_t count) {
    const uint8_t *p = bytes;
    if (count >= 8 && memcmp(p, "\x89PNG\r\n\x1a\n", 8) == 0)
        return ".png";
    if (count >= 2 && p[0] == 0xff && p[1] == 0xd8)
        return ".jpg";
    bool webp = count >= 12 && memcmp(p, "RIFF", 4) == 0 &&
                memcmp(p + 8, "WEBP", 4) == 0;
    return webp ? ".webp" : NULL;
}

static bool no_library(RtDecoding *d, const char *format, RtError *e) {
    d->unknown = true;
    return rt_fail(e, EXIT_DATA,
                   "it is a %s file by content, but the library for that "
                   "format is not installed",
                   format);
}

// The first bytes decide on the format, not the name.
static bool decode(RtDecoding *d, RtError *e) {
    const RtImageDecoder *by = d->decoder;
    const char *suffix = rt_image_suffix_of(d->next, d->ready);
    if (d->h > 0)
        return rt_planes_decode(d, e);
    if (suffix == NULL)
        return rt_fail(e, EXIT_DATA, "it is no JPEG, PNG or WebP file");
    if (strcmp(suffix, ".png") == 0)
        return by->png != NULL ? rt_png_decode(by->png, d, e)
                               : no_library(d, "PNG", e);
    if (strcmp(suffix, ".jpg") == 0)
        return by->jpeg != NULL ? rt_jpeg_decode(by->jpeg, d, e)
                                : no_library(d, "JPEG", e);
    return by->webp != NULL ? rt_webp_decode(by->webp, d, e)
                            : no_library(d, "WebP", e);
}

// ---- orientation ----

// Turns a result upright (Exif 2.3, section 4.6.4).  Orientations from 5 on are
// mirrored at the diagonal; then 2, 3, 6 and 7 have their columns in reverse,
// and 3, 4, 7 and 8 their rows.
static void turn(uint8_t *to, const uint8_t *stored, int h, int w,
                 int orientation) {
    bool columns = orientation == 2 || orientation == 3 || orientation == 6 ||
                   orientation == 7;
    bool rows = orientation == 3 || orientation == 4 || orientation == 7 ||
                orientation == 8;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++, to += 3) {
            int row = rows ? h - 1 - y : y, column = columns ? w - 1 - x : x;
            int at = orientation < 5 ? row * w + column : column * h + row;
            memcpy(to, stored + 3 * (size_t)at, 3);
        }
}

// A file has at most eight bytes for each pixel, plus metadata.  A larger one
// would take long to read, so it is refused.
static bool is_small(const RtDecoding *d, RtError *e) {
    enum { PIXEL_BYTES = 8, BESIDE = 64 << 20 };
    size_t most = (size_t)d->decoder->max_pixels * PIXEL_BYTES + BESIDE;
    return d->left <= most ||
           rt_fail(
               e, EXIT_DATA,
               "its %zu bytes are more than the %zu that --max-image-pixels "
               "allows",
               d->left, most);
}

// Messages about its contents call the image `name`.
static bool read_open(RtDecoding *d, const char *path, const char *name,
                      bool *broken, RtError *e) {
    RtError why = {0};
    bool good = is_small(d, &why) && (rt_image_fill(d) || !d->failed) &&
                decode(d, &why);
    if (good && d->stored != d->to)
        turn(d->to, d->stored, d->decoder->h, d->decoder->w, d->orientation);
    rt_image_release(d);
    if (d->failed) {
        errno = d->reason;
        return rt_fail_read(e, path);
    }
    *broken = !good && !d->unknown && why.status == EXIT_DATA;
    return good ||
           rt_fail(e, why.status, "cannot decode %s: %s", name, why.text);
}

// Goes to a part of the open file; false if the file no longer has it.
static bool seek(RtDecoding *d, const RtFilePart *part) {
    errno = 0;
    if ((size_t)part->first > d->left ||
        (size_t)part->bytes > d->left - (size_t)part->first ||
        lseek(d->file, part->first, SEEK_SET) < 0)
        return false;
    d->left = (size_t)part->bytes;
    d->h = part->h;
    d->w = part->w;
    return true;
}

// Each read opens the file, as one part may be of thousands of files, and a
// process may have few open.
bool rt_image_read_part(const RtImageDecoder *decoder, const char *path,
                        const char *name, const RtFilePart *part, uint8_t *to,
                        bool *broken, RtError *e) {
    RtDecoding d = {.decoder = decoder, .files = decoder->files, .to = to};
    *broken = false;
    d.file = rt_open_sized(decoder->files, path, &d.left, e);
    if (d.file < 0)
        return false;
    bool good = (part == NULL || seek(&d, part) || rt_fail_read(e, path)) &&
                read_open(&d, path, name, broken, e);
    decoder->files->close(d.file);
    return good;
}

bool rt_image_read(const RtImageDecoder *decoder, const char *path, uint8_t *to,
                   bool *broken, RtError *e) {
    return rt_image_read_part(decoder, path, path, NULL, to, broken, e);
}
