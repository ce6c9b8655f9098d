// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text of the built-in kernels: gather copies rows by their numbers, a word at
// a time in a thread; sum_ranges adds up to four ranges, in order; sum_ranks
// adds the terms of all ranks as rt_ranks_sum does, by a binary counter.

#include "runtime/cuda/kernels/kernels.h"

#define KERNEL_TEXT(number, name, parameters, body)                            \
    "#if IS_NEEDED(" number ")\n"                                              \
    "KERNEL(256) " name "(\n" parameters ")\n"                                 \
    "{\n"                                                                      \
    "    DECLARE_BLOCK;\n"                                                     \
    "    enum { NT = THREADS(256) };\n" body "}\n"                             \
    "#endif\n"                                                                 \
    "\n"

#define GATHER(number, name, word)                                             \
    KERNEL_TEXT(                                                               \
        number, name,                                                          \
        "    const int *RESTRICT index,\n"                                     \
        "    const " word " *RESTRICT from,\n"                                 \
        "    " word " *RESTRICT to,\n"                                         \
        "    const int rows,\n"                                                \
        "    const int words",                                                 \
        "    for (int i = block * NT + threadIdx.x; i < rows * words;\n"       \
        "         i += blocks * NT)\n"                                         \
        "        to[i] =\n"                                                    \
        "            from[(long long)index[i / words] * words + i % "          \
        "words];\n")

// The sum may be stored in place of a term.
#define SUM_RANGES(number)                                                     \
    KERNEL_TEXT(                                                               \
        number, "sum_ranges",                                                  \
        "    float *to,\n"                                                     \
        "    const float *to_end,\n"                                           \
        "    const float *a,\n"                                                \
        "    const float *b,\n"                                                \
        "    const float *c,\n"                                                \
        "    const float *d,\n"                                                \
        "    const int terms",                                                 \
        "    const long long count = to_end - to;\n"                           \
        "    for (long long i = (long long)block * NT + threadIdx.x;\n"        \
        "         i < count; i += (long long)blocks * NT) {\n"                 \
        "        float sum = a[i];\n"                                          \
        "        if (terms > 1)\n"                                             \
        "            sum += b[i];\n"                                           \
        "        if (terms > 2)\n"                                             \
        "            sum += c[i];\n"                                           \
        "        if (terms > 3)\n"                                             \
        "            sum += d[i];\n"                                           \
        "        to[i] = sum;\n"                                               \
        "    }\n")

// 11 levels are enough for RT_MAX_RANKS.
#define SUM_RANKS(number)                                                      \
    KERNEL_TEXT(                                                               \
        number, "sum_ranks",                                                   \
        "    float *to,\n"                                                     \
        "    const float *to_end,\n"                                           \
        "    const float *terms,\n"                                            \
        "    const int stride,\n"                                              \
        "    const int ranks",                                                 \
        "    enum { LEVELS = 11 };\n"                                          \
        "    const long long count = to_end - to;\n"                           \
        "    for (long long i = (long long)block * NT + threadIdx.x;\n"        \
        "         i < count; i += (long long)blocks * NT) {\n"                 \
        "        float level[LEVELS], sum = 0.0f;\n"                           \
        "        for (int rank = 0; rank < ranks; rank++) {\n"                 \
        "            int carry = 1;\n"                                         \
        "            sum = terms[(long long)rank * stride + i];\n"             \
        "            UNROLLED(l, LEVELS) {\n"                                  \
        "                if (carry && (rank >> l & 1))\n"                      \
        "                    sum = level[l] + sum;\n"                          \
        "                else if (carry) {\n"                                  \
        "                    level[l] = sum;\n"                                \
        "                    carry = 0;\n"                                     \
        "                }\n"                                                  \
        "            }\n"                                                      \
        "        }\n"                                                          \
        "        int any = 0;\n"                                               \
        "        UNROLLED(l, LEVELS) {\n"                                      \
        "            if (ranks >> l & 1) {\n"                                  \
        "                sum = any ? level[l] + sum : level[l];\n"             \
        "                any = 1;\n"                                           \
        "            }\n"                                                      \
        "        }\n"                                                          \
        "        to[i] = sum;\n"                                               \
        "    }\n")

#define KERNELS                                                                \
    GATHER("0", "gather_8", "unsigned long long")                              \
    GATHER("1", "gather_4", "unsigned int")                                    \
    GATHER("2", "gather_1", "unsigned char")                                   \
    SUM_RANGES("3")                                                            \
    SUM_RANKS("4")

const char rt_builtin_text[] = "#define SINTER_ACT 32\n"
                               "#include \"runtime/prelude/prelude.h\"\n"
                               "\n" KERNELS;
const char rt_builtin_kernels[] = KERNELS;
