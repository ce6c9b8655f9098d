// piecewise: linear interpolation between knots, each a time and a value.

#include "frontend/functions/schedule.h"

static bool is_value(Expansion *e, Value v) {
    return (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE) ||
           (v.kind == VALUE_TENSOR && node_type(e, v.node)->rank == 0);
}

static Value knot_time(const Value *knots, int i) {
    return knots->list.item[i].list.item[0];
}

static Value knot_value(const Value *knots, int i) {
    return knots->list.item[i].list.item[1];
}

static bool check_knot(Expansion *e, const Value *knot) {
    Value where = knot->list.item[0], value = knot->list.item[1];
    if (where.kind != VALUE_NUMBER || where.number < 0) {
        report(e->diags, D_invalid_knots, where.at.source ? where.at : knot->at,
               "the position of a knot must be a share of the run, `N epoch` "
               "or `N step`");
        return false;
    }
    if (!is_value(e, value)) {
        report(e->diags, D_invalid_knots, knot->at,
               "the value of a knot must be a number or a schedule");
        return false;
    }
    if (where.unit == UNIT_NONE && where.number > 1) {
        Diagnostic *d = report(e->diags, D_invalid_knots, where.at,
                               "%g is past the end of the run", where.number);
        diag_note(d,
                  "positions are shares of the run; for a time, write `%g "
                  "epoch` or `%g step`",
                  where.number, where.number);
        return false;
    }
    return true;
}

// Whether b is known not to come after a.
static bool is_known_not_after(const Expansion *e, Value a, Value b) {
    double first, second;
    if (a.unit == b.unit)
        return b.number <= a.number;
    return time_fraction(e, a, &first) && time_fraction(e, b, &second) &&
           second <= first;
}

static bool check_order(Expansion *e, const Value *knots) {
    for (int i = 1; i < knots->list.count; i++) {
        Value before = knot_time(knots, i - 1), where = knot_time(knots, i);
        if (!is_known_not_after(e, before, where))
            continue;
        Diagnostic *d = report(e->diags, D_invalid_knots, where.at,
                               "the positions of knots must ascend");
        diag_secondary(d, before.at, "this one is not earlier");
        return false;
    }
    return true;
}

// Selects the current line.  The first value holds before the first knot, the
// last after the last.
static Value choose_segment(Expansion *e, const Value *knots, Span at) {
    int last = knots->list.count - 1;
    Value now = run_value(e, RUN_STEP, at), result = knot_value(knots, last);
    Value end = schedule_time(e, knot_time(knots, last), at);
    for (int i = last - 1; i >= 0; i--) {
        Value start = schedule_time(e, knot_time(knots, i), at);
        Value progress = time_progress(e, start, end, at);
        Value to = knot_value(knots, i + 1);
        Value line = schedule_lerp(e, knot_value(knots, i), to, progress, at);
        result = schedule_select(e, now, end, line, result, at);
        end = start;
    }
    return result;
}

Value lower_piecewise(Expansion *e, const Call *c) {
    const Value *knots = call_arg(c, P_piecewise_knots);
    if (knots->list.count < 2) {
        report(e->diags, D_invalid_knots, c->at,
               "piecewise needs at least two knots");
        return value_poison();
    }
    for (int i = 0; i < knots->list.count; i++)
        if (!check_knot(e, &knots->list.item[i]))
            return value_poison();
    if (!check_order(e, knots))
        return value_poison();
    return choose_segment(e, knots, c->at);
}
