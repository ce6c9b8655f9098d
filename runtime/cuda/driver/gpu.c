// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GPU: finds the GPU of a run, reads its properties and opens its context.

#include "runtime/cuda/driver/driver.h"

enum { OLDEST_DRIVER = 12000 };

static bool find_device(RtGpu *g, RtError *e) {
    int count = 0;
    const RtDriver *cu = g->cu;
    if (!rt_driver_good(cu, cu->device_count(&count), e, "count the GPUs"))
        return false;
    if (g->ordinal < count)
        return rt_driver_good(cu, cu->device_get(&g->device, g->ordinal), e,
                              "find GPU %d", g->ordinal);
    if (count == 0)
        return rt_fail(
            e, EXIT_DEVICE,
            "NVIDIA's driver finds no GPU: nvidia-smi lists the GPUs, and "
            "CUDA_VISIBLE_DEVICES selects the visible ones");
    return rt_fail(e, EXIT_DEVICE,
                   "no GPU %d: the driver finds %d, from cuda:0 to cuda:%d",
                   g->ordinal, count, count - 1);
}

static bool read_attribute(const RtGpu *g, CUdevice_attribute attribute,
                           int *value, RtError *e) {
    return rt_driver_good(g->cu,
                          g->cu->device_attribute(value, attribute, g->device),
                          e, "read the properties of GPU %d", g->ordinal);
}

// The clock is only reported, so an unknown one is no error.
static bool describe(RtGpu *g, RtError *e) {
    const RtDriver *cu = g->cu;
    RtError ignored;
    int cache = 0, cooperates = 0;
    bool good =
        read_attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                       &g->major, e) &&
        read_attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                       &g->minor, e) &&
        read_attribute(g, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                       &g->processors, e) &&
        read_attribute(g, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &cache, e) &&
        read_attribute(g, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &cooperates,
                       e) &&
        rt_driver_good(cu, cu->driver_version(&g->driver), e,
                       "read the driver's version") &&
        rt_driver_good(cu,
                       cu->device_name(g->name, (int)sizeof g->name, g->device),
                       e, "read the name of GPU %d", g->ordinal) &&
        rt_driver_good(cu, cu->device_uuid(&g->uuid, g->device), e,
                       "read the UUID of GPU %d", g->ordinal) &&
        rt_driver_good(cu, cu->device_memory(&g->memory, g->device), e,
                       "read the memory size of GPU %d", g->ordinal);
    g->cache = (size_t)cache;
    g->cooperates = cooperates != 0;
    if (!read_attribute(g, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &g->clock, &ignored))
        g->clock = 0;
    return good;
}

static bool is_new_enough(const RtGpu *g, RtError *e) {
    return g->driver >= OLDEST_DRIVER ||
           rt_fail(e, EXIT_DEVICE,
                   "NVIDIA's driver supports CUDA up to %d.%d, but 12.0 is "
                   "needed: install version 525 or later, 580 for CUDA 13",
                   g->driver / 1000, g->driver % 1000 / 10);
}

// A mode that an administrator can set.
static bool may_be_used(const RtGpu *g, RtError *e) {
    int mode = 0;
    if (!read_attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, &mode, e))
        return false;
    return mode != CU_COMPUTEMODE_PROHIBITED ||
           rt_fail(e, EXIT_DEVICE,
                   "GPU %d, %s, is in compute mode PROHIBITED; `nvidia-smi -i "
                   "%d -c DEFAULT` changes it",
                   g->ordinal, g->name, g->ordinal);
}

bool rt_gpu_find(RtGpu *g, const RtDriver *cu, int ordinal, RtError *e) {
    *g = (RtGpu){.cu = cu, .ordinal = ordinal};
    return find_device(g, e) && describe(g, e) && is_new_enough(g, e) &&
           may_be_used(g, e);
}

bool rt_gpu_found(int ordinal, RtError *e) {
    RtDriver cu;
    RtGpu gpu;
    return rt_driver_open(&cu, e) && rt_gpu_find(&gpu, &cu, ordinal, e);
}

bool rt_gpu_open(RtGpu *g, RtError *e) {
    const RtDriver *cu = g->cu;
    if (!rt_driver_good(cu, cu->context_retain(&g->context, g->device), e,
                        "use GPU %d, %s", g->ordinal, g->name)) {
        g->context = NULL;
        return false;
    }
    if (rt_driver_good(cu, cu->context_set(g->context), e, "use GPU %d, %s",
                       g->ordinal, g->name))
        return true;
    rt_gpu_close(g);
    return false;
}

int rt_gpu_capability(const RtGpu *g) {
    return 10 * g->major + g->minor;
}

void rt_gpu_close(RtGpu *g) {
    if (g->context != NULL)
        g->cu->context_release(g->device);
    g->context = NULL;
}
