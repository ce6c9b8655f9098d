// Freezing: parameters that do not train.  No gradient is computed for them,
// nor for what only they needed, as no optimizer asks for one.

#include "frontend/train.h"

#include <string.h>

static bool is_freeze(const Entry *entry) {
    return strcmp(entry->name, "freeze") == 0 && entry->glob != NULL;
}

bool freeze_holds(Expansion *e, const TrainBlock *t, const Parameter *p) {
    for (int i = 0; i < t->num_entries; i++)
        if (is_freeze(&t->entry[i]) &&
            glob_matches(e, t, t->entry[i].glob, p->name))
            return true;
    return false;
}

static const Entry *last_freeze(const TrainBlock *t) {
    const Entry *last = NULL;
    for (int i = 0; i < t->num_entries; i++)
        if (is_freeze(&t->entry[i]))
            last = &t->entry[i];
    return last;
}

bool freezes_check(Expansion *e, const TrainBlock *t) {
    bool good = true, all = true;
    const Entry *last = last_freeze(t);
    for (int i = 0; i < t->num_entries; i++) {
        if (!is_freeze(&t->entry[i]))
            continue;
        good &= glob_check(e, t, t->entry[i].glob, t->entry[i].glob_at);
        if (t->entry[i].after != NULL)
            report(e->diags, D_not_built, t->entry[i].after->at,
                   "freezing after a time is not supported yet");
        good &= t->entry[i].after == NULL;
    }
    for (int i = 0; i < e->num_parameters; i++)
        all &= freeze_holds(e, t, &e->parameter[i]);
    if (!good || last == NULL || !all)
        return good;
    report(e->diags, D_all_frozen, last->at,
           "every parameter is frozen, so there is nothing to train");
    return false;
}
