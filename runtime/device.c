// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions that an emitted step calls, forwarded to the device.

#include "runtime/device.h"

#include "base/round_up.h"

#include <string.h>

const char *rt_call_name(RtCallKind kind) {
    static const char *const name[] = {
        [RT_CONV] = "conv",
        [RT_CONV_GRAD_INPUT] = "conv_grad_input",
        [RT_CONV_GRAD_WEIGHT] = "conv_grad_weight",
        [RT_MATMUL] = "matmul",
        [RT_EIGH] = "eigh",
        [RT_ORTHOGONAL] = "orthogonal",
        [RT_SUM_OVER_SHARDS] = "sum_over_shards",
        [RT_TILED] = "tiled",
    };
    return name[kind];
}

bool rt_device_holds(const RtDevice *d, size_t offset) {
    const RtElsewhere *e = d->elsewhere;
    return e == NULL || offset < e->begin || offset >= e->end ||
           (offset >= e->own_begin && offset < e->own_end);
}

void rt_device_read(RtDevice *d, void *to, size_t from, size_t bytes) {
    if (rt_device_holds(d, from))
        d->read(d, to, from, bytes);
    else
        d->elsewhere->read(d->elsewhere, to, from, bytes);
}

void rt_device_write(RtDevice *d, size_t to, const void *from, size_t bytes) {
    if (rt_device_holds(d, to))
        d->write(d, to, from, bytes);
    else
        d->elsewhere->write(d->elsewhere, to, from, bytes);
}

static RtRange inside(size_t begin, size_t end, size_t unit) {
    begin = align_up(begin, unit);
    end = end / unit * unit;
    return (RtRange){begin, end > begin ? end : begin};
}

size_t rt_device_absent(const RtDevice *d, size_t unit, RtRange part[2]) {
    const RtElsewhere *e = d->elsewhere;
    part[0] = part[1] = (RtRange){0, 0};
    if (e == NULL)
        return 0;
    part[0] = inside(e->begin, e->own_begin, unit);
    part[1] = inside(e->own_end, e->end, unit);
    return part[0].end - part[0].begin + part[1].end - part[1].begin;
}

const RtLaunch *rt_launch_of(const RtStep *step, int number) {
    return step != NULL && number < step->num_launches ? &step->launch[number]
                                                       : NULL;
}

RtWork rt_launch_work(const RtLaunch *launch, bool is_call) {
    return is_call                              ? RT_CALLS
           : launch != NULL && launch->augments ? RT_AUGMENTATION
                                                : RT_KERNELS;
}

void rt_phase(RtDevice *d, RtPhase phase) {
    RtSegment *p = d->segment;
    if (p != NULL && p->launch <= p->first)
        p->phase = phase;
    else if (p == NULL || p->launch < p->end)
        d->phase(d, phase);
}

void rt_step_launch(RtDevice *d, const RtStep *step) {
    if (d->segment != NULL)
        d->segment->launch = 0;
    else if (d->hooks != NULL)
        d->hooks->begin(d->hooks);
    step->run(d);
}

size_t rt_segment_address(const RtDevice *d, size_t at) {
    const RtSegment *p = d->segment;
    return p == NULL || at < p->from ? at : at + p->shift;
}

// Counts a launch.  True: it is of the segment, and *arg are its addresses
// there.
static bool is_in_segment(RtDevice *d, const size_t **arg, int count) {
    RtSegment *p = d->segment;
    if (p == NULL)
        return true;
    int launch = p->launch++;
    if (launch == p->end)
        memcpy(p->sum, *arg, sizeof p->sum);
    if (launch < p->first || launch >= p->end)
        return false;
    if (launch == p->first)
        d->phase(d, p->phase);
    for (int i = 0; i < count; i++)
        p->arg[i] = rt_segment_address(d, (*arg)[i]);
    *arg = p->arg;
    return true;
}

void rt_observers_tell(RtDevice *d, int kernel, const size_t *arg) {
    const RtSegment *p = d->segment;
    if (d->watch != NULL) {
        if (p == NULL || p->is_watched)
            d->watch->launched(d->watch, kernel, arg);
        d->watch->absent = false;
        d->watch->tile = NULL;
    }
    if (d->hooks != NULL && (p == NULL || p->is_overlapped))
        d->hooks->launched(d->hooks);
}

void rt_launch(RtDevice *d, int kernel, int grid, const size_t *arg) {
    if (!is_in_segment(d, &arg,
                       d->segment ? d->segment->plan->kernel[kernel].args : 0))
        return;
    d->launch(d, kernel, grid, arg);
    rt_observers_tell(d, kernel, arg);
}

void rt_contract(RtDevice *d, int call, size_t a, size_t b, size_t out) {
    const size_t *arg = (const size_t[]){a, b, out};
    if (!is_in_segment(d, &arg, 3))
        return;
    d->library_call(d, call, arg[0], arg[1], arg[2]);
    rt_observers_tell(d, -1, arg);
}
