// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NCCL: collectives of ranks that have a GPU each.
#ifndef RUNTIME_CUDA_NCCL_H
#define RUNTIME_CUDA_NCCL_H

#include "runtime/distributed/distributed.h"

extern const RtGpuCollectives rt_nccl;

#endif
