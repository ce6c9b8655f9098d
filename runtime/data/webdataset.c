// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// WebDataset: tar files, the shards, with the members KEY.jpg and KEY.cls of
// each sample next to each other.  A key ends at the first dot of the member's
// last name, as in the package of that name.  KEY.cls is the number of the
// class in digits, or KEY.json has it as `label`.
//
// The headers are read once.  An index keeps the offset of each image in its
// shard, so samples are read in any order.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const char *const suffixes[] = {".tar", NULL};

// The members of one key so far.
typedef struct {
    char *key;       // NULL: none
    char *image;     // its member's name; NULL: none
    char *other;     // that of a member of an unknown kind; NULL: none
    RtFilePart part; // of the image
    int64_t label;   // -1: none
} Sample;

// A shard while it is read.
typedef struct {
    RtSplit *split;
    const RtDataSpec *spec;
    RtTar tar;
    int32_t file;
    Sample sample;
    uint64_t *hash;
    RtIgnored *ignored; // members of samples without an image
} Shard;

// ---- labels ----

// A whole number in digits, with space around it; -1: it is none.
static int64_t label_of(const char *text) {
    char *end;
    while (isspace((unsigned char)*text))
        text++;
    bool digits = isdigit((unsigned char)*text);
    long long label = strtoll(text, &end, 10);
    while (isspace((unsigned char)*end))
        end++;
    return digits && *end == '\0' ? label : -1;
}

static bool read_class(Shard *s, const RtTarMember *m, RtError *e) {
    enum { MOST = 32 };
    char text[MOST + 1] = "";
    int64_t label = -1;
    if (m->bytes <= MOST) {
        if (!rt_tar_read(&s->tar, m->first, (size_t)m->bytes, text, e))
            return false;
        label = memchr(text, 0, (size_t)m->bytes) ? -1 : label_of(text);
    }
    s->sample.label = label;
    bool unused = s->spec->label.rank < 0;
    return unused || label >= 0 ||
           rt_fail(e, EXIT_DATA, "%s:%s is not the number of a class in digits",
                   s->tar.in.path, m->name);
}

// The last field `label` of an object, if it is a whole number; -1: it is not
// there, or the text is not an object.
static int64_t label_in(const char *text, size_t length) {
    RtJson j = {.at = text, .end = text + length};
    char name[64];
    uint64_t label = (uint64_t)-1;
    if (!rt_json_take(&j, '{') || rt_json_accept(&j, '}'))
        return -1;
    do {
        RtJson long_name = j;
        if (!rt_json_string(&j, name, sizeof name)) {
            j = long_name;
            rt_json_skip(&j);
            *name = '\0';
        }
        rt_json_take(&j, ':');
        if (strcmp(name, "label") == 0)
            rt_json_count(&j, &label);
        else
            rt_json_skip(&j);
    } while (rt_json_accept(&j, ','));
    bool good = rt_json_take(&j, '}') && rt_json_end(&j);
    return good ? (int64_t)label : -1;
}

static bool read_json(Shard *s, const RtTarMember *m, RtError *e) {
    enum { MOST = 1 << 20 };
    if (s->sample.label >= 0 || m->bytes > MOST)
        return true;
    char *text = malloc((size_t)m->bytes + 1);
    bool good = text != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    good = good && rt_tar_read(&s->tar, m->first, (size_t)m->bytes, text, e);
    if (good)
        s->sample.label = label_in(text, (size_t)m->bytes);
    free(text);
    return good;
}

// ---- samples ----

static void sample_clear(Sample *s) {
    free(s->key);
    free(s->image);
    free(s->other);
    *s = (Sample){.label = -1};
}

static bool check_label(const Shard *s, RtError *e) {
    const Sample *p = &s->sample;
    if (s->spec->label.rank < 0 ||
        (p->label >= 0 &&
         (p->label < s->spec->classes || p->label == s->spec->ignored)))
        return true;
    if (p->label < 0)
        return rt_fail(e, EXIT_DATA,
                       "%s:%s has no %s.cls, nor %s.json with a label, beside "
                       "it",
                       s->tar.in.path, p->image, p->key, p->key);
    return rt_fail(e, EXIT_DATA,
                   "%s:%s has label %" PRId64 ", but the model has %d classes",
                   s->tar.in.path, p->image, p->label, s->spec->classes);
}

// Members without an image are no sample; one of an unknown kind may be an
// image, so it is reported.
static bool sample_end(Shard *s, RtError *e) {
    Sample *p = &s->sample;
    if (p->image != NULL) {
        int64_t bits[] = {p->part.bytes, p->label};
        if (!check_label(s, e) ||
            !rt_images_add(s->split, rt_path("%s:%s", s->tar.in.path, p->image),
                           &p->part, (int32_t)(p->label < 0 ? 0 : p->label), e))
            return false;
        *s->hash = XXH3_64bits_withSeed(p->image, strlen(p->image), *s->hash);
        *s->hash = XXH3_64bits_withSeed(bits, sizeof bits, *s->hash);
    }
    if (p->image == NULL && p->other != NULL)
        rt_ignored_add(s->ignored, p->other);
    sample_clear(p);
    return true;
}

static bool take_image(Shard *s, const RtTarMember *m, RtError *e) {
    Sample *p = &s->sample;
    if (p->image != NULL)
        return rt_fail(e, EXIT_DATA, "%s: %s and %s are images of one sample",
                       s->tar.in.path, p->image, m->name);
    p->image = strdup(m->name);
    p->part =
        (RtFilePart){.first = m->first, .bytes = m->bytes, .file = s->file};
    return p->image != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
}

// The length of the key in a member's name; 0: it has none.
static size_t key_length(const char *name) {
    const char *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    const char *dot = strchr(base, '.');
    return dot == NULL || dot == base ? 0 : (size_t)(dot - name);
}

static bool take_member(Shard *s, const RtTarMember *m, RtError *e) {
    Sample *p = &s->sample;
    size_t length = key_length(m->name);
    if (length == 0)
        return true;
    bool same = p->key != NULL && strlen(p->key) == length &&
                memcmp(p->key, m->name, length) == 0;
    if (!same) {
        if (!sample_end(s, e))
            return false;
        p->key = rt_path("%.*s", (int)length, m->name);
        if (p->key == NULL)
            return rt_fail(e, EXIT_MEMORY, "out of memory");
    }
    const char *suffix = m->name + length;
    if (strcasecmp(suffix, ".cls") == 0)
        return read_class(s, m, e);
    if (strcasecmp(suffix, ".json") == 0)
        return read_json(s, m, e);
    for (const char *const *image = rt_image_suffix; *image != NULL; image++)
        if (strcasecmp(suffix, *image) == 0)
            return take_image(s, m, e);
    if (p->other == NULL)
        p->other = strdup(m->name);
    return p->other != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
}

static bool read_shard(Shard *s, const RtFiles *files, const char *path,
                       RtError *e) {
    RtTarMember m;
    if (!rt_tar_open(&s->tar, files, path, e))
        return false;
    bool good;
    while ((good = rt_tar_next(&s->tar, &m, e)) && m.name != NULL &&
           (good = take_member(s, &m, e)))
        continue;
    good = good && sample_end(s, e);
    sample_clear(&s->sample);
    rt_tar_close(&s->tar);
    return good;
}

// Takes ownership of the paths.
static bool read_split(RtData *d, RtSplit *split, RtNames *shard,
                       const RtDataSpec *spec, const RtFiles *files,
                       RtIgnored *ignored, RtError *e) {
    RtImages *images = rt_images_open(d, split, spec, files, e);
    if (images == NULL)
        return false;
    images->file = *shard;
    *shard = (RtNames){0};
    Shard s = {
        .split = split, .spec = spec, .hash = &d->hash, .ignored = ignored};
    s.sample.label = -1;
    for (int64_t i = 0; i < images->file.count; i++) {
        s.file = (int32_t)i;
        if (!read_shard(&s, files, images->file.name[i], e))
            return false;
    }
    if (split->count == 0)
        return rt_fail(e, EXIT_DATA,
                       "%s has no sample: expected members KEY.jpg, .jpeg, "
                       ".png or .webp, each beside its KEY.cls",
                       images->file.name[0]);
    return rt_images_complete(split, spec, e);
}

// ---- shards ----

static bool is_compressed(const RtIgnored *p) {
    for (int i = 0; i < p->suffixes; i++)
        if (strcmp(p->suffix[i].name, ".gz") == 0 ||
            strcmp(p->suffix[i].name, ".tgz") == 0)
            return true;
    return false;
}

static bool check_shards(const RtShards *s, const char *folder,
                         const RtDataSpec *spec, RtError *e) {
    if (s->train.count == 0 && is_compressed(&s->ignored))
        return rt_fail(e, EXIT_DATA,
                       "%s has no .tar file for training, but compressed ones, "
                       "which cannot be read at random: unpack them with "
                       "gunzip",
                       folder);
    if (s->train.count == 0)
        return rt_fail(e, EXIT_DATA, "%s has no .tar file for training",
                       folder);
    return s->test.count > 0 || spec->test_optional ||
           rt_fail(e, EXIT_DATA,
                   "%s has no .tar file for the test, in a folder test, val or "
                   "validation or with that word in its name: add one, or hold "
                   "images out with --validation=10%%",
                   folder);
}

bool rt_webdataset_read(RtData *d, const char *path, const RtDataSpec *spec,
                        const RtFiles *files, RtError *e) {
    RtShards s = {.train = {0}};
    RtIgnored members = {.suffixes = 0};
    bool good = rt_shards_find(&s, path, suffixes, e) &&
                check_shards(&s, path, spec, e) &&
                read_split(d, &d->train, &s.train, spec, files, &members, e) &&
                (s.test.count == 0 ||
                 read_split(d, &d->test, &s.test, spec, files, &members, e));
    rt_ignored_text(d->ignored, &members, path,
                    "members .jpg, .jpeg, .png or .webp");
    if (*d->ignored == '\0')
        rt_ignored_text(d->ignored, &s.ignored, path, ".tar");
    rt_shards_free(&s);
    return good;
}
