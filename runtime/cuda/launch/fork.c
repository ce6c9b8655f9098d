// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forks: library calls of a captured step on a side stream, so that its graph
// may run them concurrently with later launches.
//
// The side stream waits for all launches before the call, and the main stream
// for the call at the fork's join.  Only a captured run forks.  It does not
// fork if it records timing events, has step hooks, or runs in lockstep: those
// queue or time work between launches.

#include "runtime/cuda/launch/launch.h"

static bool plan_forks(const RtPlan *plan) {
    for (int i = 0; i < plan->num_steps; i++)
        if (plan->step[i].num_forks > 0 && !plan->unforked)
            return true;
    return false;
}

bool rt_forks_open(RtForks *f, const RtDriver *cu, const RtPlan *plan,
                   RtError *e) {
    *f = (RtForks){.cu = cu, .join = -1};
    return !plan_forks(plan) ||
           (rt_driver_good(
                cu, cu->stream_create(&f->stream, CU_STREAM_NON_BLOCKING, 0), e,
                "create a stream") &&
            rt_event_create(cu, &f->begin, CU_EVENT_DISABLE_TIMING, e) &&
            rt_event_create(cu, &f->end, CU_EVENT_DISABLE_TIMING, e));
}

void rt_forks_close(RtForks *f) {
    if (f->stream == NULL)
        return;
    f->cu->stream_sync(f->stream);
    rt_event_destroy(f->cu, f->begin);
    rt_event_destroy(f->cu, f->end);
    f->cu->stream_free(f->stream);
    *f = (RtForks){.join = -1};
}

static const RtFork *fork_of(const RtCuda *c, int launch) {
    const RtStep *step = &c->plan->step[c->step];
    for (int i = 0; i < step->num_forks; i++)
        if (step->fork[i].call == launch)
            return &step->fork[i];
    return NULL;
}

// Orders `after` behind all that is queued on `before`.
static bool order(const RtForks *f, CUevent event, CUstream before,
                  CUstream after, RtError *e) {
    return rt_driver_good(f->cu, f->cu->event_record(event, before), e,
                          "record an event of a fork") &&
           rt_driver_good(f->cu, f->cu->stream_wait(after, event, 0), e,
                          "wait for an event of a fork");
}

bool rt_fork_begin(RtCuda *c, int launch, int library_call) {
    const RtFork *fork = fork_of(c, launch);
    if (fork == NULL || c->forks.stream == NULL || !c->is_capturing ||
        c->is_timed || c->device.hooks != NULL || c->device.segment != NULL ||
        !rt_library_calls_may_fork(&c->calls, library_call))
        return false;
    c->forks.join = fork->join;
    rt_cuda_check_launch(c, order(&c->forks, c->forks.begin, c->stream,
                                  c->forks.stream, &c->error));
    return true;
}

void rt_fork_join(RtCuda *c, int launch) {
    if (c->forks.join < 0 || launch < c->forks.join)
        return;
    c->forks.join = -1;
    c->after_kernel = false;
    rt_cuda_check_launch(c, order(&c->forks, c->forks.end, c->forks.stream,
                                  c->stream, &c->error));
}
