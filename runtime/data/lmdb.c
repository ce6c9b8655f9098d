// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LMDB: databases of images.  A value is a record of Caffe, a Datum with an
// image and its class, or an image file, as in LSUN, which has a database for
// each class.
//
// The entries are read once.  An index keeps the offset of each image in its
// file, so samples are read in any order, by several threads.

#include "runtime/data/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define DATA_FILE "data.mdb"

// A database while it is read.
typedef struct {
    RtSplit *split;
    const RtDataSpec *spec;
    RtReader file;
    int32_t number;    // of the file in its split
    const char *class; // by its folder; "": none
    int64_t label;     // of that class; -1: none
    bool *has_files;   // whether values are image files
    uint64_t *hash;
} Database;

// ---- samples ----

typedef struct {
    const char *name; // FILE:KEY
    RtFilePart part;
    const char *suffix; // of an image file; NULL: raw pixels
    int64_t label;
} Sample;

// The suffix of an image file by its first bytes; *suffix NULL: it is none.
static bool suffix_read(Database *b, const RtFilePart *part,
                        const char **suffix, RtError *e) {
    enum { MOST = 12 };
    uint8_t front[MOST];
    size_t count = part->bytes < MOST ? (size_t)part->bytes : MOST;
    if (!rt_reader_copy(&b->file, part->first, count, front, e))
        return false;
    *suffix = rt_image_suffix_of(front, count);
    return true;
}

// Whether the bytes have the size of pixels.
static bool is_raw(const RtDatum *d) {
    return d->height > 0 && d->height <= UINT16_MAX && d->width > 0 &&
           d->width <= UINT16_MAX && (d->channels == 1 || d->channels == 3) &&
           d->bytes == d->channels * d->height * d->width;
}

static bool take_datum(Database *b, Sample *s, RtError *e) {
    RtDatum d;
    RtError why;
    if (!rt_datum_read(&b->file, s->part.first, s->part.bytes, &d, &why))
        return rt_fail(e, why.status, "%s: %s", s->name, why.text);
    if (d.has_floats)
        return rt_fail(e, EXIT_DATA,
                       "%s has its pixels in float_data: expected bytes, in "
                       "data",
                       s->name);
    s->part.first = d.first;
    s->part.bytes = d.bytes;
    s->label = d.label;
    if (d.encoded == 0 && is_raw(&d)) {
        s->part.h = (uint16_t)d.height;
        s->part.w = (uint16_t)d.width;
        return true;
    }
    if (!suffix_read(b, &s->part, &s->suffix, e))
        return false;
    // A file of no known format gives its message when it is decoded.
    if (s->suffix == NULL && d.encoded != 0)
        s->suffix = rt_image_suffix[0];
    return s->suffix != NULL ||
           rt_fail(e, EXIT_DATA,
                   "%s: its %lld bytes are neither a JPEG, PNG or WebP file "
                   "nor %lld x %lld pixels of 1 or 3 channels, but of %lld",
                   s->name, (long long)d.bytes, (long long)d.width,
                   (long long)d.height, (long long)d.channels);
}

static bool take_file(Database *b, Sample *s, RtError *e) {
    s->label = b->label;
    *b->has_files = true;
    return s->label >= 0 || b->spec->label.rank < 0 ||
           rt_fail(e, EXIT_DATA,
                   *b->class != '\0'
                       ? "%s has images of a class %s, which is not in the "
                         "training set"
                       : "%s has images without a class: expected a database "
                         "for each class, in a folder of its name",
                   b->file.path, b->class);
}

static bool check_label(const Database *b, const Sample *s, RtError *e) {
    const RtDataSpec *spec = b->spec;
    return spec->label.rank < 0 || s->label == spec->ignored ||
           (s->label >= 0 && s->label < spec->classes) ||
           rt_fail(e, EXIT_DATA,
                   "%s has label %lld, but the model has %d classes", s->name,
                   (long long)s->label, spec->classes);
}

// A name ends in the suffix of its format.
static bool sample_add(Database *b, const Sample *s, RtError *e) {
    const char *key = s->name + strlen(b->file.path) + 1;
    bool named =
        s->suffix == NULL || rt_names_suffix(key, rt_image_suffix) != NULL;
    int64_t bits[] = {s->part.bytes, s->label};
    *b->hash = XXH3_64bits_withSeed(key, strlen(key), *b->hash);
    *b->hash = XXH3_64bits_withSeed(bits, sizeof bits, *b->hash);
    return rt_images_add(b->split,
                         rt_path("%s%s", s->name, named ? "" : s->suffix),
                         &s->part, (int32_t)(s->label < 0 ? 0 : s->label), e);
}

static bool take_entry(void *context, const RtLmdbEntry *entry, RtError *e) {
    Database *b = context;
    char *name = rt_path("%s:%.*s", b->file.path, (int)entry->key_length,
                         (const char *)entry->key);
    Sample s = {.name = name,
                .part = {.first = entry->first,
                         .bytes = entry->bytes,
                         .file = b->number}};
    bool good = name != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    good = good && suffix_read(b, &s.part, &s.suffix, e) &&
           (s.suffix != NULL ? take_file(b, &s, e) : take_datum(b, &s, e)) &&
           check_label(b, &s, e) && sample_add(b, &s, e);
    free(name);
    return good;
}

// ---- databases ----

// The class of a database: the name of its folder, up to the word for the set
// if there is no folder for that.
static char *class_of(const char *folder, const char *root) {
    const char *within = folder + strlen(root);
    while (*within == '/')
        within++;
    const char *slash = strrchr(within, '/');
    const char *name = slash != NULL ? slash + 1 : within;
    size_t length = slash != NULL ? strlen(name) : rt_shards_word(name);
    while (length > 0 && name[length] != '\0' &&
           strchr("_-.", name[length - 1]) != NULL)
        length--;
    return rt_path("%.*s", (int)length, name);
}

static bool read_database(Database *b, const char *path, const RtFiles *files,
                          RtError *e) {
    if (!rt_reader_open(&b->file, files, path, e))
        return false;
    bool good = rt_lmdb_walk(&b->file, take_entry, b, e);
    rt_reader_close(&b->file);
    return good;
}

static bool read_split(RtData *d, RtSplit *split, const char *root,
                       const RtNames *folder, const RtNames *class,
                       bool *has_files, const RtDataSpec *spec,
                       const RtFiles *files, RtError *e) {
    RtImages *images = rt_images_open(d, split, spec, files, e);
    if (images == NULL)
        return false;
    images->decoder.rgb = rt_setting(spec, "rgb", 0) != 0;
    Database b = {
        .split = split, .spec = spec, .has_files = has_files, .hash = &d->hash};
    bool good = true;
    for (int64_t i = 0; good && i < folder->count; i++) {
        char *path = rt_path("%s/" DATA_FILE, folder->name[i]);
        char *name = class_of(folder->name[i], root);
        b.number = (int32_t)i;
        b.class = name;
        b.label =
            name != NULL && *name != '\0' ? rt_names_find(class, name) : -1;
        good = (name != NULL || rt_fail(e, EXIT_MEMORY, "out of memory")) &&
               rt_names_add(&images->file, path, e) &&
               read_database(&b, path, files, e);
        free(name);
    }
    if (good && split->count == 0)
        good = rt_fail(e, EXIT_DATA, "%s has no entry", images->file.name[0]);
    return good && rt_images_complete(split, spec, e);
}

static bool is_database(const char *folder) {
    char *path = rt_path("%s/" DATA_FILE, folder);
    bool is = path != NULL && access(path, F_OK) == 0;
    free(path);
    return is;
}

// Leaves the databases among folders.
static void filter(RtNames *folder) {
    int64_t kept = 0;
    for (int64_t i = 0; i < folder->count; i++)
        if (is_database(folder->name[i]))
            folder->name[kept++] = folder->name[i];
        else
            free(folder->name[i]);
    folder->count = kept;
}

// Adds a folder that is a database itself, if there is one.
static bool add_one(RtNames *to, char *folder, RtError *e) {
    if (folder != NULL && (to->count > 0 || !is_database(folder))) {
        free(folder);
        return true;
    }
    return rt_names_add(to, folder, e);
}

// Finds a database of training, or those in folders as shards are.
static bool find(RtShards *s, const char *root, RtError *e) {
    static const char *const test[] = {"test", "val", "validation"};
    if (!add_one(&s->train, rt_path("%s", root), e) || s->train.count > 0)
        return s->train.count > 0;
    if (!rt_shards_find(s, root, NULL, e))
        return false;
    filter(&s->train);
    filter(&s->test);
    bool good = add_one(&s->train, rt_path("%s/train", root), e);
    for (int i = 0; good && i < 3; i++)
        good = add_one(&s->test, rt_path("%s/%s", root, test[i]), e);
    return good &&
           (s->train.count > 0 ||
            rt_fail(e, EXIT_DATA,
                    "%s has no folder with a " DATA_FILE " for training",
                    root));
}

static bool find_classes(RtNames *class, const RtNames *folder,
                         const char *root, RtError *e) {
    for (int64_t i = 0; i < folder->count; i++) {
        char *name = class_of(folder->name[i], root);
        if (name != NULL && i > 0 && rt_names_find(class, name) >= 0) {
            free(name);
            continue;
        }
        if (!rt_names_add(class, name, e))
            return false;
        rt_names_sort(class);
    }
    return true;
}

bool rt_lmdb_read(RtData *d, const char *path, const RtDataSpec *spec,
                  const RtFiles *files, RtError *e) {
    RtShards s = {.train = {0}};
    RtNames class = {0};
    bool has_files = false;
    bool good = find(&s, path, e) && find_classes(&class, &s.train, path, e);
    if (good && s.test.count == 0 && !spec->test_optional)
        good = rt_fail(e, EXIT_DATA,
                       "%s has no folder with a " DATA_FILE
                       " for the test, such as test or val: add one, or hold "
                       "images out with --validation=10%%",
                       path);
    good = good &&
           read_split(d, &d->train, path, &s.train, &class, &has_files, spec,
                      files, e) &&
           (s.test.count == 0 || read_split(d, &d->test, path, &s.test, &class,
                                            &has_files, spec, files, e));
    if (good && has_files)
        d->classes = rt_names_text(&class);
    rt_names_free(&class);
    rt_shards_free(&s);
    return good;
}
