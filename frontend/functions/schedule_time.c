// Times and arithmetic of schedules.

#include "frontend/functions/schedule.h"

#include <math.h>

Value run_value(Expansion *e, RunState s, Span at) {
    return value_tensor(as_float(e, run_node(e, s)), at);
}

bool time_fraction(const Expansion *e, Value time, double *fraction) {
    Time length = e->recipe.length;
    bool epochs = time.unit == UNIT_EPOCH && length.unit == IN_EPOCHS;
    bool steps = time.unit == UNIT_STEP && length.unit == IN_STEPS;
    *fraction = epochs || steps ? time.number / length.count : time.number;
    return epochs || steps || time.unit == UNIT_NONE || time.number == 0;
}

Value schedule_period(Expansion *e, Value time, Span at) {
    Value count = value_number(time.number, at);
    if (time.unit == UNIT_STEP || time.number == 0)
        return count;
    RunState whole = time.unit == UNIT_EPOCH ? RUN_EPOCH_STEPS : RUN_STEPS;
    Value steps = run_value(e, whole, at);
    if (time.number == 1)
        return steps;
    return scalar_operate(e, TOKEN_TIMES, count, steps, at);
}

Value schedule_time(Expansion *e, Value time, Span at) {
    Time read;
    if (time_of_value(time, &read))
        time_warn_late(e, read, time.at);
    return schedule_period(e, time, at);
}

bool period_check(Expansion *e, const Call *c, ParamId p) {
    const Value *period = call_arg(c, p);
    if (period->number > 0)
        return true;
    report(e->diags, D_out_of_range, period->at.source ? period->at : c->at,
           "`%s` of %s must be above 0", param_info[p].name, c->builtin->name);
    return false;
}

Value schedule_select(Expansion *e, Value a, Value b, Value yes, Value no,
                      Span at) {
    NodeId left = scalar_node(e, a), right = scalar_node(e, b);
    NodeId less = add_binary(e, OP_lt, left, right);
    NodeId first = scalar_node(e, yes), second = scalar_node(e, no);
    return value_tensor(graph_op3(e->graph, OP_select, less, first, second),
                        at);
}

Value time_progress(Expansion *e, Value from, Value to, Span at) {
    Value now = run_value(e, RUN_STEP, at);
    bool start = from.kind == VALUE_NUMBER && from.number == 0;
    Value gone = start ? now : scalar_operate(e, TOKEN_MINUS, now, from, at);
    Value length = start ? to : scalar_operate(e, TOKEN_MINUS, to, from, at);
    Value fraction = scalar_operate(e, TOKEN_DIVIDE, gone, length, at);
    if (!start)
        fraction.node =
            add_binary(e, OP_maximum, fraction.node, number_node(e, 0));
    return schedule_select(e, gone, length, fraction, value_number(1, at), at);
}

static bool same_numbers(Value a, Value b) {
    return a.kind == VALUE_NUMBER && b.kind == VALUE_NUMBER &&
           a.number == b.number;
}

Value schedule_lerp(Expansion *e, Value from, Value to, Value fraction,
                    Span at) {
    if (same_numbers(from, to))
        return from;
    Value one = value_number(1, at);
    Value rest = scalar_operate(e, TOKEN_MINUS, one, fraction, at);
    Value left = scalar_operate(e, TOKEN_TIMES, from, rest, at);
    Value right = scalar_operate(e, TOKEN_TIMES, to, fraction, at);
    return scalar_operate(e, TOKEN_PLUS, left, right, at);
}

// (1 - cos(pi fraction)) / 2
Value schedule_half_cosine(Expansion *e, Value fraction, Span at) {
    NodeId angle = number_node(e, acos(-1));
    angle = add_binary(e, OP_mul, scalar_node(e, fraction), angle);
    NodeId rest = add_unary(e, OP_cos, angle);
    rest = add_binary(e, OP_sub, number_node(e, 1), rest);
    return value_tensor(add_binary(e, OP_mul, rest, number_node(e, 0.5)), at);
}

Value schedule_power(Expansion *e, double base, Value exponent, Span at) {
    NodeId power = number_node(e, log(base));
    power = add_binary(e, OP_mul, scalar_node(e, exponent), power);
    return value_tensor(add_unary(e, OP_exp, power), at);
}
