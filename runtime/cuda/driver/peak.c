// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Peak: operations of a multiprocessor in a clock, times multiprocessors, times
// clock rate.
//
// f32 is from the table of arithmetic instructions in NVIDIA's CUDA programming
// guide.  f16 and bf16 are for tensor cores with sums in f32 and without
// sparsity, from the whitepapers of V100, A100 and H100, of GA102 and Ada for
// GeForce, from the data sheets of A40 and A10 for other GPUs of 8.6, and from
// that of HGX B200 for 10.0.  Others are unknown: some GPUs of 7.5 have no
// tensor cores, and of 8.9 L40 has half the rate of L40S.

#include "runtime/cuda/driver/driver.h"

#include <string.h>

// H100's whitepaper has a separate clock for tensor cores: 1830 MHz beside
// 1980, and 1620 beside 1755.
// clang-format off
static const struct {
    int capability;
    double f32, f16, geforce; // geforce: f16 of a GeForce
    double clock;             // of tensor cores, relative to the GPU's
} known[] = {
    {70,  128, 1024, 0,   1},
    {75,  128, 0,    0,   1},
    {80,  128, 2048, 0,   1},
    {86,  256, 1024, 512, 1},
    {89,  256, 0,    512, 1},
    {90,  256, 4096, 0,   1830.0 / 1980},
    {100, 256, 8192, 0,   1},
    {120, 256, 0,    0,   1},
};
// clang-format on
enum { NUM_KNOWN = sizeof known / sizeof known[0] };

double rt_gpu_peak(const RtGpu *g, RtType type) {
    double clocks = 1e3 * g->clock * g->processors;
    for (int i = 0; i < NUM_KNOWN; i++) {
        if (known[i].capability != rt_gpu_capability(g))
            continue;
        if (type == RT_F32)
            return clocks * known[i].f32;
        if (type != RT_F16 && type != RT_BF16)
            return 0;
        bool geforce = strstr(g->name, "GeForce") != NULL;
        return clocks * known[i].clock *
               (geforce ? known[i].geforce : known[i].f16);
    }
    return 0;
}
