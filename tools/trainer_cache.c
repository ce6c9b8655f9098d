// Trainer cache: trainers that sinter train has built.  A name is a hash of the
// emitted text, the runtime library, the C compiler with its flags and, as
// these have -march=native, the processor.
#define _GNU_SOURCE // O_DIRECTORY, scandir, utimensat

#include "base/source.h"
#include "runtime/machine_code.h"
#include "tools/compiler.h"
#include "tools/scratch.h"
#include "tools/trainer.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MAX_KEPT = 32, MAX_DAYS = 30, MAX_LIBRARY = 1 << 28 };

// ---- the name ----

// Adds the length, too, so that boundaries of texts count.
static void hash_add(XXH3_state_t *state, const void *bytes, size_t length) {
    XXH3_128bits_update(state, &length, sizeof length);
    if (length > 0)
        XXH3_128bits_update(state, bytes, length);
}

static void hash_text(XXH3_state_t *state, const Text *t) {
    hash_add(state, t->length > 0 ? text_string(t) : NULL, t->length);
}

static void hash_file(XXH3_state_t *state, const char *path) {
    Arena *a = arena_new();
    const char *why;
    const Source *s = source_read(a, path, MAX_LIBRARY, &why);
    hash_add(state, s ? s->text : "", s ? s->length : 0);
    arena_free(a);
}

static int is_header(const struct dirent *e) {
    const char *dot = strrchr(e->d_name, '.');
    return dot != NULL && strcmp(dot, ".h") == 0;
}

// Hashes the headers that the text includes.
static void hash_headers(XXH3_state_t *state, Arena *a, const char *folder) {
    struct dirent **entry;
    int count = scandir(folder, &entry, is_header, alphasort);
    for (int i = 0; i < count; i++) {
        hash_file(state, arena_format(a, "%s/%s", folder, entry[i]->d_name));
        free(entry[i]);
    }
    if (count >= 0)
        free(entry);
}

// Hashes the input of -march=native: constant lines of the first processor in
// /proc/cpuinfo.
static void hash_processor(XXH3_state_t *state) {
    static const char *const keys[] = {"vendor_id", "cpu family", "model",
                                       "stepping",  "flags",      "Features",
                                       "CPU "};
    char line[8192];
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL && *line != '\n')
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
            if (strncmp(line, keys[i], strlen(keys[i])) == 0) {
                hash_add(state, line, strlen(line));
                break;
            }
    if (f != NULL)
        fclose(f);
}

// Hashes the compiler's version; false if no scratch folder can be made.
static bool hash_compiler(XXH3_state_t *state, Arena *a,
                          const Arguments *arguments, bool tiles) {
    Scratch scratch;
    Text t = text_new(a);
    if (!scratch_open(a, arguments, &scratch))
        return false;
    compiler_describe(a, scratch.path, tiles, &t);
    scratch_close(&scratch);
    hash_text(state, &t);
    return true;
}

// Makes the folder; NULL, after a message, if others may write to it.
static const char *folder_open(Arena *a) {
    RtError ignored;
    char *cache = rt_cache_folder(&rt_private_files);
    if (cache == NULL)
        return NULL;
    const char *folder = arena_format(a, "%s/trainers", cache);
    free(cache);
    if (!rt_make_folder(folder, 0700, &ignored))
        return NULL;
    int fd = rt_private_files.open(folder, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return NULL;
    close(fd);
    return folder;
}

const char *trainer_cache_path(Arena *a, const Arguments *arguments,
                               const TrainerText *t) {
    const char *folder = folder_open(a);
    Installation where;
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    if (folder == NULL || !installation_find(a, arguments, &where) ||
        !hash_compiler(&state, a, arguments, t->tile_file.length > 0))
        return NULL;
    hash_add(&state, SINTER_VERSION, sizeof SINTER_VERSION);
    hash_text(&state, &t->c_file);
    hash_text(&state, &t->cu_file);
    hash_text(&state, &t->graphs);
    hash_text(&state, &t->code);
    hash_text(&state, &t->tile_file);
    hash_file(&state, where.library);
    hash_file(&state, arena_format(a, "%s/runtime/rt.h", where.include));
    hash_headers(&state, a, where.prelude);
    hash_headers(&state, a, where.tile);
    hash_processor(&state);
    XXH128_hash_t h = XXH3_128bits_digest(&state);
    return arena_format(a, "%s/%s-%016llx%016llx", folder, t->name,
                        (unsigned long long)h.high64,
                        (unsigned long long)h.low64);
}

bool trainer_cache_has(const char *path) {
    struct stat s;
    int fd = rt_private_files.open(path, O_RDONLY, 0);
    if (fd < 0)
        return false;
    bool good = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
                (s.st_mode & S_IXUSR) != 0 && s.st_size > 0;
    close(fd);
    if (good)
        utimensat(AT_FDCWD, path, NULL, 0);
    return good;
}

// ---- the bound ----

typedef struct {
    const char *path;
    time_t used;
} Kept;

static int by_use(const void *a, const void *b) {
    const Kept *x = a, *y = b;
    return (x->used < y->used) - (x->used > y->used);
}

// Trainers that are being built have names that begin with a dot.
static int is_trainer(const struct dirent *e) {
    return e->d_name[0] != '.';
}

void trainer_cache_trim(Arena *a, const char *path) {
    const char *folder =
        arena_string(a, path, (size_t)(strrchr(path, '/') - path));
    struct dirent **entry;
    int count = scandir(folder, &entry, is_trainer, NULL);
    Kept *kept = ARENA_ARRAY(a, (size_t)(count > 0 ? count : 0) + 1, Kept);
    for (int i = 0; i < count; i++) {
        struct stat s;
        kept[i].path = arena_format(a, "%s/%s", folder, entry[i]->d_name);
        kept[i].used = stat(kept[i].path, &s) == 0 ? s.st_mtime : 0;
        free(entry[i]);
    }
    if (count <= 0)
        return;
    free(entry);
    qsort(kept, (size_t)count, sizeof *kept, by_use);
    time_t oldest = time(NULL) - (time_t)MAX_DAYS * 24 * 60 * 60;
    for (int i = 0; i < count; i++)
        if (i >= MAX_KEPT || kept[i].used < oldest)
            unlink(kept[i].path);
}
