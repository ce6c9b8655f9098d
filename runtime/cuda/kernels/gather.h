// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gather: the text of the kernels that take rows by their numbers to where a
// step reads them, for rows of words of 8, 4 and 1 bytes.
//
// They depend on no model, so that one compilation is for all, and a trainer
// that carries machine code has them in it.
#ifndef RUNTIME_CUDA_GATHER_H
#define RUNTIME_CUDA_GATHER_H

extern const char rt_gather_text[];
// What follows the prelude in it.
extern const char rt_gather_kernels[];

#endif
