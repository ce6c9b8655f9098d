// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tokens: the token ids of a text: bytes for a vocabulary of at most 256, else
// 16 bits, little-endian.  A sample is `length` tokens, and its labels are the
// next tokens, so both point into the same memory.  A folder has train.bin and
// val.bin; the last tenth of a single file is for evaluation.
#define _POSIX_C_SOURCE 200809L

#include "runtime/data/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
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

// Divides `tokens` tokens at `bytes` into samples.
static bool split_tokens(RtSplit *s, const TokenFormat *f, uint8_t *bytes,
                         size_t tokens, bool borrowed, const char *path,
                         RtError *e) {
    size_t samples = tokens > 0 ? (tokens - 1) / f->length : 0;
    RtColumn column = {.type = f->type,
                       .values = f->length,
                       .step = f->length,
                       .bytes = bytes,
                       .borrowed = borrowed};
    s->image = s->label = column;
    s->label.bytes += token_bytes(f);
    s->label.borrowed = true;
    s->fetch = rt_split_fetch;
    s->is_text = true;
    s->count = (int64_t)samples;
    if (samples == 0 || samples > INT32_MAX)
        return rt_fail(
            e, EXIT_DATA,
            "%s has %zu tokens%s; one sample needs %zu and the next token",
            path, tokens, borrowed ? " for evaluation" : "", f->length);
    return true;
}

static bool check_tokens(const TokenFormat *f, const uint8_t *bytes,
                         size_t tokens, const char *path, RtError *e) {
    for (size_t i = 0; i < tokens; i++) {
        int token = bytes[i * token_bytes(f)];
        if (f->type == RT_FILE_U16)
            token |= bytes[2 * i + 1] << 8;
        if (token >= f->vocabulary)
            return rt_fail(e, EXIT_DATA,
                           "%s: token %zu is %d, but the vocabulary has %d",
                           path, i, token, f->vocabulary);
    }
    return true;
}

// All tokens of a file; NULL with *e filled.
static uint8_t *read_tokens(const TokenFormat *f, const char *path,
                            size_t *tokens, const RtFiles *files,
                            uint64_t *hash, RtError *e) {
    size_t bytes;
    int fd = rt_open_sized(files, path, &bytes, e);
    if (fd < 0)
        return NULL;
    RtColumn all = {0};
    *tokens = bytes / token_bytes(f);
    bool good =
        bytes % token_bytes(f) == 0 ||
        rt_fail(e, EXIT_DATA,
                "%s has %zu bytes, not a multiple of the token size, 2 bytes",
                path, bytes);
    good = good && rt_column_reserve(&all, f->type, 1, (int64_t)*tokens, e);
    if (good && !rt_read(files, fd, all.bytes, bytes))
        good = rt_fail_read(e, path);
    files->close(fd);
    good = good && check_tokens(f, all.bytes, *tokens, path, e);
    if (good) {
        *hash = XXH3_64bits_withSeed(all.bytes, bytes, *hash);
        return all.bytes;
    }
    free(all.bytes);
    return NULL;
}

static bool read_file(RtData *d, const TokenFormat *f, const char *path,
                      const RtFiles *files, RtError *e) {
    size_t tokens;
    uint8_t *bytes = read_tokens(f, path, &tokens, files, &d->hash, e);
    if (bytes == NULL)
        return false;
    size_t training = tokens - tokens / 10;
    return split_tokens(&d->train, f, bytes, training, false, path, e) &&
           split_tokens(&d->test, f, bytes + training * token_bytes(f),
                        tokens - training, true, path, e);
}

static bool read_part(RtSplit *s, const TokenFormat *f, const char *folder,
                      const char *name, const RtFiles *files, uint64_t *hash,
                      RtError *e) {
    size_t tokens;
    char *path = rt_path("%s/%s.bin", folder, name);
    if (path == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    uint8_t *bytes = read_tokens(f, path, &tokens, files, hash, e);
    bool good =
        bytes != NULL && split_tokens(s, f, bytes, tokens, false, path, e);
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
        return read_file(d, &form, path, files, e);
    return read_part(&d->train, &form, path, "train", files, &d->hash, e) &&
           (rt_lacks_test(spec, path, test) ||
            read_part(&d->test, &form, path, "val", files, &d->hash, e));
}
