// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Peak: what a GPU could do at most.
#ifndef RUNTIME_CUDA_PEAK_H
#define RUNTIME_CUDA_PEAK_H

#include "runtime/cuda/driver/driver.h"

// Operations a second in contractions of that type, with sums in f32; a
// multiply-add is two.  0: not known.
double rt_gpu_peak(const RtGpu *g, RtType type);

#endif
