// Clauses of the train block: eval, checkpoint and stop.

#include "base/metrics.h"
#include "frontend/train/train.h"

#include <string.h>

// ---- times ----

// `every epoch`, for `every 1 epoch`.
static bool is_unit_alone(const Expr *x) {
    return x->kind == EXPR_NAME &&
           (strcmp(x->text, "epoch") == 0 || strcmp(x->text, "step") == 0);
}

bool time_read(Expansion *e, TrainBlock *t, const Expr *x, const char *subject,
               Time *out) {
    e->scope = t->lazy[0].scope;
    e->phase = PHASE_KEYS;
    Value v = is_unit_alone(x) ? value_number(0, x->at) : expand(e, x);
    if (v.kind == VALUE_POISON)
        return false;
    if (time_of_value(v, out) && out->count > 0)
        return true;
    Diagnostic *d = report(e->diags, D_key_value, x->at,
                           "%s needs a time with its unit", subject);
    if (v.kind == VALUE_NUMBER && v.unit == UNIT_NONE && v.number >= 1)
        diag_note(d, "write `%g epoch` or `%g step`", v.number, v.number);
    else
        diag_note(d, "as in: 1 epoch, 500 step, or 10%% of the run");
    return false;
}

// ---- eval ----

static bool read_metrics(Expansion *e, const Entry *k) {
    bool list = k->value->kind == EXPR_LIST, good = list;
    if (!list)
        key_report(e, k->value->at, "`metrics`", "a list, as [accuracy, loss]");
    for (int i = 0; list && i < k->value->count; i++) {
        const Expr *x = k->value->item[i];
        ListedMetric m = {.at = x->at};
        int id = metric_read(e, x, &m.output);
        good &= id >= 0;
        if (id < 0)
            continue;
        m.id = (MetricId)id;
        ARENA_APPEND(e->arena, e->listed, e->num_listed, m);
        e->recipe.metrics |= 1u << id;
    }
    return good;
}

// averaged or raw: keywords, not names.
static bool read_weights(Expansion *e, const Entry *k) {
    const Expr *x = k->value;
    e->raw_weights = x->kind == EXPR_NAME && strcmp(x->text, "raw") == 0;
    if (e->raw_weights ||
        (x->kind == EXPR_NAME && strcmp(x->text, "averaged") == 0))
        return true;
    key_report(e, x->at, "`weights`", "averaged or raw");
    return false;
}

static bool read_eval_key(Expansion *e, TrainBlock *t, const Entry *k) {
    if (strcmp(k->name, "metrics") == 0)
        return read_metrics(e, k);
    if (strcmp(k->name, "weights") == 0)
        return read_weights(e, k);
    if (strcmp(k->name, "views") == 0)
        return views_read(e, t, k->value);
    Diagnostic *d =
        report(e->diags, D_unknown_key, k->at, "eval has no key `%s`", k->name);
    Nearest near = nearest_to(k->name);
    nearest_offer(&near, "metrics");
    nearest_offer(&near, "views");
    nearest_offer(&near, "weights");
    nearest_note(&near, d);
    return false;
}

static bool read_eval_keys(Expansion *e, TrainBlock *t, const Entry *eval) {
    bool good = keys_check(e, eval->at, eval->key, eval->num_keys) &&
                keys_check_bare(e, eval->key, eval->num_keys);
    for (int i = 0; i < eval->num_keys; i++)
        good &= read_eval_key(e, t, &eval->key[i]);
    return good;
}

// data.test or data.train
static bool read_on(Expansion *e, const Expr *on) {
    bool data =
        on == NULL || (on->kind == EXPR_MEMBER && on->left->kind == EXPR_NAME &&
                       strcmp(on->left->text, "data") == 0);
    e->recipe.eval_train = on != NULL && data && strcmp(on->text, "train") == 0;
    if (on == NULL || e->recipe.eval_train ||
        (data && strcmp(on->text, "test") == 0))
        return true;
    Diagnostic *d =
        key_report(e, on->at, "the data of eval", "data.test or data.train");
    if (data && strncmp(on->text, "val", 3) == 0)
        diag_note(d, "training samples are held out and evaluated by an option "
                     "of the trainer: --validation=5000, or 10%%");
    return false;
}

static bool read_eval(Expansion *e, TrainBlock *t) {
    int i = entry_find(t, "eval");
    e->recipe.eval_every = (Time){1, IN_EPOCHS};
    if (i < 0)
        return true;
    const Entry *eval = &t->entry[i];
    bool good = read_on(e, eval->on);
    good &= read_eval_keys(e, t, eval);
    if (eval->every == NULL) {
        e->recipe.eval_every.count = 0;
        return good;
    }
    return time_read(e, t, eval->every, "eval", &e->recipe.eval_every) && good;
}

// ---- checkpoint ----

static bool read_keep(Expansion *e, TrainBlock *t, const Expr *x, int *keep) {
    int64_t count = 1;
    e->scope = t->lazy[0].scope;
    e->phase = PHASE_KEYS;
    if (x != NULL &&
        !key_integer(e, expand(e, x), x->at, "keep", 1, &count))
        return false;
    *keep = (int)count;
    return true;
}

// One clause has a time, another a metric.
static bool read_checkpoints(Expansion *e, TrainBlock *t) {
    Recipe *r = &e->recipe;
    bool good = true;
    r->checkpoint_keep = r->best_keep = 1;
    for (int i = 0; i < t->num_entries; i++) {
        const Entry *c = &t->entry[i];
        if (c->every != NULL && strcmp(c->name, "checkpoint") == 0)
            good &= time_read(e, t, c->every, "checkpoint",
                              &r->checkpoint_every) &&
                    read_keep(e, t, c->keep, &r->checkpoint_keep);
        if (c->best == NULL)
            continue;
        r->best = metric_measured(e, c->best);
        good &= r->best != NULL && read_keep(e, t, c->keep, &r->best_keep);
    }
    return good;
}

// ---- stop ----

// Accuracies are fractions.
static bool check_level(Expansion *e, const Expr *x, const char *metric,
                        Value v) {
    bool number = v.kind == VALUE_NUMBER && v.unit == UNIT_NONE;
    bool is_fraction =
        metric_info[metric_find(metric)].unit == METRIC_SHARE;
    if (v.kind == VALUE_POISON)
        return false;
    if (number && (!is_fraction || (v.number >= 0 && v.number <= 1)))
        return true;
    Diagnostic *d =
        report(e->diags, D_key_value, x->at, "%s is compared with %s", metric,
               is_fraction ? "a share, 0 to 100%" : "a number");
    if (number && v.number > 1 && v.number <= 100)
        diag_note(d, "write `%g%%`", v.number);
    return false;
}

// stop when no improvement of METRIC for TIME
static bool read_patience(Expansion *e, TrainBlock *t, const Entry *stop) {
    Time patience;
    const char *metric = metric_measured(e, stop->when);
    if (metric == NULL ||
        !time_read(e, t, stop->patience, "the patience of stop", &patience))
        return false;
    e->recipe.stop = (Stop){.metric = metric, .patience = patience};
    return true;
}

static bool read_stop(Expansion *e, TrainBlock *t) {
    int i = entry_find(t, "stop");
    if (i < 0)
        return true;
    if (t->entry[i].patience != NULL)
        return read_patience(e, t, &t->entry[i]);
    const Expr *x = t->entry[i].when;
    if (x->kind != EXPR_BINARY ||
        (x->op != TOKEN_AT_LEAST && x->op != TOKEN_AT_MOST)) {
        Diagnostic *d = report(e->diags, D_key_value, x->at,
                               "stop needs a metric, `>=` or `<=`, and a "
                               "number");
        diag_note(d, "as in: stop when accuracy >= 94%%, or stop when no "
                     "improvement of loss for 5 epoch");
        return false;
    }
    const char *metric = metric_measured(e, x->left);
    if (metric == NULL)
        return false;
    e->scope = t->lazy[0].scope;
    e->phase = PHASE_KEYS;
    Value v = expand(e, x->right);
    e->recipe.stop = (Stop){
        .metric = metric, .above = x->op == TOKEN_AT_LEAST, .value = v.number};
    return check_level(e, x->right, metric, v);
}

bool clauses_read(Expansion *e, TrainBlock *t) {
    bool good = read_eval(e, t);
    good &= read_checkpoints(e, t);
    return good && read_stop(e, t);
}
