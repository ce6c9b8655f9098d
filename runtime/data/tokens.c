// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tokens: the token ids of a text: bytes for a vocabulary of at most 256, else
// 16 bits, little-endian.  A sample is `length` tokens, and its labels are the
// next tokens, so both point into the same memory: the file, mapped, which may
// be larger than memory.  A folder has train.bin and val.bin; the last tenth of
// a single file is for evaluation.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { BYTE_WORDS = 256, MAX_WORDS = 65536 };

typedef struct {
    size_t length;
    int vocabulary;
    RtFileType type;
} TokenFormat;

static size_t token_bytes(const TokenFormat *f) {
    return rt_file_type_bytes(f->type);
}

// A mapped file.
typedef struct {
    uint8_t *bytes;
    size_t length;
} Mapping;

static void release(void *source) {
    Mapping *m = source;
    munmap(m->bytes, m->length);
    free(m);
}

static size_t samples_of(const TokenFormat *f, size_t tokens) {
    return tokens > 0 ? (tokens - 1) / f->length : 0;
}

static bool check_count(const TokenFormat *f, size_t tokens, bool last,
                        const char *path, RtError *e) {
    size_t samples = samples_of(f, tokens);
    return (samples > 0 && samples <= INT32_MAX) ||
           rt_fail(
               e, EXIT_DATA,
               "%s has %zu tokens%s; one sample needs %zu and the next token",
               path, tokens, last ? " for evaluation" : "", f->length);
}

// Divides `tokens` tokens at `bytes` into samples.
static void split_tokens(RtSplit *s, const TokenFormat *f, uint8_t *bytes,
                         size_t tokens) {
    s->image = s->label = (RtColumn){.type = f->type,
                                     .values = f->length,
                                     .step = f->length,
                                     .bytes = bytes,
                                     .borrowed = true};
    s->label.bytes += token_bytes(f);
    s->fetch = rt_split_fetch;
    s->is_text = true;
    s->count = (int64_t)samples_of(f, tokens);
}

// first: the number of the first token in its file.
static bool check_tokens(const TokenFormat *f, const uint8_t *bytes,
                         size_t tokens, size_t first, const char *path,
                         RtError *e) {
    for (size_t i = 0; i < tokens; i++) {
        int token = bytes[i * token_bytes(f)];
        if (f->type == RT_FILE_U16)
            token |= bytes[2 * i + 1] << 8;
        if (token >= f->vocabulary)
            return rt_fail(e, EXIT_DATA,
                           "%s: token %zu is %d, but the vocabulary has %d: "
                           "build with --set data.vocabulary=N, and as many "
                           "in the model",
                           path, first + i, token, f->vocabulary);
    }
    return true;
}

// Checks and hashes all tokens, in parts that fit in a cache.  They are read,
// as a failed read is an error, but a mapped page that fails a signal.
static bool read_tokens(const TokenFormat *f, const char *path, int fd,
                        size_t bytes, const RtFiles *files, uint64_t *hash,
                        RtError *e) {
    enum { PART = 256 << 10 };
    uint8_t *part = malloc(PART);
    XXH3_state_t *state = XXH3_createState();
    bool good = (part != NULL && state != NULL) ||
                rt_fail(e, EXIT_MEMORY, "out of memory");
    if (good)
        XXH3_64bits_reset_withSeed(state, *hash);
    for (size_t at = 0; good && at < bytes; at += PART) {
        size_t some = bytes - at < PART ? bytes - at : PART;
        good = (rt_read(files, fd, part, some) || rt_fail_read(e, path)) &&
               check_tokens(f, part, some / token_bytes(f),
                            at / token_bytes(f), path, e);
        if (good)
            XXH3_64bits_update(state, part, some);
    }
    if (good)
        *hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    free(part);
    return good;
}

static Mapping *map_open(const char *path, int fd, size_t bytes,
                         const RtFiles *files, RtError *e) {
    Mapping *m = malloc(sizeof *m);
    if (m != NULL)
        *m = (Mapping){files->map(fd, bytes), bytes};
    if (m != NULL && m->bytes != NULL)
        return m;
    rt_fail(e, EXIT_MEMORY, "cannot map %s into memory: %s", path,
            strerror(errno));
    free(m);
    return NULL;
}

static Mapping *read_open(const TokenFormat *f, const char *path, int fd,
                          size_t bytes, bool divided, const RtFiles *files,
                          uint64_t *hash, RtError *e) {
    size_t tokens = bytes / token_bytes(f);
    size_t held = divided ? tokens / 10 : 0;
    bool whole =
        bytes % token_bytes(f) == 0 ||
        rt_fail(e, EXIT_DATA,
                "%s has %zu bytes, not a multiple of the token size, 2 bytes",
                path, bytes);
    return whole && check_count(f, tokens - held, false, path, e) &&
                   (!divided || check_count(f, held, true, path, e)) &&
                   read_tokens(f, path, fd, bytes, files, hash, e)
               ? map_open(path, fd, bytes, files, e)
               : NULL;
}

// Reads a file; its last tenth goes to `last`, unless that is NULL.
static bool read_file(RtSplit *s, RtSplit *last, const TokenFormat *f,
                      const char *path, const RtFiles *files, uint64_t *hash,
                      RtError *e) {
    size_t bytes;
    int fd = rt_open_sized(files, path, &bytes, e);
    if (fd < 0)
        return false;
    Mapping *m =
        read_open(f, path, fd, bytes, last != NULL, files, hash, e);
    files->close(fd);
    if (m == NULL)
        return false;
    size_t tokens = bytes / token_bytes(f);
    size_t held = last != NULL ? tokens / 10 : 0, first = tokens - held;
    s->source = m;
    s->release = release;
    split_tokens(s, f, m->bytes, first);
    if (last != NULL)
        split_tokens(last, f, m->bytes + first * token_bytes(f), held);
    return true;
}

static bool read_part(RtSplit *s, const TokenFormat *f, const char *folder,
                      const char *name, const RtFiles *files, uint64_t *hash,
                      RtError *e) {
    char *path = rt_path("%s/%s.bin", folder, name);
    bool good = path != NULL ? read_file(s, NULL, f, path, files, hash, e)
                             : rt_fail(e, EXIT_MEMORY, "out of memory");
    free(path);
    return good;
}

// Reads the tokenizer.json in the folder of the tokens, if there is one.
static void read_tokenizer(RtData *d, const char *path, bool is_file,
                           const RtFiles *files) {
    enum { MOST = 256 << 20 };
    RtError e;
    size_t bytes;
    const char *slash = strrchr(path, '/');
    char *file = !is_file ? rt_path("%s/tokenizer.json", path)
                 : slash != NULL
                     ? rt_path("%.*s/tokenizer.json", (int)(slash - path), path)
                     : rt_path("tokenizer.json");
    int fd = file != NULL ? rt_open_sized(files, file, &bytes, &e) : -1;
    free(file);
    if (fd < 0)
        return;
    d->tokenizer = bytes < MOST ? calloc(bytes + 1, 1) : NULL;
    if (d->tokenizer != NULL && !rt_read(files, fd, d->tokenizer, bytes)) {
        free(d->tokenizer);
        d->tokenizer = NULL;
    }
    files->close(fd);
}

bool rt_tokens_read(RtData *d, const char *path, const RtDataSpec *spec,
                    const RtFiles *files, RtError *e) {
    int64_t vocabulary = rt_setting(spec, "vocabulary", BYTE_WORDS);
    int64_t length = rt_setting(spec, "length", 0);
    static const char *const test[] = {"val.bin", NULL};
    char text[100];
    struct stat s;
    const RtShape *image = &spec->image;
    if (!rt_shape_same(image, 1, &length) || image->type == RT_U8)
        return rt_fail(
            e, EXIT_DATA, "samples are %lld tokens, but the trainer takes %s",
            (long long)length,
            rt_shape_text(text, sizeof text, image->rank, image->dim));
    TokenFormat form = {
        .length = (size_t)length,
        .vocabulary = (int)(vocabulary < MAX_WORDS ? vocabulary : MAX_WORDS),
        .type = vocabulary > BYTE_WORDS ? RT_FILE_U16 : RT_FILE_U8};
    bool is_file = stat(path, &s) == 0 && !S_ISDIR(s.st_mode);
    read_tokenizer(d, path, is_file, files);
    if (is_file)
        return read_file(&d->train, &d->test, &form, path, files, &d->hash, e);
    return read_part(&d->train, &form, path, "train", files, &d->hash, e) &&
           (rt_lacks_test(spec, path, test) ||
            read_part(&d->test, &form, path, "val", files, &d->hash, e));
}
