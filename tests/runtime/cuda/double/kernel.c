// Kernels: their attributes and their launches.
#include "tests/runtime/cuda/double/double.h"

#include <string.h>

typedef struct {
    Work work;
    CUfunction function;
    long number; // that it had when it was launched
    int grid;
    bool is_programmatic; // may start before the launch before it ends
    bool is_cooperative;
    PtxLaunch *started;   // it has; NULL: it has not
    void *argument[];     // and then their bytes
} Launch;

enum { REGISTERS = 64, LONGEST_ARGUMENT = 8 };

// ---- functions ----

CUresult cuFuncGetAttribute(int *to, CUfunction_attribute name, CUfunction f) {
    DRIVER_CALL("%d %p", (int)name, (void *)f);
    if (!function_known(f))
        return CUDA_ERROR_INVALID_HANDLE;
    if (name == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
        *to = f->threads;
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
    int blocks = by_threads < by_registers ? by_threads : by_registers;
    int most = (int)device_number("maxCtasPerSM");
    return blocks < most ? blocks : most;
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

// Pointers must be the device's, or NULL where a kernel does not use one; a
// tensor of no numbers may be at the end of the arena.  They are all that has
// so many bytes: our kernels take no other number of 64 bits, and PTX does not
// tell one from the other.
static void pointers_check(const Launch *l) {
    CUfunction f = l->function;
    for (int i = 0; i < f->num_parameters; i++) {
        void *p;
        if (f->bytes[i] != sizeof p)
            continue;
        memcpy(&p, l->argument[i], sizeof p);
        if (p != NULL && memory_of(p, 0) != MEMORY_PINNED)
            device_must_hold(f->name, p, 0);
    }
}

static void launch_check(const Launch *l) {
    if (!function_known(l->function) || l->function->number != l->number)
        complain("a kernel runs whose module was unloaded");
    pointers_check(l);
}

static PtxLaunch *launch_start(const Launch *l, unsigned seed) {
    PtxOrder order = {.seed = seed,
                      .delays = setting_number("SINTER_DOUBLE_DELAYED", 0) != 0,
                      .programmatic = l->is_programmatic,
                      .cooperative = l->is_cooperative};
    launch_check(l);
    return ptx_launch_new(l->function->ptx, l->argument, l->grid,
                          l->function->threads, order);
}

static void launch_run(Work *w);

// The launch behind one that may see it start; NULL: none, or not this time.
static Launch *launch_behind(unsigned seed) {
    Work *w = stream_behind();
    Launch *l = (Launch *)(void *)w;
    bool can = w != NULL && w->run == launch_run && l->is_programmatic &&
               l->function->ptx != NULL && seed != 0;
    return can && random_below(4) != 0 ? l : NULL;
}

static void launch_run(Work *w) {
    Launch *l = (Launch *)(void *)w, *behind;
    launch_check(l);
    if (l->function->ptx == NULL || l->function->warps != NULL) {
        l->function->run(l->function, l->argument, l->grid);
        return;
    }
    unsigned seed = order_draw();
    PtxLaunch *own = l->started != NULL ? l->started : launch_start(l, seed);
    l->started = NULL;
    behind = launch_behind(seed);
    if (behind != NULL)
        behind->started = launch_start(behind, order_draw());
    ptx_launch_run(own, behind != NULL ? behind->started : NULL);
}

static Launch *launch_new(CUfunction f, int grid, void **parameter,
                          bool programmatic, bool cooperative) {
    size_t count = (size_t)f->num_parameters;
    Launch *l = take(sizeof *l + count * (sizeof(void *) + LONGEST_ARGUMENT));
    char *bytes = (char *)(l->argument + count);
    *l = (Launch){{.users = 1,
                   .what = f->name,
                   .run = launch_run,
                   .seconds = 2e-6 + 1e-7 * grid},
                  f,
                  f->number,
                  grid,
                  programmatic,
                  cooperative,
                  NULL};
    for (size_t i = 0; i < count; i++) {
        if (f->bytes[i] > LONGEST_ARGUMENT || parameter[i] == NULL)
            complain("%s: argument %zu is of another kind", f->name, i);
        l->argument[i] = bytes + i * LONGEST_ARGUMENT;
        memcpy(l->argument[i], parameter[i], (size_t)f->bytes[i]);
    }
    pointers_check(l);
    return l;
}

static CUresult launch(CUfunction f, const unsigned grid[3],
                       const unsigned block[3], unsigned shared, CUstream s,
                       void **parameter, bool cooperative, bool programmatic) {
    if (!function_known(f) || !stream_known(s))
        return CUDA_ERROR_INVALID_HANDLE;
    if (grid[0] == 0 || grid[0] > 0x7fffffff || grid[1] != 1 || grid[2] != 1 ||
        block[1] != 1 || block[2] != 1 || parameter == NULL ||
        shared > device_number("maxSharedMemoryPerBlock"))
        return CUDA_ERROR_INVALID_VALUE;
    if ((int)block[0] > f->threads)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if ((int)block[0] != f->threads)
        complain("%s: %u threads, but it is written for %d", f->name, block[0],
                 f->threads);
    if (f->waits && !cooperative)
        complain("%s waits for its grid, but is not launched so", f->name);
    if (cooperative && device_number("supportCoopLaunch") == 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (cooperative &&
        (long long)grid[0] >
            blocks_resident(f->threads) * device_number("multiProcessorCount"))
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    // NVIDIA's driver takes it behind anything, but promises less there.
    if (programmatic && !s->after_kernel)
        complain("%s: a programmatic launch behind no kernel", f->name);
    if (programmatic && device_architecture() < 90)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = stream_add(
        s, &launch_new(f, (int)grid[0], parameter, programmatic, cooperative)
                ->work);
    s->after_kernel = result == CUDA_SUCCESS;
    return result;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream s, void **parameter, void **extra) {
    DRIVER_CALL("%s grid=%u block=%u shared=%u stream=%p",
                function_known(f) ? f->name : "?", gx, bx, shared, (void *)s);
    if (extra != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared,
                  s, parameter, false, false);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f,
                          void **parameter, void **extra) {
    bool programmatic = false;
    DRIVER_CALL("%s grid=%u block=%u shared=%u stream=%p attributes=%u",
                function_known(f) ? f->name : "?", c->gridDimX, c->blockDimX,
                c->sharedMemBytes, (void *)c->hStream, c->numAttrs);
    if (extra != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *a = &c->attrs[i];
        if (a->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            complain("%s: an attribute of another kind", f->name);
        programmatic = a->value.programmaticStreamSerializationAllowed != 0;
    }
    return launch(f, (unsigned[]){c->gridDimX, c->gridDimY, c->gridDimZ},
                  (unsigned[]){c->blockDimX, c->blockDimY, c->blockDimZ},
                  c->sharedMemBytes, c->hStream, parameter, false,
                  programmatic);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy,
                                   unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream s,
                                   void **parameter) {
    DRIVER_CALL("%s grid=%u block=%u shared=%u stream=%p",
                function_known(f) ? f->name : "?", gx, bx, shared, (void *)s);
    return launch(f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared,
                  s, parameter, true, false);
}
