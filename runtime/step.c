// Step: which of a plan's steps is meant.

#include "runtime/runtime.h"

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
    step->run(d);
    if (step->then_derive)
        rt_step_run(plan, d, RT_DERIVE, 0);
}
