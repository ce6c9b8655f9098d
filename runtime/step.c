// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Step: finds, runs and measures a plan's steps.

#include "runtime/runtime.h"

#include <string.h>

const RtStep *rt_step_find(const RtPlan *plan, RtStepKind kind, int stage) {
    for (int i = 0; i < plan->num_steps; i++)
        if (plan->step[i].kind == kind && plan->step[i].stage == stage)
            return &plan->step[i];
    return NULL;
}

void rt_step_run(const RtPlan *plan, RtDevice *d, RtStepKind kind, int stage) {
    const RtStep *step = rt_step_find(plan, kind, stage);
    if (step == NULL)
        return;
    d->run(d, step);
    if (step->then_derive)
        rt_step_run(plan, d, RT_DERIVE, 0);
}

int rt_step_num_outputs(const RtStep *step) {
    return 1 + step->num_more_outputs;
}

const RtInput *rt_step_output(const RtStep *step, int i) {
    return i == 0 ? &step->output : &step->more_output[i - 1];
}

void rt_step_flops(const RtPlan *plan, const RtStep *step, int64_t runs,
                   double to[RT_NUM_FLOATS]) {
    for (int i = 0; step->launch != NULL && i < step->num_launches; i++) {
        int call = step->launch[i].call;
        if (call >= 0 && plan->call[call].type <= RT_BF16)
            to[plan->call[call].type] +=
                (double)runs * rt_call_flops(&plan->call[call]);
    }
}

size_t rt_input_bytes(const RtInput *in) {
    size_t bytes = rt_type_bytes(in->type);
    for (int i = 0; i < in->rank; i++)
        bytes *= (size_t)in->dim[i];
    return bytes;
}

const RtInput *rt_images_of(const RtPlan *plan) {
    for (int i = 0; i < plan->num_steps; i++)
        for (int k = 0; k < plan->step[i].num_inputs; k++) {
            const RtInput *in = &plan->step[i].input[k];
            if (plan->step[i].kind == RT_TRAIN && in->rank > 0 &&
                strcmp(in->name, "image") == 0)
                return in;
        }
    return NULL;
}
