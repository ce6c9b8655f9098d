// Detect: describes the devices of this machine.
#include "runtime/cuda/driver/driver.h"
#include "tools/device.h"

#include <string.h>

bool gpu_detect(Arena *a, Device *out) {
    RtDriver cu;
    RtGpu gpu;
    RtError e;
    int clock = 0, width = 0;
    if (!rt_driver_has_gpu() || !rt_driver_open(&cu, &e) ||
        !rt_gpu_find(&gpu, &cu, 0, &e))
        return false;
    if (cu.device_attribute(&clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
                            gpu.device) != 0 ||
        cu.device_attribute(&width, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
                            gpu.device) != 0)
        clock = width = 0;
    *out = (Device){
        .name = arena_string(a, gpu.name, strlen(gpu.name)),
        .sm = rt_gpu_capability(&gpu),
        .cooperative = gpu.cooperates,
        .multiprocessors = gpu.processors,
        .memory = (double)gpu.memory,
        .cache = (double)gpu.cache,
        // kHz, at both edges, and bits.
        .bandwidth = 2e3 * clock * width / 8,
        .f16_flops = rt_gpu_peak(&gpu, RT_F16),
        .f32_flops = rt_gpu_peak(&gpu, RT_F32),
    };
    return true;
}

Device host_detect(Arena *a) {
    HostSpeed s = host_speed();
    char processor[96];
    rt_processor_name(processor, sizeof processor);
    return (Device){
        .name = arena_format(a, "%s, %d thread%s", processor, s.threads,
                             s.threads == 1 ? "" : "s"),
        .multiprocessors = s.threads,
        .memory = (double)rt_memory_available(),
        .bandwidth = s.bandwidth,
        .f16_flops = s.flops,
        .f32_flops = s.flops,
        .lanes = s.lanes,
    };
}
