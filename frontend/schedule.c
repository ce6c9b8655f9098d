// Schedules: numbers that change during the run, as scalar nodes of the train
// graph.  progress runs from 0 to 1; step and epoch count from 0.

#include "frontend/expand.h"

#include <math.h>
#include <string.h>

static Value run_scalar(Expansion *e, RunState s, Span at) {
    return value_tensor(as_float(e, run_node(e, s)), at);
}

static Value per(Expansion *e, RunState whole) {
    Value step = run_scalar(e, RUN_STEP, (Span){0});
    Value all = run_scalar(e, whole, (Span){0});
    return scalar_operate(e, TOKEN_DIVIDE, step, all, (Span){0});
}

Value schedule_variable(Expansion *e, const char *name) {
    if (strcmp(name, "step") == 0)
        return run_scalar(e, RUN_STEP, (Span){0});
    return per(e, strcmp(name, "epoch") == 0 ? RUN_EPOCH_STEPS : RUN_STEPS);
}

Value lower_constant(Expansion *e, const Call *c) {
    (void)e;
    return *call_arg(c, P_constant_value);
}

// to + (from - to) (1 + cos(pi progress)) / 2
Value lower_cosine(Expansion *e, const Call *c) {
    Value from = *call_arg(c, P_cosine_from), to = *call_arg(c, P_cosine_to);
    NodeId progress = per(e, RUN_STEPS).node;
    NodeId angle = add_binary(e, OP_mul, progress, number_node(e, acos(-1)));
    NodeId cosine = add_unary(e, OP_cos, angle);
    NodeId wave = add_binary(e, OP_add, cosine, number_node(e, 1));
    Value half =
        value_tensor(add_binary(e, OP_mul, wave, number_node(e, 0.5)), c->at);
    Value range = scalar_operate(e, TOKEN_MINUS, from, to, c->at);
    return scalar_operate(e, TOKEN_PLUS, to,
                          scalar_operate(e, TOKEN_TIMES, range, half, c->at),
                          c->at);
}

// ---- piecewise ----

// The unit that all knots are given in; 0 fits any.  Mixed units become shares.
static Unit common_unit(const Value *knots) {
    Unit unit = UNIT_NONE;
    bool known = false;
    for (int i = 0; i < knots->list.count; i++) {
        Value where = knots->list.item[i].list.item[0];
        if (where.number == 0 && where.unit == UNIT_NONE)
            continue;
        if (known && where.unit != unit)
            return UNIT_NONE;
        unit = where.unit;
        known = true;
    }
    return unit;
}

// A knot's place as a share of the run.
static Value as_share(Expansion *e, Value where) {
    Unit unit = where.unit;
    where.unit = UNIT_NONE;
    Time length = e->recipe.length;
    if (unit == UNIT_EPOCH && length.unit == IN_EPOCHS)
        return value_number(where.number / length.count, where.at);
    if (unit == UNIT_STEP && length.unit == IN_STEPS)
        return value_number(where.number / length.count, where.at);
    if (unit == UNIT_EPOCH)
        where =
            scalar_operate(e, TOKEN_TIMES, where,
                           run_scalar(e, RUN_EPOCH_STEPS, where.at), where.at);
    else if (unit != UNIT_STEP)
        return where;
    return scalar_operate(e, TOKEN_DIVIDE, where,
                          run_scalar(e, RUN_STEPS, where.at), where.at);
}

static bool is_value(Expansion *e, Value v) {
    return (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE) ||
           (v.kind == VALUE_TENSOR && node_type(e, v.node).rank == 0);
}

static bool check_knot(Expansion *e, const Value *knot) {
    Value where = knot->list.item[0], what = knot->list.item[1];
    if (where.kind != VALUE_NUMBER || where.number < 0) {
        report(e->diags, D_knots, where.at.source ? where.at : knot->at,
               "a knot's place must be a share of the run, `N epoch` or "
               "`N step`");
        return false;
    }
    if (!is_value(e, what)) {
        report(e->diags, D_knots, knot->at,
               "a knot's value must be a number or a schedule");
        return false;
    }
    if (where.unit == UNIT_NONE && where.number > 1) {
        Diagnostic *d = report(e->diags, D_knots, where.at,
                               "%g is past the end of the run", where.number);
        diag_note(d,
                  "places are shares of the run; write `%g epoch` or "
                  "`%g step` if that is meant",
                  where.number, where.number);
        return false;
    }
    return true;
}

// The places of the knots, all in one unit; NULL after a report.
static Value *knot_places(Expansion *e, const Value *knots, Unit unit) {
    Value *place = ARENA_ARRAY(e->arena, (size_t)knots->list.count, Value);
    for (int i = 0; i < knots->list.count; i++) {
        Value where = knots->list.item[i].list.item[0];
        if (unit == UNIT_NONE)
            place[i] = as_share(e, where);
        else
            place[i] = value_number(where.number, where.at);
        if (i == 0 || place[i].kind != VALUE_NUMBER ||
            place[i - 1].kind != VALUE_NUMBER ||
            place[i].number > place[i - 1].number)
            continue;
        Diagnostic *d = report(e->diags, D_knots, where.at,
                               "knots must come one after the other");
        diag_place(d, place[i - 1].at, "this one is not before it");
        return NULL;
    }
    return place;
}

// How much of the way from one place to the next x has gone: 0 .. 1.
static Value way(Expansion *e, Value x, Value from, Value to) {
    Value gone = scalar_operate(e, TOKEN_MINUS, x, from, x.at);
    Value length = scalar_operate(e, TOKEN_MINUS, to, from, x.at);
    Value share;
    if (length.kind == VALUE_NUMBER)
        share = scalar_operate(e, TOKEN_TIMES, gone,
                               value_number(1 / length.number, x.at), x.at);
    else
        share = scalar_operate(e, TOKEN_DIVIDE, gone, length, x.at);
    NodeId most = add_binary(e, OP_minimum, share.node, number_node(e, 1));
    return value_tensor(add_binary(e, OP_maximum, most, number_node(e, 0)),
                        x.at);
}

// The first value, and for each line its rise as far as it is gone.
static Value add_lines(Expansion *e, const Value *knots, const Value *place,
                       Value x) {
    const Value *item = knots->list.item;
    Value sum = item[0].list.item[1];
    for (int i = 1; i < knots->list.count; i++) {
        Value rise = scalar_operate(e, TOKEN_MINUS, item[i].list.item[1],
                                    item[i - 1].list.item[1], x.at);
        Value gone = way(e, x, place[i - 1], place[i]);
        sum = scalar_operate(e, TOKEN_PLUS, sum,
                             scalar_operate(e, TOKEN_TIMES, rise, gone, x.at),
                             x.at);
    }
    return sum;
}

Value lower_piecewise(Expansion *e, const Call *c) {
    const Value *knots = call_arg(c, P_piecewise_knots);
    if (knots->list.count < 2) {
        report(e->diags, D_knots, c->at, "a line needs two knots at least");
        return value_poison();
    }
    for (int i = 0; i < knots->list.count; i++)
        if (!check_knot(e, &knots->list.item[i]))
            return value_poison();
    Unit unit = common_unit(knots);
    const Value *place = knot_places(e, knots, unit);
    if (place == NULL)
        return value_poison();
    Value x = unit == UNIT_STEP    ? run_scalar(e, RUN_STEP, c->at)
              : unit == UNIT_EPOCH ? per(e, RUN_EPOCH_STEPS)
                                   : per(e, RUN_STEPS);
    return add_lines(e, knots, place, x);
}
