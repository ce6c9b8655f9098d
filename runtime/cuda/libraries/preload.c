// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Preload: a library stays in memory once it is closed (runtime/library.c).

#include "runtime/cuda/libraries/libraries.h"

#include "runtime/library.h"

static void cudnn_open(void) {
    RtCudnn c;
    RtError ignored;
    if (!rt_cudnn_open(&c, &ignored))
        return;
    rt_cudnn_preload(&c);
    rt_cudnn_close(&c);
}

static void *libraries_open(void *arg) {
    const RtPreload *a = arg;
    const RtGpu *gpu = a->gpu;
    RtError ignored;
    size_t (*version)(void);
    if (rt_convolutions_needed(a->plan))
        cudnn_open();
    if (rt_matmuls_needed(a->plan))
        rt_library_close(rt_matmuls_library(rt_gpu_capability(gpu), gpu->driver,
                                            &version, &ignored));
    return NULL;
}

void rt_preload_start(RtPreload *a, const RtGpu *gpu, const RtPlan *plan) {
    *a = (RtPreload){.gpu = gpu, .plan = plan};
    a->is_running = pthread_create(&a->thread, NULL, libraries_open, a) == 0;
}

void rt_preload_wait(RtPreload *a) {
    if (a->is_running)
        pthread_join(a->thread, NULL);
    a->is_running = false;
}
