// Schedules: numbers that change during the run, as scalar nodes of the train
// graph.  Schedules with PyTorch's names have PyTorch's values.

#include "frontend/functions/schedule.h"

#include <math.h>
#include <string.h>

static Value run_progress(Expansion *e, RunState whole) {
    Value step = run_value(e, RUN_STEP, (Span){0});
    Value all = run_value(e, whole, (Span){0});
    return scalar_operate(e, TOKEN_DIVIDE, step, all, (Span){0});
}

Value schedule_variable(Expansion *e, const char *name) {
    if (strcmp(name, "step") == 0)
        return run_value(e, RUN_STEP, (Span){0});
    return run_progress(e, strcmp(name, "epoch") == 0 ? RUN_EPOCH_STEPS
                                                      : RUN_STEPS);
}

Value lower_constant(Expansion *e, const Call *c) {
    (void)e;
    return *call_arg(c, P_constant_value);
}

// ---- curves from one value to another ----

static Value time_arg(Expansion *e, const Call *c, ParamId p) {
    return schedule_time(e, *call_arg(c, p), c->at);
}

// The progress from `since` to `until`, which is later.
static bool progress_arg(Expansion *e, const Call *c, ParamId since,
                         ParamId until, Value *progress) {
    double begin, end;
    Value from = *call_arg(c, since), to = *call_arg(c, until);
    if (time_fraction(e, from, &begin) && time_fraction(e, to, &end) &&
        begin >= end) {
        Diagnostic *d =
            report(e->diags, D_invalid_knots, c->at,
                   "%s must begin before it ends", c->builtin->name);
        if (from.at.source != NULL)
            diag_secondary(d, from.at, "it begins here");
        if (to.at.source != NULL)
            diag_secondary(d, to.at, "and ends here");
        return false;
    }
    Value first = time_arg(e, c, since);
    *progress = time_progress(e, first, time_arg(e, c, until), c->at);
    return true;
}

// torch.optim.lr_scheduler.CosineAnnealingLR
Value lower_cosine(Expansion *e, const Call *c) {
    Value progress;
    if (!progress_arg(e, c, P_cosine_since, P_cosine_until, &progress))
        return value_poison();
    return schedule_lerp(e, *call_arg(c, P_cosine_from),
                         *call_arg(c, P_cosine_to),
                         schedule_half_cosine(e, progress, c->at), c->at);
}

// x^power for x from 0 to 1: exact at both ends.
static Value fraction_power(Expansion *e, Value x, double power, Span at) {
    if (power == 1)
        return x;
    NodeId log = add_unary(e, OP_log, x.node);
    NodeId scaled = add_binary(e, OP_mul, log, number_node(e, power));
    return value_tensor(add_unary(e, OP_exp, scaled), at);
}

// PolynomialLR: to + (from - to) (1 - progress)^power
Value lower_poly(Expansion *e, const Call *c) {
    Value progress, one = value_number(1, c->at);
    if (!progress_arg(e, c, P_poly_since, P_poly_until, &progress))
        return value_poison();
    Value rest = scalar_operate(e, TOKEN_MINUS, one, progress, c->at);
    rest = fraction_power(e, rest, call_number(c, P_poly_power), c->at);
    return schedule_lerp(e, *call_arg(c, P_poly_to), *call_arg(c, P_poly_from),
                         rest, c->at);
}

// LinearLR: the schedule times a factor that grows to 1.
Value lower_warmup(Expansion *e, const Call *c) {
    Value zero = value_number(0, c->at), one = value_number(1, c->at);
    Value length = time_arg(e, c, P_warmup_length);
    Value progress = time_progress(e, zero, length, c->at);
    Value fraction =
        schedule_lerp(e, *call_arg(c, P_warmup_from), one, progress, c->at);
    return scalar_operate(e, TOKEN_TIMES, *call_arg(c, P_warmup_schedule),
                          fraction, c->at);
}

// ---- powers of a factor ----

// The number of periods since the start, with its fraction.
static Value periods(Expansion *e, const Call *c, ParamId p) {
    Value period = schedule_period(e, *call_arg(c, p), c->at);
    Value step = run_value(e, RUN_STEP, c->at);
    return scalar_operate(e, TOKEN_DIVIDE, step, period, c->at);
}

// ExponentialLR
Value lower_exponential(Expansion *e, const Call *c) {
    if (!period_check(e, c, P_exponential_every))
        return value_poison();
    Value factor = schedule_power(e, call_number(c, P_exponential_gamma),
                                  periods(e, c, P_exponential_every), c->at);
    return scalar_operate(e, TOKEN_TIMES, *call_arg(c, P_exponential_start),
                          factor, c->at);
}

// StepLR: gamma^floor(step / every)
static Value step_decay(Expansion *e, const Call *c) {
    Value done = periods(e, c, P_step_every);
    done.node = add_unary(e, OP_floor, done.node);
    return schedule_power(e, call_number(c, P_step_gamma), done, c->at);
}

// MultiStepLR: gamma once for each milestone passed.
static Value multistep_decay(Expansion *e, const Call *c) {
    const Value *list = call_arg(c, P_step_milestones);
    int count = list->kind == VALUE_LIST ? list->list.count : 1;
    Value now = run_value(e, RUN_STEP, c->at), one = value_number(1, c->at);
    Value gamma = value_number(call_number(c, P_step_gamma), c->at);
    Value factor = one;
    for (int i = 0; i < count; i++) {
        Value where = list->kind == VALUE_LIST ? list->list.item[i] : *list;
        Value fall = schedule_select(e, now, schedule_time(e, where, c->at),
                                     one, gamma, c->at);
        factor =
            i == 0 ? fall : scalar_operate(e, TOKEN_TIMES, factor, fall, c->at);
    }
    return factor;
}

Value lower_step(Expansion *e, const Call *c) {
    bool every = call_arg(c, P_step_every)->kind != VALUE_NONE;
    bool milestones = call_arg(c, P_step_milestones)->kind != VALUE_NONE;
    if (every == milestones) {
        Diagnostic *d = report(
            e->diags, every ? D_duplicate_argument : D_missing_argument, c->at,
            every ? "step takes `every` or `milestones`, not both"
                  : "step needs `every` or `milestones`");
        diag_note(d, "as in: step(0.1, every=30 epoch), or step(0.1, "
                     "milestones=[50%%, 75%%])");
        return value_poison();
    }
    if (every && !period_check(e, c, P_step_every))
        return value_poison();
    Value factor = every ? step_decay(e, c) : multistep_decay(e, c);
    return scalar_operate(e, TOKEN_TIMES, *call_arg(c, P_step_start), factor,
                          c->at);
}
