// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compute capability: a cubin runs on GPUs of its major number from its minor
// number on.  Integrated GPUs (Tegra) are apart: they run only their own
// cubins, and no other GPU runs those.

#include "runtime/cuda/driver/driver.h"

// NVRTC lists 8.8, whose boards are not documented; CUDA 13 calls 10.1 11.0.
static bool is_integrated(int capability) {
    static const int integrated[] = {53, 62, 72, 87, 88, 101, 110};
    for (unsigned i = 0; i < sizeof integrated / sizeof integrated[0]; i++)
        if (integrated[i] == capability)
            return true;
    return false;
}

bool rt_capability_runs(int code, int gpu) {
    return code == gpu || (code / 10 == gpu / 10 && code < gpu &&
                           !is_integrated(code) && !is_integrated(gpu));
}

int rt_capability_cuda(int gpu, int driver) {
    enum { FIRST_OF_12 = 50, FIRST_OF_13 = 75 };
    bool old = gpu >= FIRST_OF_12 && gpu < FIRST_OF_13;
    return driver < 13000 || old ? 12 : 13;
}
