// Times: lengths and moments of a run, in epochs, in steps, or as a share of
// the whole run.

#include "frontend/train.h"

#include <math.h>
#include <string.h>

bool time_of_value(Value v, Time *out) {
    if (v.kind != VALUE_NUMBER || !(v.number >= 0))
        return false;
    *out = (Time){v.number, v.unit == UNIT_EPOCH  ? IN_EPOCHS
                            : v.unit == UNIT_STEP ? IN_STEPS
                                                  : IN_SHARES};
    switch (out->unit) {
    case IN_EPOCHS:
        return v.number < 9e15;
    case IN_STEPS:
        return v.number <= INT32_MAX && v.number == floor(v.number);
    case IN_SHARES:
        return v.unit == UNIT_NONE && v.number < 1;
    }
    return false;
}

// `every epoch`, for `every 1 epoch`.
static bool is_unit_alone(const Expr *x) {
    return x->kind == EXPR_NAME &&
           (strcmp(x->text, "epoch") == 0 || strcmp(x->text, "step") == 0);
}

bool time_read(Expansion *e, TrainBlock *t, const Expr *x, const char *what,
               Time *out) {
    e->scope = t->lazy[0].scope;
    e->phase = PHASE_KEYS;
    Value v = is_unit_alone(x) ? value_number(0, x->at) : expand(e, x);
    if (v.kind == VALUE_POISON)
        return false;
    if (time_of_value(v, out) && out->count > 0)
        return true;
    Diagnostic *d = report(e->diags, D_key_value, x->at,
                           "%s needs a time with its unit", what);
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE && v.number >= 1)
        diag_note(d, "write `%g epoch` or `%g step`", v.number, v.number);
    else
        diag_note(d, "as in: 1 epoch, 500 step, or 10%% of the run");
    return false;
}
