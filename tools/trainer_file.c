// Trainer file: a compiled trainer, where a command also takes a model file.
#define _POSIX_C_SOURCE 200809L // strerror

#include "base/exits.h"
#include "tools/process.h"
#include "tools/trainer.h"

#include <errno.h>
#include <string.h>

bool trainer_file_is(const char *path) {
    char magic[4] = "";
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return false;
    bool good = fread(magic, 1, sizeof magic, f) == sizeof magic;
    fclose(f);
    return good && memcmp(magic, "\177ELF", sizeof magic) == 0;
}

// execv would look for a name without a folder in PATH.
const char *trainer_file_path(Arena *a, const char *path) {
    return strchr(path, '/') != NULL ? path : arena_format(a, "./%s", path);
}

bool trainer_file_suits(const Arguments *arguments) {
    if (arguments->num_settings == 0 && arguments->level == NULL &&
        !arguments->rewrite_limit.given && arguments->without == 0 &&
        arguments->memory == 0)
        return true;
    complain(arguments,
             "%s is a trainer, but compiler options need a model file",
             arguments->operand[0]);
    return false;
}

uint64_t trainer_file_hash(const char *path) {
    char piece[1 << 16];
    uint64_t hash = HASH_OF_NOTHING;
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return 0;
    for (size_t some; (some = fread(piece, 1, sizeof piece, f)) > 0;)
        hash = hash_bytes(hash, piece, some);
    bool good = !ferror(f);
    fclose(f);
    return good ? hash : 0;
}

int trainer_end_report(const Arguments *arguments, const char *trainer,
                       int status) {
    if (status == NOT_STARTED) {
        complain(arguments, "cannot start %s: %s", trainer, strerror(errno));
        return EXIT_IO;
    }
    if (status > BY_SIGNAL) {
        Arena *a = arena_new();
        complain(arguments, "%s %s", trainer, ended_how(a, status));
        arena_free(a);
    }
    return status;
}
