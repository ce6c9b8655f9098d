// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generation: a GPU's compute capability as one number, 10 * major + minor, and
// what that says of code and libraries.
#ifndef RUNTIME_CUDA_GENERATION_H
#define RUNTIME_CUDA_GENERATION_H

#include <stdbool.h>

// Whether machine code of one generation runs on a GPU of another.
bool rt_capability_runs(int code, int gpu);

// The newest CUDA, 12 or 13, whose libraries know a GPU of this generation (0:
// any) and work with a driver that knows CUDA up to `driver`, which is a
// version times 1000.  What neither knows is for the newest to refuse.
int rt_capability_cuda(int gpu, int driver);

#endif
