// Modules: an image is machine code, which is loaded as a shared object, or
// PTX, which is executed one instruction after another.
#define _GNU_SOURCE
#include "tests/runtime/cuda/double/double.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// A row of the table in a shared object, as image.h has it.
typedef struct {
    const char *name;
    void (*run)(void **argument, int grid);
    int threads, cooperative;
    int num_parameters;
    const int *bytes;
} ImageKernel;

struct CUmod_st {
    CUmodule next;
    void *library; // of machine code
    int file;
    PtxModule *ptx;
    struct CUfunc_st *function;
    int count;
};

static struct {
    CUmodule first;
    long functions; // of all there have been
} modules;

// ---- machine code ----

static void library_run(CUfunction f, void **argument, int grid) {
    const ImageKernel *k = f->code;
    k->run(argument, grid);
}

// The file stays open while it is loaded: the loader knows a library by its
// name, and the name is the descriptor's number.
static CUresult library_load(CUmodule m, const void *code, size_t bytes) {
    char path[64];
    m->file = memfd_create("double", 0);
    if (m->file < 0 || write(m->file, code, bytes) != (ssize_t)bytes)
        return CUDA_ERROR_OPERATING_SYSTEM;
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->file);
    m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (m->library == NULL)
        complain("an image that cannot be loaded: %s", dlerror());
    const ImageKernel *(*kernels)(int *count);
    *(void **)&kernels = dlsym(m->library, "image_kernels");
    const ImageKernel *kernel = kernels(&m->count);
    m->function = take((size_t)m->count * sizeof *m->function);
    for (int i = 0; i < m->count; i++) {
        const ImageKernel *k = &kernel[i];
        m->function[i] = (struct CUfunc_st){++modules.functions,
                                            k->name,
                                            k->threads,
                                            k->cooperative,
                                            k->num_parameters,
                                            k->bytes,
                                            library_run,
                                            k,
                                            NULL,
                                            NULL};
    }
    return CUDA_SUCCESS;
}

static void *library_variable(CUmodule m, const char *name, size_t *bytes) {
    void *variable = dlsym(m->library, name);
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (variable == NULL ||
        dladdr1(variable, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 ||
        symbol == NULL)
        return NULL;
    *bytes = symbol->st_size;
    return variable;
}

// ---- PTX ----

// With SINTER_DOUBLE_WARPS; else kernel.c runs them.
static void ptx_launch(CUfunction f, void **argument, int grid) {
    warps_run(f->warps, f->ptx, argument, grid);
}

static CUresult ptx_load(CUmodule m, const char *text) {
    m->ptx = ptx_read(text);
    while (ptx_kernel(m->ptx, m->count) != NULL)
        m->count++;
    m->function = take((size_t)m->count * sizeof *m->function);
    for (int i = 0; i < m->count; i++) {
        const PtxKernel *k = ptx_kernel(m->ptx, i);
        m->function[i] = (struct CUfunc_st){++modules.functions,
                                            k->name,
                                            k->threads,
                                            false,
                                            k->num_parameters,
                                            k->bytes,
                                            ptx_launch,
                                            k,
                                            k,
                                            warps_new(k)};
    }
    return CUDA_SUCCESS;
}

// ---- modules ----

static CUmodule *module_at(CUmodule m) {
    CUmodule *at = &modules.first;
    while (*at != NULL && *at != m)
        at = &(*at)->next;
    return at;
}

// Refuses code that a cache has from a run of the other kind.
static CUresult code_load(CUmodule m, const ImageHead *h) {
    const char *code = (const char *)(h + 1);
    if (h->bytes < SELFMAG || memcmp(code, ELFMAG, SELFMAG) != 0)
        return ptx_load(m, code);
    if (ptx_is_asked_for())
        complain("SINTER_DOUBLE_PTX, but an image is machine code");
    return library_load(m, code, h->bytes);
}

static void module_free(CUmodule m) {
    globals_forget(m);
    for (int i = 0; i < m->count; i++)
        if (m->function[i].warps != NULL)
            warps_end(m->function[i].warps, m->ptx, m->function[i].code);
    if (m->library != NULL)
        dlclose(m->library);
    if (m->file >= 0)
        close(m->file);
    if (m->ptx != NULL)
        ptx_free(m->ptx);
    free(m->function);
    free(m);
}

static bool is_tegra(int64_t architecture) {
    return architecture == 53 || architecture == 62 || architecture == 72 ||
           architecture == 87 || architecture == 88 || architecture == 101 ||
           architecture == 110;
}

// Machine code runs on GPUs of its own major compute capability, from its minor
// number on, but never across embedded and discrete GPUs; assembly runs on all
// later ones.
static bool runs_on_this(const ImageHead *h) {
    int64_t mine = device_architecture();
    if (h->architecture < 0)
        return -h->architecture <= mine;
    return h->architecture == mine ||
           (h->architecture / 10 == mine / 10 && h->architecture <= mine &&
            !is_tegra(h->architecture) && !is_tegra(mine));
}

static CUresult image_refused(const ImageHead *h) {
    if (h == NULL)
        return CUDA_ERROR_INVALID_IMAGE;
    if (h->cuda > driver_version() / 1000)
        return h->architecture < 0 ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                                   : CUDA_ERROR_INVALID_IMAGE;
    return runs_on_this(h) ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult cuModuleLoadDataEx(CUmodule *to, const void *image, unsigned count,
                            CUjit_option *option, void **value) {
    DRIVER_CALL("options=%u", count);
    (void)option, (void)value;
    CUresult r = capture_forbids();
    if (r != CUDA_SUCCESS)
        return r;
    void *assembled = NULL;
    const ImageHead *head = image_head(image, &assembled);
    CUmodule m = take(sizeof *m);
    m->file = -1;
    r = image_refused(head);
    if (r == CUDA_SUCCESS)
        r = code_load(m, head);
    free(assembled);
    if (r != CUDA_SUCCESS) {
        module_free(m);
        return r;
    }
    m->next = modules.first;
    *to = modules.first = m;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule m) {
    DRIVER_CALL("%p", (void *)m);
    CUmodule *at = module_at(m);
    if (*at == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult r = capture_forbids();
    if (r != CUDA_SUCCESS)
        return r;
    *at = m->next;
    module_free(m);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *to, CUmodule m, const char *name) {
    DRIVER_CALL("%p %s", (void *)m, name);
    if (*module_at(m) == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->function[i].name, name) == 0) {
            *to = &m->function[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *to, size_t *bytes, CUmodule m,
                              const char *name) {
    DRIVER_CALL("%p %s", (void *)m, name);
    if (*module_at(m) == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    size_t is = 0;
    void *variable = m->ptx != NULL ? ptx_variable(m->ptx, name, &is)
                                    : library_variable(m, name, &is);
    if (variable == NULL)
        return CUDA_ERROR_NOT_FOUND;
    global_add(m, variable, is);
    *to = (CUdeviceptr)(uintptr_t)variable;
    if (bytes != NULL)
        *bytes = is;
    return CUDA_SUCCESS;
}

bool function_known(CUfunction f) {
    for (CUmodule m = modules.first; m != NULL; m = m->next)
        if (f >= m->function && f < m->function + m->count)
            return true;
    return false;
}
