// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Images: the samples of a split are image files, or parts of files.  They stay
// there: loading threads decode and resize one each time it is needed.
//
// An image that cannot be decoded is replaced by the next one of its class, if
// skipping is allowed.  So a sample and its label remain a function of its
// index and the files.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const rt_image_suffix[] = {".jpg", ".jpeg", ".png", ".webp", NULL};

// ---- samples ----

// A file that has vanished since the start is an I/O error.  A dangling link is
// the user's.
static bool is_gone(const char *path) {
    struct stat s;
    return lstat(path, &s) != 0 && errno == ENOENT;
}

static bool read_image(const RtImages *s, int64_t sample, uint8_t *to,
                       bool *broken, RtError *e) {
    const char *path = s->name.name[sample];
    bool good;
    if (s->part == NULL) {
        good = rt_image_read(&s->decoder, path, to, broken, e);
    } else {
        const RtFilePart *part = &s->part[sample];
        path = s->file.name[part->file];
        good = rt_image_read_part(&s->decoder, path, s->name.name[sample], part,
                                  to, broken, e);
    }
    if (!good && !*broken && e->status == EXIT_DATA && is_gone(path))
        e->status = EXIT_IO;
    return good;
}

static bool same_class(const RtSplit *s, int64_t a, int64_t b) {
    return memcmp(rt_column_at(&s->label, a), rt_column_at(&s->label, b),
                  sizeof(int32_t)) == 0;
}

// The next sample of the same class in this split, cyclically.
static int64_t next_of_class(const RtSplit *s, int64_t sample) {
    int64_t next = sample, all = rt_split_all(s);
    do
        next = (next + 1) % all;
    while (!same_class(s, sample, next) || !rt_split_has(s, next));
    return next;
}

// Skips an image with a warning, unless there are too many.
static bool skip_image(RtImages *s, int64_t sample, int64_t next, RtError *e) {
    char why[RT_MESSAGE_BYTES];
    pthread_mutex_lock(&s->lock);
    bool known = s->skipped[sample];
    bool room = known || s->num_skipped < s->max_skipped;
    if (room && !known) {
        s->skipped[sample] = true;
        s->num_skipped++;
        rt_warn_own("%s: skipped and replaced by %s (%lld of at most %lld)",
                    e->text, s->name.name[next], (long long)s->num_skipped,
                    (long long)s->max_skipped);
    }
    pthread_mutex_unlock(&s->lock);
    if (!room) {
        snprintf(why, sizeof why, "%s", e->text);
        rt_fail(e, EXIT_DATA, "%s, after %lld that %s skipped", why,
                (long long)s->max_skipped,
                s->max_skipped == 1 ? "was" : "were");
    }
    return room;
}

// Adds the option that would skip the image to the message.
static void suggest_option(RtError *e) {
    char why[sizeof e->text];
    memcpy(why, e->text, sizeof why);
    rt_fail(e, e->status, "%s; mend it, or skip such files with --bad-samples",
            why);
}

static bool fetch(const RtSplit *split, int64_t sample, uint8_t *to,
                  RtError *e) {
    RtImages *s = split->source;
    int64_t at = sample;
    bool broken;
    while (!read_image(s, at, to, &broken, e)) {
        if (s->is_table)
            return false;
        int64_t next = next_of_class(split, at);
        if (broken && s->max_skipped == 0)
            suggest_option(e);
        if (!broken || s->max_skipped <= 0)
            return false;
        if (next == sample)
            return rt_fail(e, EXIT_DATA,
                           "no image of the class of %s can be decoded",
                           s->name.name[sample]);
        if (!skip_image(s, at, next, e))
            return false;
        at = next;
    }
    return true;
}

// ---- opening ----

static void release(void *source) {
    RtImages *s = source;
    rt_names_free(&s->name);
    rt_names_free(&s->file);
    if (s->spool >= 0)
        close(s->spool);
    rt_webp_close(s->decoder.webp);
    rt_jpeg_close(s->decoder.jpeg);
    rt_png_close(s->decoder.png);
    pthread_mutex_destroy(&s->lock);
    free(s->part);
    free(s->skipped);
    free(s);
}

RtImages *rt_images_open(RtData *d, RtSplit *split, const RtDataSpec *spec,
                         const RtFiles *files, RtError *e) {
    int64_t most = spec->max_pixels > 0 ? spec->max_pixels : RT_MAX_PIXELS;
    if (d->decode_memory == NULL)
        d->decode_memory = rt_decode_memory_new(most);
    RtImages *s = d->decode_memory != NULL ? calloc(1, sizeof *s) : NULL;
    if (s == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    s->decoder = (RtImageDecoder){.files = files,
                                  .h = (int)spec->image.dim[0],
                                  .w = (int)spec->image.dim[1],
                                  .max_pixels = most,
                                  .memory = d->decode_memory};
    s->spool = -1;
    pthread_mutex_init(&s->lock, NULL);
    *split = (RtSplit){.fetch = fetch,
                       .source = s,
                       .release = release,
                       .image = {.values = rt_shape_values(&spec->image)},
                       .label = {RT_FILE_I32, 1, 1, NULL, false}};
    return s;
}

// Makes the labels, and the parts, as many as there is room for names.
static bool grow(RtSplit *split, bool parts, RtError *e) {
    RtImages *s = split->source;
    size_t room = (size_t)s->name.room;
    uint8_t *label = realloc(split->label.bytes, room * sizeof(int32_t));
    if (label != NULL)
        split->label.bytes = label;
    RtFilePart *part = parts ? realloc(s->part, room * sizeof *part) : s->part;
    if (part != NULL)
        s->part = part;
    return (label != NULL && (part != NULL || !parts)) ||
           rt_fail(e, EXIT_MEMORY, "out of memory");
}

bool rt_images_add(RtSplit *split, char *name, const RtFilePart *part,
                   int32_t label, RtError *e) {
    RtImages *s = split->source;
    int64_t room = s->name.room;
    if (!rt_names_add(&s->name, name, e) ||
        (s->name.room != room && !grow(split, part != NULL, e)))
        return false;
    if (part != NULL)
        s->part[split->count] = *part;
    memcpy(rt_column_at(&split->label, split->count++), &label, sizeof label);
    return true;
}

// A library is required if a name needs it; the others are optional.
static bool open_libraries(RtImages *s, RtError *e) {
    bool jpeg = false, png = false, webp = false;
    RtError ignored;
    for (int64_t i = 0; i < s->name.count; i++) {
        if (s->part != NULL && s->part[i].h > 0)
            continue;
        const char *dot = strrchr(s->name.name[i], '.');
        bool is_png = strcasecmp(dot, ".png") == 0;
        bool is_webp = strcasecmp(dot, ".webp") == 0;
        png |= is_png;
        webp |= is_webp;
        jpeg |= !is_png && !is_webp;
    }
    s->decoder.jpeg = rt_jpeg_open(jpeg ? e : &ignored);
    s->decoder.png = rt_png_open(png ? e : &ignored);
    s->decoder.webp = rt_webp_open(webp ? e : &ignored);
    return (s->decoder.jpeg != NULL || !jpeg) &&
           (s->decoder.png != NULL || !png) &&
           (s->decoder.webp != NULL || !webp);
}

bool rt_images_complete(RtSplit *split, const RtDataSpec *spec, RtError *e) {
    RtImages *s = split->source;
    s->max_skipped = spec->max_bad_files;
    s->skipped = calloc((size_t)split->count, sizeof *s->skipped);
    return s->skipped != NULL ? open_libraries(s, e)
                              : rt_fail(e, EXIT_MEMORY, "out of memory");
}
