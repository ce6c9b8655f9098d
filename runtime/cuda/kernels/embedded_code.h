// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Embedded: machine code and assembly that a trainer was built with.
//
// They are one after another, each behind a header.  Machine code is for the
// GPUs that generation.h says, assembly for all from its generation on, by the
// driver's own compiler.
#ifndef RUNTIME_CUDA_EMBEDDED_H
#define RUNTIME_CUDA_EMBEDDED_H

#include "runtime/rt.h"

typedef enum { RT_CUBIN, RT_PTX } RtCodeForm;

typedef struct {
    int32_t generation; // 10 * major + minor
    int32_t form;       // RtCodeForm
    uint64_t length;    // of what follows, and zeros to a multiple of 16
} RtEmbeddedCode;

// What runs on a GPU of a generation, best first: the next after one of this
// rank, which is then its own.  At first that is RT_BEFORE_ALL; NULL: there is
// no more.
enum { RT_BEFORE_ALL = 1 << 30 };
const char *rt_embedded_code_next(const RtTrainer *t, int gpu, int *rank);
// "8.0, 9.0": the generations there are.
void rt_embedded_code_names(const RtTrainer *t, char *to, size_t room);

#endif
