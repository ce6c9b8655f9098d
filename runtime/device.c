// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions that an emitted step calls, forwarded to the device.

#include "runtime/device.h"

const char *rt_call_name(RtCallKind kind) {
    static const char *const name[] = {
        [RT_CONV] = "conv",
        [RT_CONV_GRAD_INPUT] = "conv_grad_input",
        [RT_CONV_GRAD_WEIGHT] = "conv_grad_weight",
        [RT_MATMUL] = "matmul",
        [RT_EIGH] = "eigh",
        [RT_ORTHOGONAL] = "orthogonal",
    };
    return name[kind];
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
    d->phase(d, phase);
}

static void tell(RtDevice *d, int kernel, const size_t *arg) {
    if (d->watch != NULL) {
        d->watch->launched(d->watch, kernel, arg);
        d->watch->absent = false;
    }
    if (d->hooks != NULL)
        d->hooks->launched(d->hooks);
}

void rt_launch(RtDevice *d, int kernel, int grid, const size_t *arg) {
    d->launch(d, kernel, grid, arg);
    tell(d, kernel, arg);
}

void rt_contract(RtDevice *d, int call, size_t a, size_t b, size_t out) {
    d->library_call(d, call, a, b, out);
    tell(d, -1, (const size_t[]){a, b, out});
}
