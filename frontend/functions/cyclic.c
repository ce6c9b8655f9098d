// Cyclic schedules.

#include "frontend/functions/schedule.h"

#include <string.h>

// The argument, or `other` divided by a number.
static Value value_or(Expansion *e, const Call *c, ParamId p, Value other,
                      double divisor) {
    const Value *given = call_arg(c, p);
    if (given->kind != VALUE_NONE)
        return *given;
    return scalar_operate(e, TOKEN_DIVIDE, other, value_number(divisor, c->at),
                          c->at);
}

static Value ramp(Expansion *e, const Call *c, Value from, Value to,
                  Value progress) {
    bool wave = strcmp(call_arg(c, P_one_cycle_shape)->text, "cosine") == 0;
    return schedule_lerp(
        e, from, to, wave ? schedule_half_cosine(e, progress, c->at) : progress,
        c->at);
}

// OneCycleLR: up until one step before `warmup`, down until the last step.
Value lower_one_cycle(Expansion *e, const Call *c) {
    Value max = *call_arg(c, P_one_cycle_max);
    Value start = value_or(e, c, P_one_cycle_start, max, 25);
    Value end = value_or(e, c, P_one_cycle_end, start, 1e4);
    Value zero = value_number(0, c->at), one = value_number(1, c->at);
    Value warmup = schedule_time(e, *call_arg(c, P_one_cycle_warmup), c->at);
    Value peak = scalar_operate(e, TOKEN_MINUS, warmup, one, c->at);
    Value steps = run_value(e, RUN_STEPS, c->at);
    Value last = scalar_operate(e, TOKEN_MINUS, steps, one, c->at);
    Value rise = ramp(e, c, start, max, time_progress(e, zero, peak, c->at));
    Value fall = ramp(e, c, max, end, time_progress(e, peak, last, c->at));
    return schedule_select(e, run_value(e, RUN_STEP, c->at), peak, rise, fall,
                           c->at);
}

// CyclicLR, triangular: low to high in a fraction of each period, and back.
Value lower_cyclic(Expansion *e, const Call *c) {
    if (!period_check(e, c, P_cyclic_period))
        return value_poison();
    Value now = run_value(e, RUN_STEP, c->at);
    Value period = schedule_period(e, *call_arg(c, P_cyclic_period), c->at);
    Value done = scalar_operate(e, TOKEN_DIVIDE, now, period, c->at);
    done.node = add_unary(e, OP_floor, done.node);
    Value before = scalar_operate(e, TOKEN_TIMES, done, period, c->at);
    Value gone = scalar_operate(e, TOKEN_MINUS, now, before, c->at);
    Value up = scalar_operate(e, TOKEN_TIMES, *call_arg(c, P_cyclic_rise),
                              period, c->at);
    Value left = scalar_operate(e, TOKEN_MINUS, period, gone, c->at);
    Value down = scalar_operate(e, TOKEN_MINUS, period, up, c->at);
    Value rising = scalar_operate(e, TOKEN_DIVIDE, gone, up, c->at);
    Value falling = scalar_operate(e, TOKEN_DIVIDE, left, down, c->at);
    // No way down after a rise of a whole period, nor up in none.
    double rise = call_number(c, P_cyclic_rise);
    Value fraction = rise == 1 ? rising
                     : rise == 0
                         ? falling
                         : schedule_select(e, gone, up, rising, falling, c->at);
    return schedule_lerp(e, *call_arg(c, P_cyclic_low),
                         *call_arg(c, P_cyclic_high), fraction, c->at);
}
