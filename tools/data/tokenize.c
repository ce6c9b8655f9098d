// sinter data tokenize: texts as files of tokens, for tokens(...).
#define _POSIX_C_SOURCE 200809L // access
#include "base/exits.h"
#include "runtime/tokenizer.h"
#include "tools/data/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Files of texts, their tokens and the tokenizer.
typedef struct {
    Arena *a;
    const Arguments *arguments;
    const char *tokenizer; // its file; NULL: bytes
    const char *written;   // its file in the data set's folder; NULL: none
    RtTokens all;
} Tokenize;

static char *file_read(const char *path, size_t *length, RtError *e) {
    int fd = rt_open_sized(&rt_system_files, path, length, e);
    if (fd < 0)
        return NULL;
    char *text = malloc(*length + 1);
    bool good = text != NULL || rt_fail(e, EXIT_MEMORY, "out of memory");
    if (good && !rt_read(&rt_system_files, fd, text, *length))
        good = rt_fail_read(e, path);
    rt_system_files.close(fd);
    if (good)
        return text;
    free(text);
    return NULL;
}

// ---- a tokenizer of characters ----

enum { CODES = 0x110000 };

// Marks the characters of a text; false if it is not UTF-8.
static bool characters_mark(uint8_t *seen, const char *text, size_t length) {
    for (size_t at = 0, some; at < length; at += some) {
        unsigned code;
        some = rt_utf8(text + at, length - at, &code);
        if (some == 0)
            return false;
        seen[code] = 1;
    }
    return true;
}

// A tokenizer.json with a token for each character, in the order of codes.
static void characters_print(Text *t, const uint8_t *seen) {
    int count = 0;
    text_add(t, "{\"version\": \"1.0\", \"added_tokens\": [], "
                "\"normalizer\": null, \"pre_tokenizer\": null,\n"
                " \"model\": {\"type\": \"BPE\", \"vocab\": {");
    for (unsigned code = 0; code < CODES; code++)
        if (seen[code]) {
            char bytes[4];
            text_add(t, count > 0 ? ", " : "");
            json_bytes(t, bytes, rt_utf8_put(bytes, code));
            text_add(t, ": %d", count++);
        }
    text_add(t, "}, \"merges\": []}}\n");
}

static bool characters_write(Tokenize *k, const char *path, RtError *e) {
    uint8_t *seen = ARENA_ARRAY(k->a, CODES, uint8_t);
    for (int i = 1; i < k->arguments->num_operands; i++) {
        const char *file = k->arguments->operand[i];
        size_t length;
        char *text = file_read(file, &length, e);
        if (text == NULL)
            return false;
        bool good = characters_mark(seen, text, length) ||
                    rt_fail(e, EXIT_DATA, "%s is not UTF-8", file);
        free(text);
        if (!good)
            return false;
    }
    Text t = text_new(k->a);
    characters_print(&t, seen);
    e->status = text_write(k->arguments, path, &t);
    e->text[0] = '\0'; // text_write has printed why
    return e->status == EXIT_GOOD;
}

// ---- tokens ----

static bool text_encode(Tokenize *k, RtTokenizer *t, const char *path,
                        RtError *e) {
    size_t length;
    char *text = file_read(path, &length, e);
    if (text == NULL)
        return false;
    bool good = rt_tokenizer_encode(t, text, length, &k->all, e);
    free(text);
    if (!good) {
        RtError why = *e;
        return rt_fail(e, why.status, "%s: %s", path, why.text);
    }
    return true;
}

// Writes tokens as bytes, or as 16 bits if there are more than 256 kinds.
static int tokens_write(const Tokenize *k, const char *name, size_t from,
                        size_t to, bool wide) {
    const char *path = arena_format(k->a, "%s/%s", k->arguments->out, name);
    FILE *f = fopen(path, "wb");
    bool good = f != NULL;
    for (size_t i = from; i < to && good; i++) {
        int32_t token = k->all.token[i];
        uint8_t bytes[] = {(uint8_t)token, (uint8_t)(token >> 8)};
        good = fwrite(bytes, 1 + wide, 1, f) == 1;
    }
    if (f != NULL)
        good = fclose(f) == 0 && good;
    if (good)
        return EXIT_GOOD;
    complain(k->arguments, "%s: %s", path, strerror(errno));
    return EXIT_IO;
}

static int parts_write(const Tokenize *k, double share, int kinds) {
    size_t count = k->all.count, held = (size_t)((double)count * share / 100);
    bool wide = kinds > 256;
    int status = tokens_write(k, "train.bin", 0, count - held, wide);
    if (status == EXIT_GOOD && held > 0)
        status = tokens_write(k, "val.bin", count - held, count, wide);
    if (status == EXIT_GOOD)
        printf("%s: %zu tokens in train.bin, %zu in val.bin, %d kinds\n"
               "in the model file: data = tokens(\"%s\", length=128, "
               "vocabulary=%d)\n",
               k->arguments->out, count - held, held, kinds, k->arguments->out,
               kinds);
    return status;
}

static bool tokenizer_write(Tokenize *k, RtError *e) {
    const char *given = k->arguments->tokenizer;
    const char *own =
        arena_format(k->a, "%s/tokenizer.json", k->arguments->out);
    if (given == NULL || strcmp(given, "bytes") == 0)
        return true;
    bool makes = strcmp(given, "characters") == 0;
    k->written = own;
    k->tokenizer = makes ? own : given;
    if (makes)
        return characters_write(k, own, e);
    size_t length;
    char *json = file_read(given, &length, e);
    if (json == NULL)
        return false;
    Text t = text_new(k->a);
    text_bytes(&t, json, length);
    free(json);
    e->status = text_write(k->arguments, own, &t);
    e->text[0] = '\0';
    return e->status == EXIT_GOOD;
}

static bool texts_encode(Tokenize *k, RtTokenizer *t, RtError *e) {
    for (int i = 1; i < k->arguments->num_operands; i++) {
        if (!text_encode(k, t, k->arguments->operand[i], e))
            return false;
        if (rt_tokenizer_end(t) >= 0 &&
            !rt_tokens_add(&k->all, rt_tokenizer_end(t), e))
            return false;
    }
    return true;
}

// Whether the folder has no data set yet; a message if it has.
static bool folder_unused(Arena *a, const Arguments *arguments) {
    static const char *const name[] = {"train.bin", "val.bin",
                                       "tokenizer.json"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const char *path = arena_format(a, "%s/%s", arguments->out, name[i]);
        if (access(path, F_OK) == 0) {
            complain(arguments, "%s exists; name a new folder with -o", path);
            return false;
        }
    }
    return true;
}

int tokenize(Arena *a, const Arguments *arguments) {
    enum { MAX_KINDS = 65536 };
    Tokenize k = {.a = a, .arguments = arguments};
    double share = 10;
    RtError e = {.status = EXIT_GOOD};
    if (arguments->out == NULL || arguments->num_operands < 2) {
        complain(arguments, "data tokenize needs texts, and a folder -o DIR");
        return EXIT_USAGE;
    }
    if (arguments->validation != NULL &&
        !share_parse(arguments->validation, &share)) {
        complain(arguments, "--validation needs a share below 100%%, as 10%%");
        return EXIT_USAGE;
    }
    if (!folder_unused(a, arguments))
        return EXIT_USAGE;
    bool good =
        rt_make_folder(arguments->out, 0777, &e) && tokenizer_write(&k, &e);
    RtTokenizer *t = good ? rt_tokenizer_open(k.tokenizer, &e) : NULL;
    int kinds = t != NULL ? rt_tokenizer_size(t) : 0;
    if (kinds > MAX_KINDS)
        good = rt_fail(&e, EXIT_DATA,
                       "the tokenizer has %d tokens, and a file "
                       "of them holds numbers below %d",
                       kinds, MAX_KINDS);
    good = good && t != NULL && texts_encode(&k, t, &e);
    int status = good ? parts_write(&k, share, kinds) : e.status;
    if (!good && e.text[0] != '\0')
        complain(arguments, "%s", e.text);
    if (!good && k.written != NULL)
        unlink(k.written);
    rt_tokenizer_free(t);
    free(k.all.token);
    return status;
}
