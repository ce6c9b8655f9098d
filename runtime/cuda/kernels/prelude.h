// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The texts that kernels include, which every trainer carries.
#ifndef RUNTIME_CUDA_PRELUDE_H
#define RUNTIME_CUDA_PRELUDE_H

enum { RT_PRELUDE_FILES = 3 };

extern const char *const rt_prelude_text[RT_PRELUDE_FILES];
extern const char *const rt_prelude_name[RT_PRELUDE_FILES];

#endif
