// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NVTX: two functions of a library.  A profiler requests ranges by an
// environment variable.
#include "runtime/report/nvtx.h"

#include "runtime/library.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

bool rt_nvtx_open(RtNvtx *n, bool must, RtError *e) {
    static const char *const files[] = {"libnvtx3interop.so.1",
                                        "libnvToolsExt.so.1", NULL};
    static const RtSymbol symbols[] = {
        {"nvtxRangePushA", offsetof(RtNvtx, push)},
        {"nvtxRangePop", offsetof(RtNvtx, pop)},
    };
    const RtLibrary library = {.needed = "ranges for a profiler need",
                               .files = files,
                               .remedy = "install NVTX of CUDA 13 or 12",
                               .status = EXIT_DEVICE,
                               .symbol = symbols,
                               .num_symbols = 2};
    RtError ignored;
    *n = (RtNvtx){0};
    if (!must && getenv("NVTX_INJECTION64_PATH") == NULL)
        return true;
    n->library = rt_library_open(&library, n, must ? e : &ignored);
    return n->library != NULL || !must;
}

void rt_nvtx_close(RtNvtx *n) {
    rt_library_close(n->library);
    *n = (RtNvtx){0};
}

void rt_nvtx_push(const RtNvtx *n, const char *format, ...) {
    char text[400];
    va_list list;
    if (n == NULL || n->library == NULL)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    n->push(text);
}

void rt_nvtx_pop(const RtNvtx *n) {
    if (n != NULL && n->library != NULL)
        n->pop();
}
