// Time: lengths of a run and moments in it, in steps.

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
