// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gather: a thread copies a word at a time.

#include "runtime/cuda/kernels/kernels.h"

#define GATHER(number, name, word)                                             \
    "#if IS_NEEDED(" number ")\n"                                              \
    "KERNEL(256) " name "(\n"                                                  \
    "    const int *RESTRICT index,\n"                                         \
    "    const " word " *RESTRICT from,\n"                                     \
    "    " word " *RESTRICT to,\n"                                             \
    "    const int rows,\n"                                                    \
    "    const int words)\n"                                                   \
    "{\n"                                                                      \
    "    OWN_BLOCK;\n"                                                         \
    "    enum { NT = THREADS(256) };\n"                                        \
    "    for (int i = block * NT + threadIdx.x; i < rows * words;\n"           \
    "         i += blocks * NT)\n"                                             \
    "        to[i] =\n"                                                        \
    "            from[(long long)index[i / words] * words + i % words];\n"     \
    "}\n"                                                                      \
    "#endif\n"                                                                 \
    "\n"

#define KERNELS                                                                \
    GATHER("0", "gather_8", "unsigned long long")                              \
    GATHER("1", "gather_4", "unsigned int")                                    \
    GATHER("2", "gather_1", "unsigned char")

const char rt_gather_text[] = "#define SINTER_ACT 32\n"
                              "#include \"runtime/prelude/prelude.h\"\n"
                              "\n" KERNELS;
const char rt_gather_kernels[] = KERNELS;
