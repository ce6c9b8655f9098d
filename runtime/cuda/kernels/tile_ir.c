// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tile IR: NVRTC of CUDA 13.3 or later compiles CUDA Tile C++ to it.  The
// program tileiras of the same release makes the cubin; the caller runs it.

#define _GNU_SOURCE // realpath

#include "runtime/cuda/kernels/kernels.h"

#include "runtime/library.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NEWEST_DRIVER = 13000 };

struct RtTileCompiler {
    RtNvrtc nvrtc;
    void *library; // the same again, for these functions
    nvrtcResult (*size)(nvrtcProgram program, size_t *size);
    nvrtcResult (*get)(nvrtcProgram program, char *to);
    char root[PATH_MAX]; // the folder that has bin/tileiras
    char include[PATH_MAX + 32];
    char programs[256]; // the files that make cubins, for the cache
    RtCache cache;
};

extern const unsigned char rt_prelude_tile_h[];

static const char remedy[] =
    "install the Python packages nvidia-cuda-nvrtc, nvidia-cuda-tileiras, "
    "nvidia-nvvm and nvidia-cuda-nvcc of one version from 13.3 on, and put "
    "the folder nvidia/cu13/lib on LD_LIBRARY_PATH";

// NVRTC of an earlier version lacks them.
static bool open_functions(RtTileCompiler *c, RtError *e) {
    static const char *const files[] = {"libnvrtc.so.13", NULL};
    static const RtSymbol symbols[] = {
        {"nvrtcGetTileIRSize", offsetof(RtTileCompiler, size)},
        {"nvrtcGetTileIR", offsetof(RtTileCompiler, get)}};
    const RtLibrary library = {.needed = "a tile kernel needs",
                               .files = files,
                               .remedy = remedy,
                               .status = EXIT_DEVICE,
                               .symbol = symbols,
                               .num_symbols = 2};
    c->library = rt_library_open(&library, c, e);
    return c->library != NULL;
}

static bool has_tileiras(char *folder, const char *up) {
    char path[PATH_MAX + 32], real[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", folder, up);
    if (realpath(path, real) == NULL)
        return false;
    snprintf(path, sizeof path, "%s/bin/tileiras", real);
    if (access(path, X_OK) != 0)
        return false;
    strcpy(folder, real);
    return true;
}

// Python packages have root/lib, a toolkit has root/targets/SYSTEM/lib.
static bool find_root(RtTileCompiler *c, RtError *e) {
    const char *path = rt_library_path(&c->get);
    char *end;
    if (path == NULL || realpath(path, c->root) == NULL)
        return rt_fail(e, EXIT_DEVICE, "the folder of NVRTC is unknown");
    end = strrchr(c->root, '/');
    *end = '\0';
    if (!has_tileiras(c->root, "/..") && !has_tileiras(c->root, "/../../.."))
        return rt_fail(e, EXIT_DEVICE,
                       "a tile kernel needs the program tileiras beside %s: %s",
                       path, remedy);
    snprintf(c->include, sizeof c->include, "--include-path=%s/include",
             c->root);
    return true;
}

// Releases that differ in the patch version report one version: size and time
// of the files tell them apart.
static void describe_programs(RtTileCompiler *c) {
    static const char *const name[] = {"bin/tileiras", "bin/ptxas",
                                       "lib/libnvvm.so.4",
                                       "nvvm/lib64/libnvvm.so.4"};
    char *to = c->programs;
    for (int i = 0; i < 4; i++) {
        char path[PATH_MAX + 32];
        struct stat s;
        snprintf(path, sizeof path, "%s/%s", c->root, name[i]);
        if (stat(path, &s) == 0)
            to += sprintf(to, "%lld %lld\n", (long long)s.st_size,
                          (long long)s.st_mtime);
    }
}

RtTileCompiler *rt_tile_open(RtError *e) {
    RtTileCompiler *c = calloc(1, sizeof *c);
    if (c == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    if (rt_nvrtc_open(&c->nvrtc, 0, NEWEST_DRIVER, e) && open_functions(c, e) &&
        find_root(c, e)) {
        describe_programs(c);
        rt_cache_open(&c->cache, &rt_private_files);
        return c;
    }
    rt_tile_close(c);
    return NULL;
}

void rt_tile_close(RtTileCompiler *c) {
    if (c == NULL)
        return;
    rt_cache_close(&c->cache);
    rt_library_close(c->library);
    rt_nvrtc_close(&c->nvrtc);
    free(c);
}

const char *rt_tile_root(const RtTileCompiler *c, int *major, int *minor) {
    *major = c->nvrtc.major;
    *minor = c->nvrtc.minor;
    return c->root;
}

// A text with its options, which are RT_NVRTC_MAX_EXTRA; behind them, what the
// cubin depends on too.
typedef struct {
    char target[RT_NVRTC_OPTION_BYTES];
    const char *option[RT_NVRTC_MAX_EXTRA + 1];
    const char *header[1], *name[1];
    RtSource source;
} Source;

static const RtSource *describe(const RtTileCompiler *c, const char *text,
                                int capability, Source *s) {
    *s = (Source){.option = {s->target, "--enable-tile", "--std=c++20",
                             c->include, c->programs},
                  .header = {(const char *)rt_prelude_tile_h},
                  .name = {"runtime/prelude/tile.h"}};
    snprintf(s->target, sizeof s->target, "--gpu-architecture=sm_%d",
             capability);
    s->source = (RtSource){.text = text,
                           .num_headers = 1,
                           .header = s->header,
                           .include = s->name,
                           .num_options = RT_NVRTC_MAX_EXTRA,
                           .option = s->option,
                           .tile_size = c->size,
                           .tile = c->get};
    return &s->source;
}

bool rt_tile_ir(const RtTileCompiler *c, const char *text, int capability,
                RtCode *out, RtError *e) {
    Source s;
    return rt_nvrtc_compile(&c->nvrtc, describe(c, text, capability, &s), out,
                            e);
}

static RtCacheKey key_of(const RtTileCompiler *c, const char *text,
                         int capability) {
    Source s;
    RtSource copy = *describe(c, text, capability, &s);
    copy.num_options++;
    return rt_cache_key(&c->nvrtc, &copy);
}

bool rt_tile_cached(const RtTileCompiler *c, const char *text, int capability,
                    RtCode *out) {
    return rt_cache_read(&c->cache, key_of(c, text, capability), out);
}

void rt_tile_keep(const RtTileCompiler *c, const char *text, int capability,
                  const RtCode *cubin) {
    rt_cache_write(&c->cache, key_of(c, text, capability), cubin);
}
