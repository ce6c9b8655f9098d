// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels: their text, NVIDIA's compiler, the cache of compiled code, and the
// functions of a plan on a GPU.
#ifndef RUNTIME_CUDA_KERNELS_H
#define RUNTIME_CUDA_KERNELS_H

#include "runtime/cuda/driver/driver.h"
#include "runtime/machine_code.h"

// ---- prelude.c, builtin_text.c: texts ----

// The headers that kernels include, by the names they include.
enum { RT_PRELUDE_FILES = 3 };
extern const char *const rt_prelude_text[RT_PRELUDE_FILES];
extern const char *const rt_prelude_name[RT_PRELUDE_FILES];

// rt_builtin_kernels behind the prelude.
extern const char rt_builtin_text[];

// ---- kernel_source.c ----

// The text of one kernel: all kernels' text without comment lines and without
// blocks for other kernels (`#if IS_NEEDED(1) || IS_NEEDED(12)`), so that the
// cache still has a kernel after others change.  The caller frees it.  NULL:
// out of memory.
char *rt_kernel_source(const char *text, int kernel);

// ---- source_files.c ----

// A trainer with kernels read from a folder.
typedef struct {
    RtTrainer trainer;
    char *kernels;
    const char *prelude[RT_PRELUDE_FILES];
} RtSourceFiles;

// Writes kernels.cu and the prelude, so that nvcc -I FOLDER compiles them.
bool rt_source_files_write(const RtTrainer *t, const char *folder,
                           const RtFiles *files, RtError *e);
// Trainer t with the folder's text, which is never freed.
bool rt_source_files_read(RtSourceFiles *text, const RtTrainer *t,
                          const char *folder, const RtFiles *files, RtError *e);

// ---- nvrtc.c ----

typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;

enum {
#define CONSTANT(name, value) name = value,
#include "runtime/cuda/kernels/nvrtc.def"
};

typedef struct {
    void *library;
#define NVRTC(member, function, arguments) nvrtcResult(*member) arguments;
#include "runtime/cuda/kernels/nvrtc.def"
    int major, minor; // its version
    // The size and the time of its file, as it does not tell its patch version.
    int64_t file_bytes, file_seconds;
} RtNvrtc;

// The options of every kernel.
enum {
    RT_NVRTC_NUM_OPTIONS = 0
#define OPTION(text) +1
#include "runtime/cuda/kernels/nvrtc.def"
};
extern const char *const rt_nvrtc_options[RT_NVRTC_NUM_OPTIONS];

enum { RT_NVRTC_OPTION_BYTES = 48, RT_NVRTC_MAX_EXTRA = 4 };

// A text, the texts that it includes by name, and extra options.
typedef struct {
    const char *text;
    int num_headers;
    const char *const *header, *const *include;
    int num_options;
    const char *const *option;
    // The functions that return Tile IR, which is compiled with these options
    // alone; NULL: other code.
    nvrtcResult (*tile_size)(nvrtcProgram program, size_t *size);
    nvrtcResult (*tile)(nvrtcProgram program, char *to);
} RtSource;

// Opens the newest NVRTC that compiles for a GPU of this compute capability (0:
// any) and for a driver of this CUDA version (times 1000).
bool rt_nvrtc_open(RtNvrtc *n, int gpu, int driver, RtError *e);
void rt_nvrtc_close(RtNvrtc *n);

// The --gpu-architecture option for a GPU, or for the nearest that the compiler
// supports.  False: there is none.
bool rt_nvrtc_target(const RtNvrtc *n, int gpu,
                     char option[RT_NVRTC_OPTION_BYTES], RtError *e);

// Compiles, also on several threads at once.  The caller frees the bytes.
bool rt_nvrtc_compile(const RtNvrtc *n, const RtSource *s, RtCode *out,
                      RtError *e);
// Compiles and returns the compiler's log, which has registers and spills with
// --ptxas-options=-v.
bool rt_nvrtc_log(const RtNvrtc *n, const RtSource *s, RtCode *out, RtError *e);

// ---- cache.c ----

// Compiled code on disk: a folder of files named after their keys.  Nothing
// depends on it: code that cannot be read is compiled, code that cannot be
// written is not cached.  A file that another user could have written is not
// read.
typedef struct {
    char *folder; // NULL: no cache
    const RtFiles *files;
} RtCache;

typedef struct {
    uint64_t low, high;
} RtCacheKey;

// Opens the cache and makes its folder.  files: rt_private_files.
void rt_cache_open(RtCache *c, const RtFiles *files);
void rt_cache_close(RtCache *c);

// A hash of the source, its options and the compiler's version.
RtCacheKey rt_cache_key(const RtNvrtc *n, const RtSource *s);
// The caller frees the bytes.
bool rt_cache_read(const RtCache *c, RtCacheKey key, RtCode *out);
void rt_cache_write(const RtCache *c, RtCacheKey key, const RtCode *code);

// ---- embedded_code.c ----

// Embedded code that runs on a GPU, best first: the best below *rank, which
// becomes its rank.  Start with RT_BEFORE_ALL; NULL: there is no more.
enum { RT_BEFORE_ALL = 1 << 30 };
const char *rt_embedded_code_next(const RtTrainer *t, int gpu, int *rank);
// Finds the code that a GPU runs best, and its number, among `count` codes of
// tile kernels from number `first` on; NULL: there is none.
const char *rt_embedded_tile(const RtTrainer *t, int gpu, int first, int count,
                             int *number);
// The compute capability for which code of a rank was compiled.
int rt_embedded_code_capability(int rank);
// Its compute capabilities: "8.0, 9.0".
void rt_embedded_code_names(const RtTrainer *t, char *to, size_t room);

// ---- compile.c ----

// Compiles each kernel by itself, several at once, unless the cache has it.
// Worker threads start with the kernels that are likely to be needed while the
// device opens and libraries plan.
typedef struct RtCompiler RtCompiler;

// For kernels of a plan in a trainer's text; the GPU needs no context yet.
// NULL: out of memory.
RtCompiler *rt_compiler_new(const RtGpu *gpu, const RtTrainer *t,
                            const RtPlan *plan, const RtFiles *files,
                            RtError *e);
// Waits for kernels that are being compiled, and starts no more.
void rt_compiler_free(RtCompiler *c);

// Opens NVRTC unless it is open.  It stays open: cuDNN opens and closes it for
// each of its plans, which is quick meanwhile.
bool rt_compiler_open(RtCompiler *c, RtError *e);

// Starts workers on the kernels that are likely to be needed; needs an open
// NVRTC.  An error is not reported, as its kernel may not be needed.
void rt_compiler_start(RtCompiler *c, const bool *likely);

// Cancels queued kernels that are not needed, and compiles the needed ones.
bool rt_compiler_finish(RtCompiler *c, const bool *needed, RtError *e);
const RtCode *rt_compiler_code(const RtCompiler *c, int kernel);

// ---- modules.c ----

typedef struct {
    CUfunction function;
    int resident; // blocks that the whole GPU holds at once
} RtFunction;

// The kernels of a plan, loaded from embedded code or compiled.  All are on the
// GPU before the first launch.
typedef struct {
    const RtGpu *gpu;
    const RtPlan *plan;
    const RtTrainer *trainer; // NULL once loaded, like the compiler
    RtCompiler *compiler;
    CUmodule *module; // one for all kernels, or one each (NULL: not needed)
    int num_modules;
    RtFunction *entry; // one for each kernel of the plan
    int capability;    // compute capability for which they were compiled
} RtKernels;

// Starts to compile the kernels that are likely to be needed, on worker
// threads; the GPU needs no context yet.
bool rt_kernels_start(RtKernels *k, const RtGpu *gpu, const RtTrainer *t,
                      const RtPlan *plan, const bool *likely,
                      const RtFiles *files, RtError *e);
// Loads the needed kernels, and compiles missing ones.
bool rt_kernels_load(RtKernels *k, const bool *needed, RtLaps *laps,
                     RtError *e);
void rt_kernels_close(RtKernels *k);

// Writes a global variable in each module that has it, and waits.
bool rt_kernels_set_global(const RtKernels *k, const char *variable,
                           const void *value, size_t bytes, CUstream stream,
                           RtError *e);

// ---- tile_code.c ----

// The code of a configuration.
typedef struct {
    const char *bytes;   // that the trainer has for the GPU; NULL: none
    CUmodule module;     // NULL: it is not on the GPU
    CUfunction function; // of the kernel
    CUfunction sums;     // that adds its partial sums; NULL: it leaves none
} RtTileCode;

// The tile kernels of a plan.  Without code for the GPU a kernel is not usable:
// a library call or a kernel does its work.
typedef struct {
    const RtGpu *gpu;
    const RtTile *tile;
    int count;
    const RtFusedLaunch *fused;
    int num_fused;
    int *best;        // configuration of each without autotuning, or -1
    int *config;      // that each takes; -1: it is not used
    RtTileCode *code; // by the numbers of codes
    int num_codes;
    CUdeviceptr workspace; // for any of them
} RtTiles;

// Finds the code that the trainer has; the GPU needs no context yet.
bool rt_tiles_open(RtTiles *k, const RtGpu *gpu, const RtTrainer *t,
                   const RtPlan *plan, RtError *e);
// Loads it, for each kernel that of its configuration, or with `all` that of
// all configurations.  The driver may refuse it, as one for an earlier CUDA
// does.
void rt_tiles_load(RtTiles *k, bool all);
void rt_tiles_close(RtTiles *k);

// Whether the trainer has code of a tile kernel's configuration for the GPU,
// and whether that is loaded.
bool rt_tiles_carry(const RtTiles *k, int tile, int config);
bool rt_tiles_has(const RtTiles *k, int tile, int config);
// Takes for each tile kernel the configuration whose number is one less; 0: it
// is not used.  NULL: those that the trainer has first.
void rt_tiles_choose(RtTiles *k, const int *tile);

// Bytes for partial sums, which one launch reads before the next writes them;
// and their address.
size_t rt_tiles_workspace(const RtTiles *k);
void rt_tiles_bind(RtTiles *k, CUdeviceptr workspace);

// The usable tile kernel of a library call of the plan, or NULL.
const RtTile *rt_tiles_find(const RtTiles *k, int call);
// The first of the tile kernels that replace a launch without a call, or NULL
// if there are none or one of them is not usable.  They follow one another.
const RtTile *rt_tiles_replacing(const RtTiles *k, int step, int launch,
                                 int *count);
// Whether tile kernels do the work of a launch as their prologue; and whether
// they do it at all.
bool rt_tiles_skip(const RtTiles *k, int step, int launch);
bool rt_tiles_take(const RtTiles *k, int step, int launch);
CUresult rt_tiles_launch(const RtTiles *k, const RtTile *tile, CUstream stream,
                         void **argument);

// ---- builtin.c ----

// Kernels of the runtime, of one size of block.
typedef enum {
    RT_GATHER_8,
    RT_GATHER_4,
    RT_GATHER_1,
    RT_SUM_RANGES,
    RT_SUM_RANKS,
    RT_NUM_BUILTINS
} RtBuiltin;
enum { RT_BUILTIN_THREADS = 256 };

typedef struct {
    const RtGpu *gpu;
    RtTrainer trainer; // of these kernels alone
    RtKernels kernels[RT_NUM_BUILTINS];
} RtBuiltins;

void rt_builtins_open(RtBuiltins *b, const RtGpu *gpu, const RtTrainer *t);
// Starts to compile a kernel on worker threads; the GPU needs no context yet.
bool rt_builtin_start(RtBuiltins *b, RtBuiltin kernel, RtError *e);
// Loads a kernel, and compiles one that was not started.  NULL: *e is filled.
const RtFunction *rt_builtin_load(RtBuiltins *b, RtBuiltin kernel, RtError *e);
void rt_builtins_close(RtBuiltins *b);

#endif
