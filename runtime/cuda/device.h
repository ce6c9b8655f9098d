// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CUDA device: runtime/device.h's on one of NVIDIA's GPUs.
#ifndef RUNTIME_CUDA_DEVICE_H
#define RUNTIME_CUDA_DEVICE_H

#include "runtime/runtime.h"

// The CUDA device of that number; NULL, with the reason in *e, where it cannot
// be used.  The options (NULL: none) say which tuning it follows.
RtDevice *rt_cuda_open(const RtTrainer *t, const RtPlan *plan, int ordinal,
                       const RtOptions *o, RtLaps *laps, RtError *e);

#endif
