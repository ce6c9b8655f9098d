// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Image folder: train/CLASS/*.jpg, *.png and *.webp, and test/CLASS/... or
// val/CLASS/... The index of a class is its position among the folders of train
// in byte order.  Images stay in their files: loading threads decode and resize
// them each time a sample is needed.
//
// A file that cannot be decoded is replaced by the next one of its folder, if
// skipping is allowed.  So a sample and its label remain a function of its
// index and the files.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

// The skipped files; each is named once.
typedef struct {
    int64_t max, count;
    bool *named;
    pthread_mutex_t lock; // guards both
} Skipped;

typedef struct {
    RtNames image; // paths
    RtImageDecoder decoder;
    Skipped skipped;
    RtIgnored *ignored; // while opening: counts other files
} Source;

// ---- samples ----

// A file that has vanished since the folder was listed is an I/O error.  A
// dangling link is the user's.
static bool is_gone(const char *path) {
    struct stat s;
    return lstat(path, &s) != 0 && errno == ENOENT;
}

static bool fetch_file(const Source *s, const char *path, uint8_t *to,
                       bool *broken, RtError *e) {
    bool good = rt_image_read(&s->decoder, path, to, broken, e);
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
    int64_t all = rt_split_all(s);
    do
        if (sample + 1 < all && same_class(s, sample, sample + 1))
            sample++;
        else
            while (sample > 0 && same_class(s, sample - 1, sample))
                sample--;
    while (!rt_split_has(s, sample));
    return sample;
}

// Skips a file with a warning, unless there are too many.
static bool skip_file(Source *s, int64_t sample, int64_t next, RtError *e) {
    Skipped *l = &s->skipped;
    char why[RT_MESSAGE_BYTES];
    pthread_mutex_lock(&l->lock);
    bool known = l->named[sample];
    bool room = known || l->count < l->max;
    if (room && !known) {
        l->named[sample] = true;
        l->count++;
        rt_warn("%s: skipped and replaced by %s (%lld of at most %lld)",
                e->text, s->image.name[next], (long long)l->count,
                (long long)l->max);
    }
    pthread_mutex_unlock(&l->lock);
    if (!room) {
        snprintf(why, sizeof why, "%s", e->text);
        rt_fail(e, EXIT_DATA, "%s, after %lld that %s skipped", why,
                (long long)l->max, l->max == 1 ? "was" : "were");
    }
    return room;
}

// Adds the option that would skip the file to the message.
static void suggest_option(RtError *e) {
    char why[sizeof e->text];
    memcpy(why, e->text, sizeof why);
    rt_fail(e, e->status, "%s; mend it, or skip such files with --bad-samples",
            why);
}

static bool fetch(const RtSplit *split, int64_t sample, uint8_t *to,
                  RtError *e) {
    Source *s = split->source;
    int64_t at = sample;
    bool broken;
    while (!fetch_file(s, s->image.name[at], to, &broken, e)) {
        int64_t next = next_of_class(split, at);
        if (broken && s->skipped.max == 0)
            suggest_option(e);
        if (!broken || s->skipped.max == 0)
            return false;
        if (next == sample)
            return rt_fail(e, EXIT_DATA,
                           "no file in the folder of %s can be decoded",
                           s->image.name[sample]);
        if (!skip_file(s, at, next, e))
            return false;
        at = next;
    }
    return true;
}

static bool is_folder(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

// ---- splits ----

static void release(void *source) {
    Source *s = source;
    rt_names_free(&s->image);
    rt_webp_close(s->decoder.webp);
    rt_jpeg_close(s->decoder.jpeg);
    rt_png_close(s->decoder.png);
    pthread_mutex_destroy(&s->skipped.lock);
    free(s->skipped.named);
    free(s);
}

// Adds the images of one class; *found: their number.
static bool add_class(Source *s, const char *folder, const char *class,
                      int64_t *found, RtError *e) {
    RtNames file = {0};
    char *path = rt_path("%s/%s", folder, class);
    bool good = path != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    good = good && rt_names_list(path, s->ignored, &file, e);
    if (good && file.count == 0)
        good = rt_fail(e, EXIT_DATA,
                       "%s has no .jpg, .jpeg, .png or .webp file", path);
    for (int64_t i = 0; good && i < file.count; i++)
        good = rt_names_add(&s->image, rt_path("%s/%s", path, file.name[i]), e);
    *found = file.count;
    rt_names_free(&file);
    free(path);
    return good;
}

static bool set_labels(RtSplit *s, int64_t count, int32_t label, RtError *e) {
    size_t bytes = (size_t)(s->count + count) * sizeof label;
    uint8_t *more = realloc(s->label.bytes, bytes);
    if (more == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    s->label.bytes = more;
    for (int64_t i = 0; i < count; i++, s->count++)
        memcpy(more + (size_t)s->count * sizeof label, &label, sizeof label);
    return true;
}

static bool add_classes(RtSplit *split, Source *s, const char *folder,
                        const RtNames *class, RtError *e) {
    RtNames here = {0};
    bool good = rt_names_list(folder, NULL, &here, e);
    for (int64_t i = 0; good && i < here.count; i++) {
        int64_t number = rt_names_find(class, here.name[i]), found;
        good = number >= 0 ? add_class(s, folder, here.name[i], &found, e) &&
                                 set_labels(split, found, (int32_t)number, e)
                           : rt_fail(e, EXIT_DATA,
                                     "%s/%s is a class that is not in train",
                                     folder, here.name[i]);
    }
    rt_names_free(&here);
    return good && (split->count > 0 ||
                    rt_fail(e, EXIT_DATA, "%s has no class folders", folder));
}

// A library is required if a file name needs it; the others are optional.
static bool open_libraries(Source *s, RtError *e) {
    bool jpeg = false, png = false, webp = false;
    RtError ignored;
    for (int64_t i = 0; i < s->image.count; i++) {
        const char *dot = strrchr(s->image.name[i], '.');
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

static int64_t max_pixels(const RtDataSpec *spec) {
    return spec->max_pixels > 0 ? spec->max_pixels : RT_MAX_PIXELS;
}

static bool read_split(RtData *d, RtSplit *split, const char *root,
                       const char *folder, const RtNames *class,
                       const RtDataSpec *spec, const RtFiles *files,
                       RtIgnored *ignored, RtError *e) {
    size_t size = (size_t)rt_setting(spec, "size", 1);
    Source *s = calloc(1, sizeof *s);
    if (s == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    *s = (Source){.decoder = {.files = files,
                              .size = (int)size,
                              .max_pixels = max_pixels(spec),
                              .memory = d->decode_memory},
                  .ignored = ignored};
    pthread_mutex_init(&s->skipped.lock, NULL);
    *split = (RtSplit){.fetch = fetch,
                       .source = s,
                       .release = release,
                       .image = {.values = size * size * 3},
                       .label = {RT_FILE_I32, 1, 1, NULL, false}};
    if (!add_classes(split, s, folder, class, e))
        return false;
    s->skipped.max = spec->max_bad_files;
    s->skipped.named = calloc((size_t)split->count, sizeof *s->skipped.named);
    if (s->skipped.named == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    for (int64_t i = 0; i < s->image.count; i++) {
        const char *within = s->image.name[i] + strlen(root);
        d->hash = XXH3_64bits_withSeed(within, strlen(within), d->hash);
    }
    return open_libraries(s, e);
}

static const char *const test_name[] = {"test", "val", NULL};

// The folder of the test set; NULL with *e filled.
static char *find_test(const char *path, RtError *e) {
    for (const char *const *name = test_name; *name != NULL; name++) {
        char *folder = rt_path("%s/%s", path, *name);
        if (folder == NULL || is_folder(folder))
            return folder;
        free(folder);
    }
    rt_fail(e, EXIT_DATA,
            "%s has no folder test or val: make one, or hold images out with "
            "--validation=10%%",
            path);
    return NULL;
}

// The folder of the training set.  A common mistake is to omit it.
static char *find_train(const char *path, RtError *e) {
    char *folder = rt_path("%s/train", path);
    if (folder == NULL || is_folder(folder) || !is_folder(path))
        return folder;
    free(folder);
    rt_fail(e, EXIT_DATA,
            "%s has no folder train: move or link the folders of the classes "
            "into %s/train",
            path, path);
    return NULL;
}

// Their names, one in a line.
static char *names_text(const RtNames *n) {
    size_t bytes = 1, at = 0;
    for (int64_t i = 0; i < n->count; i++)
        bytes += strlen(n->name[i]) + 1;
    char *text = calloc(bytes, 1);
    for (int64_t i = 0; text != NULL && i < n->count; i++)
        at += (size_t)snprintf(text + at, bytes - at, "%s\n", n->name[i]);
    return text;
}

// test: NULL without a test set.
static bool read_both(RtData *d, const char *root, const char *train,
                      const char *test, const RtDataSpec *spec,
                      const RtFiles *files, RtError *e) {
    RtNames class = {0};
    RtIgnored ignored = {.suffixes = 0};
    bool good = rt_names_list(train, NULL, &class, e);
    if (good && class.count > spec->classes)
        good =
            rt_fail(e, EXIT_DATA,
                    "%s has folders of %lld classes, but the trainer takes %d",
                    train, (long long)class.count, spec->classes);
    d->decode_memory = rt_decode_memory_new(max_pixels(spec));
    if (good && d->decode_memory == NULL)
        good = rt_fail(e, EXIT_MEMORY, "out of memory");
    good = good &&
           read_split(d, &d->train, root, train, &class, spec, files, &ignored,
                      e) &&
           (test == NULL || read_split(d, &d->test, root, test, &class, spec,
                                       files, &ignored, e));
    d->classes = names_text(&class);
    rt_ignored_text(d->ignored, &ignored, root, ".jpg, .jpeg, .png or .webp");
    rt_names_free(&class);
    return good;
}

bool rt_image_folder_read(RtData *d, const char *path, const RtDataSpec *spec,
                          const RtFiles *files, RtError *e) {
    rt_fail(e, EXIT_MEMORY, "out of memory");
    char *train = find_train(path, e);
    char *test = NULL;
    bool good = train != NULL &&
                (rt_lacks_test(spec, path, test_name) ||
                 (test = find_test(path, e)) != NULL) &&
                read_both(d, path, train, test, spec, files, e);
    free(train);
    free(test);
    return good;
}
