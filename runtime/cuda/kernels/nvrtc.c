// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVRTC: opens the library and compiles one text.

#include "runtime/cuda/kernels/kernels.h"

#include "runtime/cuda/driver/driver.h"
#include "runtime/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};

const char *const rt_nvrtc_options[RT_NVRTC_NUM_OPTIONS] = {
#define OPTION(text) text,
#include "runtime/cuda/kernels/nvrtc.def"
};

static const RtSymbol symbols[] = {
#define NVRTC(member, function, arguments)                                     \
    {#function, offsetof(RtNvrtc, member)},
#include "runtime/cuda/kernels/nvrtc.def"
};

static const char *remedy_for(int gpu, int driver) {
    if (rt_capability_cuda(gpu, driver) == 13)
        return "install the CUDA toolkit 12 or 13 or the Python package "
               "nvidia-cuda-nvrtc, and put the folder of its libraries on "
               "LD_LIBRARY_PATH";
    if (rt_capability_cuda(gpu, 13000) == 13)
        return "install the CUDA toolkit 12, or for CUDA 13 an NVIDIA driver "
               "of version 580 or later";
    return "GPUs before compute capability 7.5 need CUDA 12: install its "
           "toolkit or the Python package nvidia-cuda-nvrtc-cu12, and put the "
           "folder of its libraries on LD_LIBRARY_PATH";
}

static RtLibrary library_for(int gpu, int driver) {
    return (RtLibrary){
        .needed = "a CUDA device needs NVIDIA's compiler",
        .files = rt_capability_cuda(gpu, driver) == 13 ? files : files + 1,
        .remedy = remedy_for(gpu, driver),
        .status = EXIT_DEVICE,
        .symbol = symbols,
        .num_symbols = sizeof symbols / sizeof symbols[0],
    };
}

static const char *reason_of(nvrtcResult result) {
    switch (result) {
    case NVRTC_ERROR_OUT_OF_MEMORY:
        return "it is out of memory";
    case NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
        return "install libnvrtc-builtins.so of the same version, and put its "
               "folder on LD_LIBRARY_PATH";
    default:
        return "it gives no reason";
    }
}

static bool good(nvrtcResult result, const char *what, RtError *e) {
    if (result == NVRTC_SUCCESS)
        return true;
    return rt_fail(e, EXIT_DEVICE, "NVRTC cannot %s: error %d, %s", what,
                   result, reason_of(result));
}

static void describe_file(RtNvrtc *n) {
    struct stat s;
    const char *path = rt_library_path(&n->version);
    if (path != NULL && stat(path, &s) == 0) {
        n->file_bytes = s.st_size;
        n->file_seconds = s.st_mtime;
    }
}

bool rt_nvrtc_open(RtNvrtc *n, int gpu, int driver, RtError *e) {
    RtLibrary library = library_for(gpu, driver);
    *n = (RtNvrtc){0};
    n->library = rt_library_open(&library, n, e);
    if (n->library == NULL)
        return false;
    describe_file(n);
    if (good(n->version(&n->major, &n->minor), "report its version", e))
        return true;
    rt_nvrtc_close(n);
    return false;
}

void rt_nvrtc_close(RtNvrtc *n) {
    rt_library_close(n->library);
    n->library = NULL;
}

// ---- target ----

// The supported compute capabilities, 10 * major + minor, in ascending order.
static int *archs_of(const RtNvrtc *n, int *count, RtError *e) {
    if (!good(n->num_archs(count), "list its GPUs", e))
        return NULL;
    int *list = calloc((size_t)*count + 1, sizeof *list);
    if (list == NULL)
        rt_fail(e, EXIT_MEMORY, "out of memory");
    else if (*count > 0 && good(n->archs(list), "list its GPUs", e))
        return list;
    free(list);
    return NULL;
}

// From a list in ascending order: the GPU's own, else the first of its major
// number, as a later one may be an integrated GPU's, else the last below it,
// whose PTX the driver compiles; 0: none.
static int arch_for(const int *list, int count, int gpu) {
    int last = 0;
    for (int i = 0; i < count && list[i] <= gpu; i++)
        last = list[i];
    for (int i = 0; i < count && last != gpu; i++)
        if (rt_capability_runs(list[i], gpu))
            return list[i];
    return last;
}

bool rt_nvrtc_target(const RtNvrtc *n, int gpu,
                     char option[RT_NVRTC_OPTION_BYTES], RtError *e) {
    int count = 0;
    int *list = archs_of(n, &count, e);
    if (list == NULL)
        return false;
    int best = arch_for(list, count, gpu);
    int oldest = list[0];
    free(list);
    if (best == 0)
        return rt_fail(e, EXIT_DEVICE,
                       "the GPU has compute capability %d.%d, but NVRTC %d.%d "
                       "compiles for %d.%d and later",
                       gpu / 10, gpu % 10, n->major, n->minor, oldest / 10,
                       oldest % 10);
    snprintf(option, RT_NVRTC_OPTION_BYTES, "--gpu-architecture=%s_%d",
             rt_capability_runs(best, gpu) ? "sm" : "compute", best);
    return true;
}

// ---- compiling ----

// Fails with the first line of the log that has an error.
static void fail_with_log(const RtNvrtc *n, nvrtcProgram program, RtError *e) {
    size_t size = 0;
    char *log = NULL;
    if (n->log_size(program, &size) == NVRTC_SUCCESS)
        log = calloc(size + 1, 1);
    if (log == NULL || n->log(program, log) != NVRTC_SUCCESS) {
        rt_fail(e, EXIT_FAULT, "NVRTC rejects the kernels without a log");
    } else {
        char *line = strstr(log, "error");
        while (line != NULL && line > log && line[-1] != '\n')
            line--;
        line = line != NULL ? line : log;
        rt_fail(e, EXIT_FAULT, "NVRTC rejects the kernels: %.*s",
                (int)strcspn(line, "\n"), line);
    }
    free(log);
}

static bool is_ptx(const RtSource *s) {
    for (int i = 0; i < s->num_options; i++)
        if (strstr(s->option[i], "=compute_") != NULL)
            return true;
    return false;
}

// An output of a compiled program.
typedef nvrtcResult GetSize(nvrtcProgram program, size_t *size);
typedef nvrtcResult GetText(nvrtcProgram program, char *to);

static bool copy_text(GetSize *size, GetText *get, nvrtcProgram program,
                      RtCode *out, RtError *e) {
    if (!good(size(program, &out->length), "report the size of its output", e))
        return false;
    out->bytes = malloc(out->length + 1);
    if (out->bytes == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    if (good(get(program, out->bytes), "return its output", e))
        return true;
    free(out->bytes);
    out->bytes = NULL;
    return false;
}

// Copies the requested output of a compiled program.
typedef bool Copy(const RtNvrtc *n, const RtSource *s, nvrtcProgram program,
                  RtCode *out, RtError *e);

static bool copy_code(const RtNvrtc *n, const RtSource *s, nvrtcProgram program,
                      RtCode *out, RtError *e) {
    if (s->tile != NULL)
        return copy_text(s->tile_size, s->tile, program, out, e);
    return is_ptx(s) ? copy_text(n->ptx_size, n->ptx, program, out, e)
                     : copy_text(n->cubin_size, n->cubin, program, out, e);
}

static bool copy_log(const RtNvrtc *n, const RtSource *s, nvrtcProgram program,
                     RtCode *out, RtError *e) {
    (void)s;
    return copy_text(n->log_size, n->log, program, out, e);
}

static nvrtcResult run(const RtNvrtc *n, const RtSource *s,
                       nvrtcProgram program) {
    const char *option[RT_NVRTC_NUM_OPTIONS + RT_NVRTC_MAX_EXTRA];
    int count = 0;
    for (int i = 0; i < s->num_options; i++)
        option[count++] = s->option[i];
    for (int i = 0; i < RT_NVRTC_NUM_OPTIONS && s->tile == NULL; i++)
        option[count++] = rt_nvrtc_options[i];
    return n->compile(program, count, option);
}

static bool compile(const RtNvrtc *n, const RtSource *s, Copy *copy,
                    RtCode *out, RtError *e) {
    nvrtcProgram program;
    if (!good(n->create(&program, s->text, "kernels.cu", s->num_headers,
                        s->header, s->include),
              "create a program of the kernels", e))
        return false;
    nvrtcResult result = run(n, s, program);
    bool refused = result == NVRTC_ERROR_COMPILATION ||
                   result == NVRTC_ERROR_INVALID_OPTION;
    if (refused)
        fail_with_log(n, program, e);
    bool done = result == NVRTC_SUCCESS
                    ? copy(n, s, program, out, e)
                    : !refused && good(result, "compile the kernels", e);
    n->destroy(&program);
    return done;
}

bool rt_nvrtc_compile(const RtNvrtc *n, const RtSource *s, RtCode *out,
                      RtError *e) {
    return compile(n, s, copy_code, out, e);
}

bool rt_nvrtc_log(const RtNvrtc *n, const RtSource *s, RtCode *out,
                  RtError *e) {
    return compile(n, s, copy_log, out, e);
}
