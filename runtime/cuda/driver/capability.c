// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generations: machine code runs on GPUs of its major number from its minor
// number on.  GPUs on one chip with a processor (Tegra) are apart: theirs runs
// on no other, and they run no other's.

#include "runtime/cuda/driver/capability.h"

// 8.8 is in NVRTC's list, and for which boards it is has not been told; 10.1 is
// what CUDA 13 calls 11.0.
static bool is_on_board(int generation) {
    static const int boards[] = {53, 62, 72, 87, 88, 101, 110};
    for (unsigned i = 0; i < sizeof boards / sizeof boards[0]; i++)
        if (boards[i] == generation)
            return true;
    return false;
}

bool rt_capability_runs(int code, int gpu) {
    return code == gpu || (code / 10 == gpu / 10 && code < gpu &&
                           !is_on_board(code) && !is_on_board(gpu));
}

int rt_capability_cuda(int gpu, int driver) {
    enum { FIRST_OF_12 = 50, FIRST_OF_13 = 75 };
    bool old = gpu >= FIRST_OF_12 && gpu < FIRST_OF_13;
    return driver < 13000 || old ? 12 : 13;
}
