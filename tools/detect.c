// Detect: describes the devices of this machine.
#include "runtime/machine.h"
#include "tools/device.h"

#include <string.h>

bool gpu_detect(Arena *a, Device *out) {
    RtGpuModel gpu;
    if (!rt_gpu_model(&gpu))
        return false;
    *out = (Device){
        .name = arena_string(a, gpu.name, strlen(gpu.name)),
        .sm = gpu.capability,
        .cooperative = gpu.cooperates,
        .multiprocessors = gpu.processors,
        .memory = gpu.memory,
        .cache = gpu.cache,
        .bandwidth = gpu.bandwidth,
        .f16_flops = gpu.f16_flops,
        .f32_flops = gpu.f32_flops,
    };
    device_options(out);
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
