// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text: the kernels' CUDA text and what it includes as files in a folder, for
// people to read, to compile and to edit.
#ifndef RUNTIME_CUDA_TEXT_H
#define RUNTIME_CUDA_TEXT_H

#include "runtime/cuda/kernels/prelude.h"
#include "runtime/runtime.h"

// A trainer with the text of a folder.
typedef struct {
    RtTrainer trainer;
    char *kernels;
    const char *prelude[RT_PRELUDE_FILES];
} RtSourceFiles;

// Writes kernels.cu, and the prelude where its #include finds it.
bool rt_source_files_write(const RtTrainer *t, const char *folder,
                           const RtFiles *files, RtError *e);
// The trainer t with what is there; the texts stay until the program ends.
bool rt_source_files_read(RtSourceFiles *text, const RtTrainer *t,
                          const char *folder, const RtFiles *files, RtError *e);

#endif
