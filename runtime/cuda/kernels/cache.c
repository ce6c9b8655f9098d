// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cache: a file is a header with key, length and hash, then the code.  A rename
// makes it appear whole under its name.  The hash is no protection:
// rt_private_files refuses files that another user could have written.
#define _GNU_SOURCE // O_DIRECTORY

#include "runtime/cuda/kernels/kernels.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const char magic[8] = "sintercu";
enum { MAX_BYTES = 1 << 30 };

typedef struct {
    char magic[8];
    uint64_t length, hash; // of the code
    RtCacheKey key;
} Header;

// Otherwise a program run by sudo would leave files that the owner cannot use.
static bool is_own_home(const char *home) {
    struct stat s;
    if (stat(home, &s) != 0 || s.st_uid == geteuid())
        return true;
    rt_warn_unused(home, "it belongs to another user; set XDG_CACHE_HOME to "
                         "another folder for compiled kernels");
    return false;
}

static char *folder_path(void) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache != NULL && cache[0] == '/')
        return rt_path("%s/sinter", cache);
    if (home != NULL && home[0] == '/' && is_own_home(home))
        return rt_path("%s/.cache/sinter", home);
    return NULL;
}

char *rt_cache_folder(const RtFiles *files) {
    RtError ignored;
    char *folder = folder_path();
    bool made = folder != NULL && rt_make_folder(folder, 0700, &ignored);
    int fd = made ? files->open(folder, O_RDONLY | O_DIRECTORY, 0) : -1;
    if (fd >= 0) {
        files->close(fd);
        return folder;
    }
    free(folder);
    return NULL;
}

void rt_cache_open(RtCache *c, const RtFiles *files) {
    *c = (RtCache){rt_cache_folder(files), files};
}

void rt_cache_close(RtCache *c) {
    free(c->folder);
    c->folder = NULL;
}

// ---- keys ----

// Includes the final zero byte, so that the boundary between texts counts.
static void add_text(XXH3_state_t *state, const char *text) {
    XXH3_128bits_update(state, text, strlen(text) + 1);
}

RtCacheKey rt_cache_key(const RtNvrtc *n, const RtSource *s) {
    XXH3_state_t state;
    int64_t version[4] = {n->major, n->minor, n->file_bytes, n->file_seconds};
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, version, sizeof version);
    add_text(&state, s->text);
    for (int i = 0; i < s->num_headers; i++) {
        add_text(&state, s->include[i]);
        add_text(&state, s->header[i]);
    }
    for (int i = 0; i < s->num_options; i++)
        add_text(&state, s->option[i]);
    for (int i = 0; i < RT_NVRTC_NUM_OPTIONS; i++)
        add_text(&state, rt_nvrtc_options[i]);
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    return (RtCacheKey){hash.low64, hash.high64};
}

static char *entry_path(const RtCache *c, RtCacheKey key) {
    return rt_path("%s/%016llx%016llx.cubin", c->folder,
                   (unsigned long long)key.high, (unsigned long long)key.low);
}

// ---- reading ----

static bool is_sound(const Header *h, RtCacheKey key, size_t file) {
    return memcmp(h->magic, magic, sizeof magic) == 0 &&
           h->key.low == key.low && h->key.high == key.high &&
           h->length <= MAX_BYTES && h->length == file - sizeof *h;
}

static bool read_code(const RtCache *c, int fd, const Header *h, RtCode *out) {
    out->length = (size_t)h->length;
    out->bytes = malloc(out->length + 1);
    if (out->bytes != NULL && rt_read(c->files, fd, out->bytes, out->length) &&
        XXH3_64bits(out->bytes, out->length) == h->hash)
        return true;
    free(out->bytes);
    return false;
}

bool rt_cache_read(const RtCache *c, RtCacheKey key, RtCode *out) {
    RtError ignored;
    Header h;
    size_t bytes = 0;
    char *path = c->folder != NULL ? entry_path(c, key) : NULL;
    int fd =
        path != NULL ? rt_open_sized(c->files, path, &bytes, &ignored) : -1;
    free(path);
    if (fd < 0)
        return false;
    bool good = bytes >= sizeof h && rt_read(c->files, fd, &h, sizeof h) &&
                is_sound(&h, key, bytes) && read_code(c, fd, &h, out);
    c->files->close(fd);
    return good;
}

// ---- writing ----

static bool write_entry(const RtCache *c, const char *path, const Header *h,
                        const RtCode *code) {
    int fd = c->files->open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return false;
    bool good = rt_write(c->files, fd, h, sizeof *h) &&
                rt_write(c->files, fd, code->bytes, code->length);
    return c->files->close(fd) == 0 && good;
}

// Two programs may write the same entry at once, so each uses its own name.
void rt_cache_write(const RtCache *c, RtCacheKey key, const RtCode *code) {
    Header h = {.length = code->length,
                .hash = XXH3_64bits(code->bytes, code->length),
                .key = key};
    memcpy(h.magic, magic, sizeof magic);
    char *path = c->folder != NULL ? entry_path(c, key) : NULL;
    char *part = path != NULL ? rt_path("%s.%ld", path, (long)getpid()) : NULL;
    if (part != NULL &&
        !(write_entry(c, part, &h, code) && c->files->rename(part, path) == 0))
        c->files->unlink(part);
    free(part);
    free(path);
}
