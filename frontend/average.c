// Averages of the weights: ema is what an evaluation uses in their place,
// lookahead writes them back.

#include "frontend/train.h"

// An average is kept as its call until its graph is built.
Value lower_average(Expansion *e, const Call *c) {
    (void)e;
    return (Value){.kind = VALUE_CALL, .call = c};
}

// ema and lookahead have the same parameters.
static const Value *argument(const Call *c, ParamId ema) {
    return &c->arg[(int)ema - (int)FIRST_ema];
}

static Time time_argument(const Call *c, ParamId ema) {
    Time time = {0};
    time_of_value(*argument(c, ema), &time);
    return time;
}

static bool check_call(Expansion *e, const Call *c) {
    const Value *decay = argument(c, P_ema_decay);
    if (decay->kind == VALUE_NUMBER &&
        !(decay->number >= 0 && decay->number <= 1)) {
        Diagnostic *d = report(e->diags, D_range, decay->at,
                               "`decay` of %s must be a number from 0 to 1",
                               c->builtin->name);
        diag_note(d, "it is the share of the old average that is kept");
        return false;
    }
    if (time_argument(c, P_ema_every).count > 0)
        return true;
    report(e->diags, D_range, argument(c, P_ema_every)->at,
           "`every` of %s must be more than 0", c->builtin->name);
    return false;
}

bool average_read(Expansion *e, TrainBlock *t, Average *out) {
    Value v = key_value(e, t, "average");
    *out = (Average){0};
    if (v.kind == VALUE_NOTHING)
        return true;
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind != VALUE_CALL || v.call->builtin->class != AVERAGE) {
        key_report(e, key_at(t, "average"), "`average`",
                   "ema(...) or lookahead(...)");
        return false;
    }
    const Call *c = v.call;
    *out = (Average){.call = c,
                     .writes_back = builtin_id(c->builtin) == B_lookahead,
                     .every = time_argument(c, P_ema_every),
                     .from = time_argument(c, P_ema_start),
                     .decay = *argument(c, P_ema_decay)};
    return check_call(e, c);
}
