// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Open: the device of a command line, and its plan.

#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const RtPlan *plan_for(const RtTrainer *t, const char *device) {
    for (int i = 0; i < t->num_plans; i++)
        if (strcmp(t->plan[i].device, device) == 0)
            return &t->plan[i];
    return NULL;
}

static void no_plan(const char *what, RtError *e) {
    rt_fail(e, EXIT_DEVICE, "this trainer has no plan for %s", what);
}

static RtDevice *open_cuda(const RtTrainer *t, const RtOptions *o, int ordinal,
                           const RtPlan **plan, RtLaps *laps, RtError *e) {
    *plan = plan_for(t, "cuda");
    if (*plan != NULL)
        return rt_cuda_open(t, *plan, ordinal, o, laps, e);
    no_plan("CUDA devices", e);
    return NULL;
}

static RtDevice *open_host(const RtTrainer *t, const RtOptions *o,
                           const RtPlan **plan, RtError *e) {
    *plan = plan_for(t, "host");
    if (o->tuning != NULL || o->tune) {
        rt_fail(e, EXIT_USAGE,
                "--%s: the host device has nothing to tune; choose a GPU with "
                "--device=cuda:N",
                o->tune ? "tune" : "tuning");
        return NULL;
    }
    if (*plan != NULL)
        return host_open(*plan, o->threads);
    no_plan("the host", e);
    return NULL;
}

// Without a number, ranks of one machine have the GPUs in turn; a launcher may
// also show each only its own.
static int own_gpu(const RtOptions *o) {
    return rt_driver_gpus() > 1 ? o->local_rank : 0;
}

// A GPU if the machine has one, else the host.  If the GPU cannot be used, a
// warning says why, as the host is slow.
static RtDevice *open_any(const RtTrainer *t, const RtOptions *o,
                          const RtPlan **plan, RtLaps *laps, RtError *e) {
    if (plan_for(t, "cuda") != NULL && rt_driver_gpus() > 0) {
        RtDevice *d = open_cuda(t, o, own_gpu(o), plan, laps, e);
        if (d != NULL || o->tuning != NULL)
            return d;
        rt_warn("training on the host: %s", e->text);
    }
    return open_host(t, o, plan, e);
}

RtDevice *rt_device_open(const RtTrainer *t, const RtOptions *o,
                         const RtPlan **plan, RtLaps *laps, RtError *e) {
    bool numbered = strcmp(o->device, "cuda") != 0;
    int ordinal = numbered ? rt_cuda_ordinal(o->device) : own_gpu(o);
    if (strcmp(o->device, "auto") == 0)
        return open_any(t, o, plan, laps, e);
    if (strcmp(o->device, "host") == 0)
        return open_host(t, o, plan, e);
    if (ordinal >= 0)
        return open_cuda(t, o, ordinal, plan, laps, e);
    rt_device_named(o->device, e);
    return NULL;
}

const RtPlan *rt_device_plan(const RtTrainer *t, const RtOptions *o,
                             RtError *e) {
    const RtPlan *cuda = plan_for(t, "cuda"), *host = plan_for(t, "host");
    bool any = strcmp(o->device, "auto") == 0;
    if (!rt_device_named(o->device, e))
        return NULL;
    bool wants_cuda = any ? cuda != NULL && rt_driver_gpus() > 0
                          : rt_cuda_ordinal(o->device) >= 0;
    const RtPlan *plan = wants_cuda ? cuda : host;
    if (plan == NULL)
        no_plan(wants_cuda ? "CUDA devices" : "the host", e);
    return plan;
}
