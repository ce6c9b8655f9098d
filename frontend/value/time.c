// Times: durations and points of a run, in epochs, in steps, or as a fraction
// of the run.

#include "frontend/value/value.h"

#include <math.h>

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

// The steps of an epoch; 0 if only the trainer knows them, or a key is wrong.
static double epoch_steps(const Expansion *e) {
    const Recipe *r = &e->recipe;
    bool read = r->batch > 0 && r->accumulate > 0;
    return read ? (double)recipe_epoch_updates(r, e->data.samples) : 0;
}

// The time in epochs if they are the unit, else in steps.
static double time_in(const Expansion *e, Time time, TimeUnit unit) {
    double steps = time.unit == unit ? 1 : epoch_steps(e);
    return unit == IN_EPOCHS ? time.count / steps : time.count * steps;
}

static const char *unit_text(Time time) {
    if (time.count == 1)
        return time.unit == IN_EPOCHS ? "epoch" : "step";
    return time.unit == IN_EPOCHS ? "epochs" : "steps";
}

void time_warn_late(Expansion *e, Time time, Span at) {
    Time run = e->recipe.length;
    if (time.unit == IN_SHARES || at.source == NULL || run.count == 0 ||
        (time.unit != run.unit && epoch_steps(e) == 0) ||
        time_in(e, time, run.unit) <= run.count)
        return;
    Diagnostic *d =
        report(e->diags, D_time_past_end, at,
               "this time, %g %s, is past the end of the run, %g %s",
               time.count, unit_text(time), run.count, unit_text(run));
    diag_note(d, "a share such as 30%% moves with the length of the run");
}
