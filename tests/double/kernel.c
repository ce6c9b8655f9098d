// Modules and kernels: an image is loaded as a shared object, and a launch
// calls the entry that was compiled into it.
#define _GNU_SOURCE
#include "tests/double/double.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// A row of the table in an image, as image.h has it.
typedef struct {
    const char *name;
    void (*run)(void **argument, int grid);
    int threads, cooperative;
    int num_parameters;
    const int *bytes;
    const char *pointer;
} ImageKernel;

struct CUfunc_st {
    const ImageKernel *kernel;
};

struct CUmod_st {
    CUmodule next;
    void *library;
    int file;
    struct CUfunc_st *function;
    int count;
};

typedef struct {
    Work work;
    const ImageKernel *kernel;
    int grid;
    void *argument[]; // and then their bytes
} Launch;

static struct { CUmodule first; } modules;

enum { REGISTERS = 64, LONGEST_ARGUMENT = 8 };

// ---- modules ----

static CUmodule *module_at(CUmodule m) {
    CUmodule *at = &modules.first;
    while (*at != NULL && *at != m)
        at = &(*at)->next;
    return at;
}

// The file stays open while it is loaded: the loader knows a library by its
// name, and the name is the descriptor's number.
static CUresult code_load(CUmodule m, const void *code, size_t bytes) {
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
    for (int i = 0; i < m->count; i++)
        m->function[i].kernel = &kernel[i];
    return CUDA_SUCCESS;
}

static void module_free(CUmodule m) {
    if (m->library != NULL) {
        globals_forget(m->library);
        dlclose(m->library);
    }
    if (m->file >= 0)
        close(m->file);
    free(m->function);
    free(m);
}

// Machine code runs on its own generation, from its own minor number on; what
// is assembled, on all that came later.
static bool runs_on_this(const ImageHead *h) {
    int64_t mine = device_architecture();
    if (h->architecture < 0)
        return -h->architecture <= mine;
    return h->architecture / 10 == mine / 10 && h->architecture <= mine;
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
    r = head == NULL          ? CUDA_ERROR_INVALID_IMAGE
        : !runs_on_this(head) ? CUDA_ERROR_NO_BINARY_FOR_GPU
                              : code_load(m, head + 1, head->bytes);
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
    streams_finish();
    *at = m->next;
    module_free(m);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *to, CUmodule m, const char *name) {
    DRIVER_CALL("%p %s", (void *)m, name);
    if (*module_at(m) == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->function[i].kernel->name, name) == 0) {
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
    void *variable = dlsym(m->library, name);
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (variable == NULL ||
        dladdr1(variable, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 ||
        symbol == NULL)
        return CUDA_ERROR_NOT_FOUND;
    global_add(m->library, variable, symbol->st_size);
    *to = (CUdeviceptr)(uintptr_t)variable;
    if (bytes != NULL)
        *bytes = symbol->st_size;
    return CUDA_SUCCESS;
}

// ---- functions ----

static bool function_known(CUfunction f) {
    for (CUmodule m = modules.first; m != NULL; m = m->next)
        if (f >= m->function && f < m->function + m->count)
            return true;
    return false;
}

CUresult cuFuncGetAttribute(int *to, CUfunction_attribute name, CUfunction f) {
    DRIVER_CALL("%d %p", (int)name, (void *)f);
    if (!function_known(f))
        return CUDA_ERROR_INVALID_HANDLE;
    if (name == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
        *to = f->kernel->threads;
    else if (name == CU_FUNC_ATTRIBUTE_NUM_REGS)
        *to = REGISTERS;
    else if (name == CU_FUNC_ATTRIBUTE_BINARY_VERSION ||
             name == CU_FUNC_ATTRIBUTE_PTX_VERSION)
        *to = device_architecture();
    else if (name < CU_FUNC_ATTRIBUTE_MAX)
        *to = 0;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute name,
                            int value) {
    DRIVER_CALL("%p %d value=%d", (void *)f, (int)name, value);
    if (!function_known(f))
        return CUDA_ERROR_INVALID_HANDLE;
    if (name != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
        name != CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
        return CUDA_ERROR_INVALID_VALUE;
    if (value > device_number("maxSharedMemoryPerBlockOptin"))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static int blocks_resident(int threads) {
    int by_threads = (int)device_number("maxThreadsPerSM") / threads;
    int by_registers =
        (int)device_number("maxRegistersPerSM") / (threads * REGISTERS);
    return by_threads < by_registers ? by_threads : by_registers;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *to, CUfunction f,
                                                     int threads,
                                                     size_t shared) {
    DRIVER_CALL("%p threads=%d shared=%zu", (void *)f, threads, shared);
    if (!function_known(f))
        return CUDA_ERROR_INVALID_HANDLE;
    if (threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *to = blocks_resident(threads);
    return CUDA_SUCCESS;
}

// ---- launches ----

// Pointers must be the device's, or NULL where a kernel does not use one.
static void pointers_check(const Launch *l) {
    const ImageKernel *k = l->kernel;
    for (int i = 0; i < k->num_parameters; i++) {
        void *p;
        if (k->pointer[i] != 'p')
            continue;
        memcpy(&p, l->argument[i], sizeof p);
        if (p != NULL && memory_of(p, 1) != MEMORY_PINNED)
            device_must_hold(k->name, p, 1);
    }
}

static void launch_run(Work *w) {
    Launch *l = (Launch *)(void *)w;
    pointers_check(l);
    l->kernel->run(l->argument, l->grid);
}

static Launch *launch_new(const ImageKernel *k, int grid, void **parameter) {
    size_t count = (size_t)k->num_parameters;
    Launch *l = take(sizeof *l + count * (sizeof(void *) + LONGEST_ARGUMENT));
    char *bytes = (char *)(l->argument + count);
    *l = (Launch){{1, k->name, launch_run, 2e-6 + 1e-7 * grid, NULL}, k, grid};
    for (size_t i = 0; i < count; i++) {
        if (k->bytes[i] > LONGEST_ARGUMENT || parameter[i] == NULL)
            complain("%s: argument %zu is of another kind", k->name, i);
        l->argument[i] = bytes + i * LONGEST_ARGUMENT;
        memcpy(l->argument[i], parameter[i], (size_t)k->bytes[i]);
    }
    pointers_check(l);
    return l;
}

static CUresult launch(CUfunction f, const unsigned grid[3],
                       const unsigned block[3], unsigned shared, CUstream s,
                       void **parameter, bool cooperative) {
    if (!function_known(f) || !stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    const ImageKernel *k = f->kernel;
    if (grid[0] == 0 || grid[0] > 0x7fffffff || grid[1] != 1 || grid[2] != 1 ||
        block[1] != 1 || block[2] != 1 || parameter == NULL ||
        shared > device_number("maxSharedMemoryPerBlock"))
        return CUDA_ERROR_INVALID_VALUE;
    if ((int)block[0] > k->threads)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if ((int)block[0] != k->threads)
        complain("%s: %u threads, but it is written for %d", k->name, block[0],
                 k->threads);
    if (k->cooperative && !cooperative)
        complain("%s waits for its grid, but is not launched so", k->name);
    if (cooperative &&
        (long long)grid[0] >
            blocks_resident(k->threads) * device_number("multiProcessorCount"))
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return stream_add(s, &launch_new(k, (int)grid[0], parameter)->work);
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream s, void **parameter, void **extra) {
    DRIVER_CALL("%s grid=%u block=%u shared=%u stream=%p",
                function_known(f) ? f->kernel->name : "?", gx, bx, shared,
                (void *)s);
    if (extra != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared,
                  s, parameter, false);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy,
                                   unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream s,
                                   void **parameter) {
    DRIVER_CALL("%s grid=%u block=%u shared=%u stream=%p",
                function_known(f) ? f->kernel->name : "?", gx, bx, shared,
                (void *)s);
    return launch(f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared,
                  s, parameter, true);
}
