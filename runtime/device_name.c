// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device names: parses --device, and checks that the device exists.

#include "runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

int rt_cuda_ordinal(const char *name) {
    if (strcmp(name, "cuda") == 0)
        return 0;
    if (strncmp(name, "cuda:", 5) != 0 || name[5] < '0' || name[5] > '9' ||
        strlen(name) > 7)
        return -1;
    char *end;
    long ordinal = strtol(name + 5, &end, 10);
    return *end == '\0' ? (int)ordinal : -1;
}

bool rt_device_named(const char *name, RtError *e) {
    return strcmp(name, "auto") == 0 || strcmp(name, "host") == 0 ||
           rt_cuda_ordinal(name) >= 0 ||
           rt_fail(e, EXIT_USAGE,
                   "--device %.100s: expected auto, host, cuda or cuda:N",
                   name);
}

bool rt_device_found(const char *name, RtError *e) {
    int ordinal = rt_cuda_ordinal(name);
    return rt_device_named(name, e) &&
           (ordinal < 0 || rt_gpu_found(ordinal, e));
}
