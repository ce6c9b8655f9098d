// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Machine: reports the GPUs of this machine and NVIDIA's libraries, each opened
// as a trainer opens it.

#include "runtime/machine.h"
#include "runtime/cuda/driver/driver.h"
#include "runtime/cuda/kernels/kernels.h"
#include "runtime/cuda/libraries/libraries.h"
#include "runtime/library.h"
#include "runtime/report/nvtx.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    RtComponentHook *report;
    void *context;
    int driver; // newest CUDA version of the driver, times 1000; 0: none
    int count, capability[RT_MAX_GPUS]; // of the GPUs
} Search;

static void report_missing(const Search *s, const char *name, const char *path,
                           const RtError *e) {
    s->report(s->context, &(RtComponent){name, NULL, path, e->text});
}

static void report_found(const Search *s, const char *name, const char *path,
                         const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void report_found(const Search *s, const char *name, const char *path,
                         const char *format, ...) {
    char version[256];
    va_list list;
    va_start(list, format);
    vsnprintf(version, sizeof version, format, list);
    va_end(list);
    s->report(s->context, &(RtComponent){name, version, path, NULL});
}

// ---- the driver and its GPUs ----

// Reads the properties that are reported, so also those of a GPU that a trainer
// could not use.
static bool describe_gpu(const RtDriver *cu, RtGpu *g, RtError *e) {
    static const CUdevice_attribute attribute[] = {
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT};
    int *const value[] = {&g->major, &g->minor, &g->processors};
    bool good =
        rt_driver_good(cu, cu->device_get(&g->device, g->ordinal), e,
                       "find GPU %d", g->ordinal) &&
        rt_driver_good(cu,
                       cu->device_name(g->name, (int)sizeof g->name, g->device),
                       e, "read the name of GPU %d", g->ordinal) &&
        rt_driver_good(cu, cu->device_memory(&g->memory, g->device), e,
                       "read the memory size of GPU %d", g->ordinal);
    for (int i = 0; i < 3 && good; i++)
        good = rt_driver_good(
            cu, cu->device_attribute(value[i], attribute[i], g->device), e,
            "read the properties of GPU %d", g->ordinal);
    return good;
}

static void find_gpu(Search *s, const RtDriver *cu, int ordinal) {
    char name[16];
    RtGpu gpu = {.ordinal = ordinal};
    RtError e;
    snprintf(name, sizeof name, "cuda:%d", ordinal);
    if (!describe_gpu(cu, &gpu, &e)) {
        report_missing(s, name, NULL, &e);
        return;
    }
    report_found(s, name, NULL,
                 "%s, compute capability %d.%d, %d multiprocessors, %zu MiB",
                 gpu.name, gpu.major, gpu.minor, gpu.processors,
                 gpu.memory >> 20);
    s->capability[s->count++] = rt_gpu_capability(&gpu);
}

static void find_driver(Search *s) {
    RtDriver cu;
    RtError e;
    int count = 0;
    if (!rt_driver_open(&cu, &e) ||
        !rt_driver_good(&cu, cu.driver_version(&s->driver), &e,
                        "read the driver's version")) {
        report_missing(s, "driver", NULL, &e);
        return;
    }
    report_found(s, "driver", rt_library_path(&cu.driver_version),
                 "for CUDA %d.%d", s->driver / 1000, s->driver % 1000 / 10);
    if (!rt_driver_good(&cu, cu.device_count(&count), &e, "count the GPUs"))
        report_missing(s, "cuda", NULL, &e);
    for (int i = 0; i < count && i < RT_MAX_GPUS; i++)
        find_gpu(s, &cu, i);
}

bool rt_gpu_model(RtGpuModel *out) {
    RtDriver cu;
    RtGpu gpu;
    RtError e;
    int clock = 0, width = 0;
    if (rt_driver_gpus() == 0 || !rt_driver_open(&cu, &e) ||
        !rt_gpu_find(&gpu, &cu, 0, &e))
        return false;
    if (cu.device_attribute(&clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
                            gpu.device) != 0 ||
        cu.device_attribute(&width, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
                            gpu.device) != 0)
        clock = width = 0;
    *out = (RtGpuModel){
        .capability = rt_gpu_capability(&gpu),
        .processors = gpu.processors,
        .cooperates = gpu.cooperates,
        .memory = (double)gpu.memory,
        .cache = (double)gpu.cache,
        // kHz, at both edges, and bits.
        .bandwidth = 2e3 * clock * width / 8,
        .f16_flops = rt_gpu_peak(&gpu, RT_F16),
        .f32_flops = rt_gpu_peak(&gpu, RT_F32),
    };
    memcpy(out->name, gpu.name, sizeof out->name);
    return true;
}

// ---- libraries ----

// The driver limits the version of CUDA; without one any version will do.
static int driver_of(const Search *s) {
    return s->driver ? s->driver : 13000;
}

// Finds libraries that depend on CUDA's version, for the first GPU of each
// version; gpu 0 stands for any if there is none.
static void each_cuda(Search *s, void (*find)(Search *s, int gpu)) {
    bool found[2] = {false}; // 12, 13
    for (int i = 0; i == 0 || i < s->count; i++) {
        int gpu = s->count > 0 ? s->capability[i] : 0;
        int cuda = rt_capability_cuda(gpu, driver_of(s));
        if (!found[cuda - 12])
            find(s, gpu);
        found[cuda - 12] = true;
    }
}

// NVRTC opens a further library at the first compilation.
static bool nvrtc_compiles(const RtNvrtc *n, RtError *e) {
    RtSource nothing = {.text = ""};
    RtCode remarks = {0};
    bool good = rt_nvrtc_log(n, &nothing, &remarks, e);
    free(remarks.bytes);
    return good;
}

static void find_nvrtc(Search *s, int gpu) {
    RtNvrtc n;
    RtError e;
    if (!rt_nvrtc_open(&n, gpu, driver_of(s), &e)) {
        report_missing(s, "NVRTC", NULL, &e);
        return;
    }
    if (nvrtc_compiles(&n, &e))
        report_found(s, "NVRTC", rt_library_path(&n.version), "%d.%d", n.major,
                     n.minor);
    else
        report_missing(s, "NVRTC", rt_library_path(&n.version), &e);
    rt_nvrtc_close(&n);
}

static void find_cudnn(Search *s, int gpu) {
    RtCudnn c;
    RtError e;
    if (!rt_cudnn_open(&c, &e)) {
        report_missing(s, "cuDNN", NULL, &e);
        return;
    }
    size_t version = c.version();
    const char *path = rt_library_path(&c.version);
    if (rt_cudnn_compatible(&c, gpu, driver_of(s), &e))
        report_found(s, "cuDNN", path, "%zu.%zu.%zu for CUDA %zu",
                     version / 10000, version % 10000 / 100, version % 100,
                     c.cuda() / 1000);
    else
        report_missing(s, "cuDNN", path, &e);
    rt_cudnn_close(&c);
}

static void find_cublaslt(Search *s, int gpu) {
    RtError e;
    size_t (*version)(void);
    void *library = rt_matmuls_library(gpu, driver_of(s), &version, &e);
    if (library == NULL) {
        report_missing(s, "cuBLASLt", NULL, &e);
        return;
    }
    size_t number = version();
    report_found(s, "cuBLASLt", rt_library_path(&version), "%zu.%zu.%zu",
                 number / 10000, number % 10000 / 100, number % 100);
    rt_library_close(library);
}

// NVTX is optional.
static void find_nvtx(Search *s) {
    RtNvtx n;
    RtError ignored;
    if (!rt_nvtx_open(&n, true, &ignored)) {
        report_found(s, "NVTX", NULL,
                     "absent: profilers show no ranges for steps and launches");
        return;
    }
    report_found(s, "NVTX", rt_library_path(&n.push),
                 "profilers show ranges for steps and launches");
    rt_nvtx_close(&n);
}

// nvJPEG is optional, too.
static void find_nvjpeg(Search *s, int gpu) {
    char path[RT_MESSAGE_BYTES];
    RtError ignored;
    if (rt_nvjpeg_find(gpu, driver_of(s), path, &ignored))
        report_found(s, "nvJPEG", path,
                     "--decode=nvjpeg decodes JPEG files on the GPU");
    else
        report_found(s, "nvJPEG", NULL,
                     "absent: the processor decodes JPEG files");
}

int rt_cuda_components(RtComponentHook *report, void *context, int *driver) {
    Search s = {.report = report, .context = context};
    find_driver(&s);
    each_cuda(&s, find_nvrtc);
    each_cuda(&s, find_cudnn);
    each_cuda(&s, find_cublaslt);
    find_nvtx(&s);
    each_cuda(&s, find_nvjpeg);
    *driver = s.driver;
    return s.count;
}
