// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prelude: the files of runtime/prelude that CUDA text includes, embedded by
// CMake.

#include "runtime/cuda/kernels/kernels.h"

extern const unsigned char rt_prelude_h[], rt_prelude_cuda_h[],
    rt_prelude_block_h[];

const char *const rt_prelude_text[RT_PRELUDE_FILES] = {
    (const char *)rt_prelude_h,
    (const char *)rt_prelude_cuda_h,
    (const char *)rt_prelude_block_h,
};

const char *const rt_prelude_name[RT_PRELUDE_FILES] = {
    "runtime/prelude/prelude.h",
    "runtime/prelude/cuda.h",
    "runtime/prelude/block.h",
};
