// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Time: lengths of a run and times in it, and events that are due.
//
// Each is a function of the step alone, so a resumed run computes the same.

#include "runtime/runtime.h"

#include <math.h>

double rt_time_steps(RtTime t, const RtProgress *p) {
    if (t.unit == RT_EPOCHS)
        return t.count * (double)p->epoch_steps;
    if (t.unit == RT_SHARES)
        return t.count * (double)p->steps;
    return t.count;
}

int64_t rt_time_first(RtTime t, const RtProgress *p) {
    double first = ceil(rt_time_steps(t, p) - 1e-6);
    return first < (double)p->steps ? (int64_t)first : p->steps;
}

bool rt_time_due(RtTime every, const RtProgress *p) {
    double period = rt_time_steps(every, p);
    double step = (double)p->step + 1e-6;
    if (every.count <= 0 || p->step == 0)
        return false;
    return floor(step / period) > floor((step - 1) / period);
}

int rt_time_stage(const RtTrainer *t, const RtProgress *p) {
    int stage = t->num_stages - 1;
    while (stage > 0 && rt_time_first(t->stage_from[stage], p) > p->step)
        stage--;
    return stage < 0 ? 0 : stage;
}

bool rt_time_averages(const RtTrainer *t, const RtProgress *p) {
    int64_t first = rt_time_first(t->average_from, p);
    if (t->averages_each_step)
        return p->step == 0 && first == 0;
    if (p->step <= first || p->step == p->steps)
        return p->step >= first;
    return rt_time_due(t->average_every, p);
}
