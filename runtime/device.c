// What an emitted step calls, passed on to the device.

#include "runtime/device.h"

void rt_phase(RtDevice *d, RtPhase phase) {
    d->phase(d, phase);
}

static void tell_watch(RtDevice *d) {
    if (d->watch == NULL)
        return;
    d->watch->launched(d->watch);
    d->watch->absent = false;
}

void rt_launch(RtDevice *d, int kernel, int grid, const size_t *arg) {
    d->launch(d, kernel, grid, arg);
    tell_watch(d);
}

void rt_contract(RtDevice *d, int call, size_t a, size_t b, size_t out) {
    d->contract(d, call, a, b, out);
    tell_watch(d);
}
