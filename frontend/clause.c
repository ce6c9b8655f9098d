// The clauses of the train block: when to evaluate and what on, when to write a
// checkpoint.

#include "frontend/train.h"

#include <math.h>
#include <string.h>

// The time between two.
static bool read_every(Expansion *e, TrainBlock *t, const Expr *x,
                       const char *what, Time *out) {
    e->scope = t->lazy[0].scope;
    e->phase = PHASE_KEYS;
    Value v = expand(e, x);
    if (v.kind == VALUE_POISON)
        return false;
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_EPOCH && v.number > 0 &&
        v.number < 9e15) {
        *out = (Time){v.number, IN_EPOCHS};
        return true;
    }
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_STEP && v.number >= 1 &&
        v.number <= INT32_MAX && v.number == floor(v.number)) {
        *out = (Time){v.number, IN_STEPS};
        return true;
    }
    Diagnostic *d = report(e->diags, D_key_value, x->at,
                           "%s needs a time with its unit", what);
    diag_note(d, "as in: every 1 epoch");
    return false;
}

static bool check_metrics(Expansion *e, const Entry *k) {
    bool list = k->value->kind == EXPR_LIST, good = list;
    if (!list)
        key_report(e, k->value->at, "`metrics`", "a list, as [accuracy, loss]");
    for (int i = 0; list && i < k->value->count; i++) {
        const Expr *x = k->value->item[i];
        bool word = x->kind == EXPR_NAME;
        if (word &&
            (strcmp(x->text, "accuracy") == 0 || strcmp(x->text, "loss") == 0))
            continue;
        good = false;
        Diagnostic *d = report(e->diags, D_key_value, x->at,
                               "a metric must be accuracy or loss");
        Nearest near = nearest_to(word ? x->text : "");
        nearest_offer(&near, "accuracy");
        nearest_note(&near, d);
    }
    return good;
}

static bool check_eval_keys(Expansion *e, const Entry *eval) {
    bool good = true;
    for (int i = 0; i < eval->num_keys; i++) {
        const Entry *k = &eval->key[i];
        if (strcmp(k->name, "metrics") == 0) {
            good &= check_metrics(e, k);
            continue;
        }
        good = false;
        if (strcmp(k->name, "views") == 0 || strcmp(k->name, "weights") == 0) {
            report(e->diags, D_not_built, k->at, "`%s` is not supported yet",
                   k->name);
            continue;
        }
        Diagnostic *d = report(e->diags, D_unknown_key, k->at,
                               "eval has no key `%s`", k->name);
        Nearest near = nearest_to(k->name);
        nearest_offer(&near, "metrics");
        nearest_note(&near, d);
    }
    return good;
}

static bool check_on(Expansion *e, const Expr *on) {
    if (on == NULL ||
        (on->kind == EXPR_MEMBER && on->left->kind == EXPR_NAME &&
         strcmp(on->left->text, "data") == 0 && strcmp(on->text, "test") == 0))
        return true;
    key_report(e, on->at, "what eval is on", "data.test");
    return false;
}

static bool read_eval(Expansion *e, TrainBlock *t) {
    int i = entry_find(t, "eval");
    e->recipe.eval_every = (Time){1, IN_EPOCHS};
    if (i < 0)
        return true;
    const Entry *eval = &t->entry[i];
    bool good = check_on(e, eval->on);
    good &= check_eval_keys(e, eval);
    if (eval->every == NULL) {
        e->recipe.eval_every.count = 0;
        return good;
    }
    return read_every(e, t, eval->every, "eval", &e->recipe.eval_every) && good;
}

static bool read_checkpoint(Expansion *e, TrainBlock *t) {
    int i = entry_find(t, "checkpoint");
    int64_t keep = 1;
    e->recipe.checkpoint_keep = 1;
    if (i < 0)
        return true;
    const Entry *c = &t->entry[i];
    if (!read_every(e, t, c->every, "checkpoint", &e->recipe.checkpoint_every))
        return false;
    if (c->keep != NULL &&
        !key_whole(e, expand(e, c->keep), c->keep->at, "keep", 1, &keep))
        return false;
    e->recipe.checkpoint_keep = (int)keep;
    return true;
}

bool clauses_read(Expansion *e, TrainBlock *t) {
    bool good = read_eval(e, t);
    return read_checkpoint(e, t) && good;
}
