// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Machine code of kernels, for trainers and for the compiler's tools.
#ifndef RUNTIME_MACHINE_CODE_H
#define RUNTIME_MACHINE_CODE_H

#include "runtime/runtime.h"

// ---- cuda/kernels/offline.c: machine code without a GPU ----

// A cubin or PTX.
typedef struct {
    char *bytes;
    size_t length;
} RtCode;

// RT_TILE_CUBIN: of code number 0 of tile kernels; the others have the numbers
// behind.
typedef enum { RT_CUBIN, RT_PTX, RT_TILE_CUBIN } RtCodeForm;

// NVRTC with the options of a trainer, and the user's cache.
typedef struct RtOffline RtOffline;

// For a compute capability first; others may follow.  NULL: no NVRTC supports
// it.
RtOffline *rt_offline_open(int capability, RtError *e);
void rt_offline_close(RtOffline *c); // NULL: no effect
void rt_offline_version(const RtOffline *c, int *major, int *minor);

// Compiles a text with one more option, or NULL.  The caller frees the bytes.
bool rt_offline_compile(RtOffline *c, const char *text, int capability,
                        RtCodeForm form, const char *option, RtCode *out,
                        RtError *e);
// Compiles to a cubin and returns the compiler's log.
bool rt_offline_log(RtOffline *c, const char *text, int capability,
                    const char *option, RtCode *out, RtError *e);

// ---- cuda/kernels/tile_ir.c: Tile IR of tile kernels ----

// NVRTC of CUDA 13.3 or later, with the program tileiras beside it, and the
// user's cache.
typedef struct RtTileCompiler RtTileCompiler;

// NULL: they are not here.
RtTileCompiler *rt_tile_open(RtError *e);
void rt_tile_close(RtTileCompiler *c); // NULL: no effect
// The version of NVRTC, and the folder that has bin/tileiras.
const char *rt_tile_root(const RtTileCompiler *c, int *major, int *minor);

// Compiles a text to Tile IR, also on several threads at once.  The caller
// frees the bytes.
bool rt_tile_ir(const RtTileCompiler *c, const char *text, int capability,
                RtCode *out, RtError *e);
// The cubin that was kept for a text.  The caller frees the bytes.
bool rt_tile_cached(const RtTileCompiler *c, const char *text, int capability,
                    RtCode *out);
void rt_tile_keep(const RtTileCompiler *c, const char *text, int capability,
                  const RtCode *cubin);

// ---- cuda/kernels/embedded_code.c ----

// Code that a trainer was built with: one block after another, each behind this
// header.  A cubin runs on the GPUs of rt_capability_runs; the driver compiles
// PTX for every GPU from its compute capability on.
typedef struct {
    int32_t capability; // 10 * major + minor
    int32_t form;       // RtCodeForm
    uint64_t length;    // of the code, which zeros pad to a multiple of 16
} RtEmbeddedCode;

// ---- cuda/kernels/builtin_text.c ----

// The text of the built-in kernels: three that copy rows of a resident data set
// by their numbers, for rows of 8-, 4- and 1-byte words, and the sums of shards
// and ranks.
// They depend on no model, so one compilation serves all.
extern const char rt_builtin_kernels[];

// ---- cuda/kernels/cache.c ----

// The folder of the user's cache, which is made; the caller frees it.  NULL:
// the environment names none, or other users could write to it, which a warning
// reports.  files: rt_private_files.
char *rt_cache_folder(const RtFiles *files);

#endif
