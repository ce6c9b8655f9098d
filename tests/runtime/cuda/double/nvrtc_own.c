// NVIDIA's own compiler beside the stand-in: the stand-in returns its errors,
// and can execute its PTX.
#define _POSIX_C_SOURCE 200809L
#include "tests/runtime/cuda/double/nvrtc_own.h"

#include "tests/runtime/cuda/double/double.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    pthread_once_t opened;
    nvrtcResult (*create)(nvrtcProgram *, const char *, const char *, int,
                          const char *const *, const char *const *);
    nvrtcResult (*compile)(nvrtcProgram, int, const char *const *);
    nvrtcResult (*log_size)(nvrtcProgram, size_t *);
    nvrtcResult (*log)(nvrtcProgram, char *);
    nvrtcResult (*ptx_size)(nvrtcProgram, size_t *);
    nvrtcResult (*ptx)(nvrtcProgram, char *);
    nvrtcResult (*destroy)(nvrtcProgram *);
} own = {.opened = PTHREAD_ONCE_INIT};

static void *open_file(const char *folder, const char *file) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        complain("%s", dlerror());
    return library;
}

static void find(void *library, const char *name, void *function) {
    *(void **)function = dlsym(library, name);
    if (*(void **)function == NULL)
        complain("%s", dlerror());
}

// It looks for its built-in functions by their name, under which they are
// loaded then.
static void open_own(void) {
    const char *folder = getenv("SINTER_DOUBLE_NVRTC");
    if (folder == NULL && ptx_is_asked_for())
        complain("SINTER_DOUBLE_PTX needs SINTER_DOUBLE_NVRTC");
    if (folder == NULL)
        return;
    char builtins[64];
    int major, minor;
    nvrtcResult (*version)(int *, int *);
    void *library = open_file(folder, "libnvrtc.so.13");
    find(library, "nvrtcVersion", &version);
    version(&major, &minor);
    snprintf(builtins, sizeof builtins, "libnvrtc-builtins.so.%d.%d", major,
             minor);
    open_file(folder, builtins);
    find(library, "nvrtcCreateProgram", &own.create);
    find(library, "nvrtcCompileProgram", &own.compile);
    find(library, "nvrtcGetProgramLogSize", &own.log_size);
    find(library, "nvrtcGetProgramLog", &own.log);
    find(library, "nvrtcGetPTXSize", &own.ptx_size);
    find(library, "nvrtcGetPTX", &own.ptx);
    find(library, "nvrtcDestroyProgram", &own.destroy);
}

// A text that two of its functions tell the size of, and write.
static char *text_of(nvrtcProgram program, const char *what,
                     nvrtcResult (*size)(nvrtcProgram, size_t *),
                     nvrtcResult (*get)(nvrtcProgram, char *)) {
    size_t bytes = 0;
    char *text =
        size(program, &bytes) == NVRTC_SUCCESS ? take(bytes + 1) : NULL;
    if (text == NULL || get(program, text) != NVRTC_SUCCESS)
        complain("NVIDIA's compiler gives no %s", what);
    return text;
}

nvrtcResult nvrtc_own_compile(const Unit *u, int count,
                              const char *const *option, char **log,
                              char **ptx) {
    nvrtcProgram program;
    *log = *ptx = NULL;
    pthread_once(&own.opened, open_own);
    if (own.create == NULL)
        return NVRTC_SUCCESS;
    if (own.create(&program, u->text, "kernels.cu", u->num_headers, u->header,
                   u->name) != NVRTC_SUCCESS)
        complain("NVIDIA's compiler does not take a text");
    nvrtcResult result = own.compile(program, count, option);
    if (result == NVRTC_SUCCESS && ptx_is_asked_for())
        *ptx = text_of(program, "PTX", own.ptx_size, own.ptx);
    if (result != NVRTC_SUCCESS || *ptx != NULL)
        *log = text_of(program, "log", own.log_size, own.log);
    own.destroy(&program);
    return result;
}
