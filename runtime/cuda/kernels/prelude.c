// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prelude: what CMake makes of the files in runtime/prelude that CUDA's text
// includes.

#include "runtime/cuda/kernels/prelude.h"

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
