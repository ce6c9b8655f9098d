// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Built-in kernels: a plan of their own, of which a run loads the needed ones.

#include "runtime/cuda/kernels/kernels.h"

static const RtKernel kernels[] = {
#define BUILTIN(called)                                                        \
    { .name = called, .phases = 1, .threads = RT_BUILTIN_THREADS }
    [RT_GATHER_8] = BUILTIN("gather_8"),
    [RT_GATHER_4] = BUILTIN("gather_4"),
    [RT_GATHER_1] = BUILTIN("gather_1"),
    [RT_SUM_RANGES] = BUILTIN("sum_ranges"),
    [RT_SUM_RANKS] = BUILTIN("sum_ranks"),
};
_Static_assert(sizeof kernels / sizeof kernels[0] == RT_NUM_BUILTINS,
               "one for each kernel of the text");

static const RtPlan plan = {
    .device = "cuda", .kernel = kernels, .num_kernels = RT_NUM_BUILTINS};

// A trainer's embedded code has the built-in kernels too.
void rt_builtins_open(RtBuiltins *b, const RtGpu *gpu, const RtTrainer *t) {
    *b = (RtBuiltins){.gpu = gpu,
                      .trainer = {.kernels = rt_builtin_text,
                                  .code = t->code,
                                  .code_end = t->code_end}};
}

bool rt_builtin_start(RtBuiltins *b, RtBuiltin kernel, RtError *e) {
    bool likely[RT_NUM_BUILTINS] = {false};
    likely[kernel] = true;
    return rt_kernels_start(&b->kernels[kernel], b->gpu, &b->trainer, &plan,
                            likely, &rt_private_files, e);
}

const RtFunction *rt_builtin_load(RtBuiltins *b, RtBuiltin kernel, RtError *e) {
    RtKernels *k = &b->kernels[kernel];
    bool needed[RT_NUM_BUILTINS] = {false};
    needed[kernel] = true;
    bool good = k->entry != NULL ||
                ((k->compiler != NULL || rt_builtin_start(b, kernel, e)) &&
                 rt_kernels_load(k, needed, NULL, e));
    return good ? &k->entry[kernel] : NULL;
}

void rt_builtins_close(RtBuiltins *b) {
    for (int i = 0; i < RT_NUM_BUILTINS; i++)
        rt_kernels_close(&b->kernels[i]);
}
