// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Offline: machine code for GPUs that need not be here.

#include "runtime/cuda/kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>

enum { NEWEST_DRIVER = 13000 };

struct RtOffline {
    RtNvrtc nvrtc;
    int cuda; // the newest supported version
    RtCache cache;
};

// Opens an NVRTC that supports a compute capability, in the place of one that
// does not.
static bool nvrtc_select(RtOffline *c, int capability, RtError *e) {
    int cuda = rt_capability_cuda(capability, NEWEST_DRIVER);
    if (cuda == c->cuda)
        return true;
    rt_nvrtc_close(&c->nvrtc);
    c->cuda = 0;
    if (!rt_nvrtc_open(&c->nvrtc, capability, NEWEST_DRIVER, e))
        return false;
    c->cuda = cuda;
    return true;
}

RtOffline *rt_offline_open(int capability, RtError *e) {
    RtOffline *c = calloc(1, sizeof *c);
    if (c == NULL) {
        rt_fail(e, EXIT_DEVICE, "out of memory");
        return NULL;
    }
    if (nvrtc_select(c, capability, e)) {
        rt_cache_open(&c->cache, &rt_private_files);
        return c;
    }
    free(c);
    return NULL;
}

void rt_offline_close(RtOffline *c) {
    if (c == NULL)
        return;
    rt_cache_close(&c->cache);
    rt_nvrtc_close(&c->nvrtc);
    free(c);
}

void rt_offline_version(const RtOffline *c, int *major, int *minor) {
    *major = c->nvrtc.major;
    *minor = c->nvrtc.minor;
}

typedef bool Compile(const RtNvrtc *n, const RtSource *s, RtCode *out,
                     RtError *e);

// The key of the cache has the options, and so tells code and log apart.
static bool compile(RtOffline *c, Compile *run, const char *text,
                    int capability, RtCodeForm form, const char *option,
                    RtCode *out, RtError *e) {
    char target[RT_NVRTC_OPTION_BYTES];
    const char *options[] = {target, option};
    RtSource s = {.text = text,
                  .num_headers = RT_PRELUDE_FILES,
                  .header = rt_prelude_text,
                  .include = rt_prelude_name,
                  .num_options = option != NULL ? 2 : 1,
                  .option = options};
    snprintf(target, sizeof target, "--gpu-architecture=%s_%d",
             form == RT_PTX ? "compute" : "sm", capability);
    if (!nvrtc_select(c, capability, e))
        return false;
    RtCacheKey key = rt_cache_key(&c->nvrtc, &s);
    if (rt_cache_read(&c->cache, key, out))
        return true;
    if (!run(&c->nvrtc, &s, out, e))
        return false;
    rt_cache_write(&c->cache, key, out);
    return true;
}

bool rt_offline_compile(RtOffline *c, const char *text, int capability,
                        RtCodeForm form, const char *option, RtCode *out,
                        RtError *e) {
    return compile(c, rt_nvrtc_compile, text, capability, form, option, out, e);
}

bool rt_offline_log(RtOffline *c, const char *text, int capability,
                    const char *option, RtCode *out, RtError *e) {
    return compile(c, rt_nvrtc_log, text, capability, RT_CUBIN, option, out, e);
}
