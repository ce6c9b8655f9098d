// Freezing: parameters that do not train, from the start or after a time.
//
// No optimizer uses the gradient of a frozen parameter, so neither it nor
// anything that only it needs is computed.  Each time at which a parameter
// freezes begins another stage of the run.

#include "frontend/train/train.h"

#include <string.h>

static bool is_freeze(const Entry *entry) {
    return strcmp(entry->name, "freeze") == 0 && entry->glob != NULL;
}

// ---- times ----

// Times in different units have no order before the run.
static bool check_unit(Expansion *e, const TrainBlock *t, int entry) {
    for (int i = 0; i < entry; i++) {
        if (t->freeze_at[i].count == 0 ||
            t->freeze_at[i].unit == t->freeze_at[entry].unit)
            continue;
        Diagnostic *d =
            report(e->diags, D_key_value, t->entry[entry].after->at,
                   "the times of freezing must all have the same unit");
        diag_secondary(d, t->entry[i].after->at, "this one has another");
        return false;
    }
    return true;
}

enum { MAX_TIMES = 16 };

// False, with a report, if there are too many.
static bool add_time(Expansion *e, TrainBlock *t, Time time, Span at) {
    int i = t->num_times;
    for (int k = 0; k < i; k++)
        if (t->time[k].count == time.count)
            return true;
    if (i == MAX_TIMES) {
        report(e->diags, D_model_too_large, at,
               "parameters are frozen at %d moments at most", MAX_TIMES);
        return false;
    }
    for (; i > 0 && t->time[i - 1].count > time.count; i--)
        t->time[i] = t->time[i - 1];
    t->time[i] = time;
    t->num_times++;
    return true;
}

bool freezes_read(Expansion *e, TrainBlock *t) {
    bool good = true;
    size_t count = (size_t)t->num_entries + 1;
    t->freeze_at = ARENA_ARRAY(e->arena, count, Time);
    t->time = ARENA_ARRAY(e->arena, count, Time);
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *entry = &t->entry[i];
        if (!is_freeze(entry) || entry->after == NULL)
            continue;
        if (!time_read(e, t, entry->after, "freeze", &t->freeze_at[i]) ||
            !check_unit(e, t, i) ||
            !add_time(e, t, t->freeze_at[i], entry->after->at))
            good = false;
        else
            time_warn_late(e, t->freeze_at[i], entry->after->at);
    }
    return good;
}

const Time *freeze_times(const TrainBlock *t, int *count) {
    *count = t->num_times;
    return t->time;
}

// ---- parameters ----

static bool has_begun(const TrainBlock *t, int entry, int stage) {
    double at = t->freeze_at[entry].count;
    return at == 0 || (stage > 0 && at <= t->time[stage - 1].count);
}

bool is_frozen(Expansion *e, const TrainBlock *t, const Parameter *p,
               int stage) {
    for (int i = 0; i < t->num_entries; i++)
        if (is_freeze(&t->entry[i]) && has_begun(t, i, stage) &&
            glob_matches(e, t, &t->entry[i], p->name))
            return true;
    return false;
}

static const Entry *last_freeze(const TrainBlock *t, int stage) {
    const Entry *last = NULL;
    for (int i = 0; i < t->num_entries; i++)
        if (is_freeze(&t->entry[i]) && has_begun(t, i, stage))
            last = &t->entry[i];
    return last;
}

static bool check_left(Expansion *e, const TrainBlock *t, int stage) {
    for (int i = 0; i < e->num_parameters; i++)
        if (!is_frozen(e, t, &e->parameter[i], stage))
            return true;
    const Entry *last = last_freeze(t, stage);
    if (last == NULL)
        return true;
    report(e->diags, D_all_frozen, last->at,
           "every parameter is frozen%s, so there is nothing to train",
           last->after ? " then" : "");
    return false;
}

static bool is_random(const Parameter *p) {
    InitKind kind = p->init.kind;
    return kind != INIT_CONSTANT && kind != INIT_WHITENING &&
           kind != INIT_LITERAL;
}

void freezes_count_random(Expansion *e, const TrainBlock *t, Recipe *r) {
    for (int i = 0; i < e->num_parameters; i++) {
        const Parameter *p = &e->parameter[i];
        if (!is_random(p) || !is_frozen(e, t, p, 0))
            continue;
        if (r->num_frozen_random++ == 0)
            r->frozen_random = p->name;
    }
}

bool freezes_check(Expansion *e, const TrainBlock *t) {
    bool good = true;
    for (int i = 0; i < t->num_entries; i++)
        if (is_freeze(&t->entry[i]))
            good &= glob_check(e, t, &t->entry[i]);
    for (int stage = 0; good && stage <= t->num_times; stage++)
        good = check_left(e, t, stage);
    return good;
}
