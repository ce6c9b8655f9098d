// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CUDA device: runtime/device.h on an NVIDIA GPU.
#ifndef RUNTIME_CUDA_DEVICE_H
#define RUNTIME_CUDA_DEVICE_H

#include "runtime/runtime.h"

// Opens the GPU of that number; NULL: *e has the reason.  The options (NULL:
// none) select a tuning file.
RtDevice *rt_cuda_open(const RtTrainer *t, const RtPlan *plan, int ordinal,
                       const RtOptions *o, RtLaps *laps, RtError *e);

#endif
