// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVRTC: NVIDIA's compiler as a library, for the kernels' text.
#ifndef RUNTIME_CUDA_NVRTC_H
#define RUNTIME_CUDA_NVRTC_H

#include "runtime/runtime.h"

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
} RtNvrtc;

// The options that all kernels are compiled with.
enum {
    RT_NVRTC_NUM_OPTIONS = 0
#define OPTION(text) +1
#include "runtime/cuda/kernels/nvrtc.def"
};
extern const char *const rt_nvrtc_options[RT_NVRTC_NUM_OPTIONS];

// What is compiled: a text, the texts that it includes by name, and which
// options there are beside those.
typedef struct {
    const char *text;
    int num_headers;
    const char *const *header, *const *include;
    int num_options;
    const char *const *option;
} RtSource;

// What a driver loads: machine code, or assembly where the GPU is newer than
// the compiler.
typedef struct {
    char *bytes;
    size_t length;
} RtCode;

enum { RT_NVRTC_OPTION_BYTES = 48, RT_NVRTC_MAX_EXTRA = 4 }; // bytes; at most

// Opens the newest that compiles for a GPU of this generation (0: any), and
// whose code a driver takes that knows CUDA up to `driver`, which is a version
// times 1000.
bool rt_nvrtc_open(RtNvrtc *n, int gpu, int driver, RtError *e);
void rt_nvrtc_close(RtNvrtc *n);

// The option that names a GPU of this generation, or the nearest that the
// compiler knows.  False: there is none.
bool rt_nvrtc_target(const RtNvrtc *n, int gpu,
                     char option[RT_NVRTC_OPTION_BYTES], RtError *e);

// Compiles; several threads may do so at a time.  The caller frees the bytes.
bool rt_nvrtc_compile(const RtNvrtc *n, const RtSource *s, RtCode *out,
                      RtError *e);

// Compiles; what is given is not the code but what the compiler says about it,
// as with --ptxas-options=-v registers and spills.
bool rt_nvrtc_log(const RtNvrtc *n, const RtSource *s, RtCode *out, RtError *e);

#endif
