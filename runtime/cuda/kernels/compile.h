// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiling: the code of a plan's kernels, made by threads of its own.
//
// Each kernel is compiled for itself, several side by side, for the GPU that is
// there; what the cache has is not compiled.  While the device makes its
// context and one thread plans its calls, others begin with the kernels that
// are likely to be launched.  The rest follows when it is known what is
// launched.
#ifndef RUNTIME_CUDA_COMPILE_H
#define RUNTIME_CUDA_COMPILE_H

#include "runtime/cuda/driver/driver.h"
#include "runtime/cuda/kernels/nvrtc.h"

typedef struct RtCompiler RtCompiler;

// Of a plan's kernels, which are in the text of a trainer, for a GPU that needs
// no context yet.  NULL: out of memory.
RtCompiler *rt_compiler_new(const RtGpu *gpu, const RtTrainer *t,
                            const RtPlan *plan, const RtFiles *files,
                            RtError *e);
// Stops what was begun.
void rt_compiler_free(RtCompiler *c);

// Opens NVRTC, if it is not open.  cuDNN opens it too, and closes it again, for
// each plan that it makes: while it is open here that is quick.
bool rt_compiler_open(RtCompiler *c, RtError *e);

// Begins with what is likely to be wanted, of each kernel, once NVRTC is open.
// What goes wrong with it is not told: it may not be wanted.
void rt_compiler_start(RtCompiler *c, const bool *likely);

// Makes the code of all that are wanted.
bool rt_compiler_finish(RtCompiler *c, const bool *wanted, RtError *e);
const RtCode *rt_compiler_code(const RtCompiler *c, int kernel);

#endif
