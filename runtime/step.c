// Step: which of a plan's steps is meant, and what it is given.

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

static size_t input_bytes(const RtInput *in) {
    size_t bytes = rt_type_bytes(in->type);
    for (int i = 0; i < in->rank; i++)
        bytes *= (size_t)in->dim[i];
    return bytes;
}

// What a batch has for an input; the names are those of ir/program.h.
static const void *batch_part(const RtBatch *b, const char *name) {
    if (strcmp(name, "image") == 0)
        return b->image;
    if (strcmp(name, "label") == 0)
        return b->label;
    return strcmp(name, "index") == 0 ? b->index : &b->valid;
}

void rt_step_feed(const RtPlan *plan, RtDevice *d, RtStepKind kind, int stage,
                  const RtBatch *b) {
    const RtStep *step = rt_step_find(plan, kind, stage);
    for (int i = 0; step != NULL && i < step->num_inputs; i++) {
        const RtInput *in = &step->input[i];
        d->write(d, in->offset, batch_part(b, in->name), input_bytes(in));
    }
}
